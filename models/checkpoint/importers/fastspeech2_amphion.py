"""FastSpeech 2 as Amphion's recipe writes it.

An experiment holds args.json and `checkpoint/epoch-..._step-..._loss-.../` with the weights. The
statistics of pitch and energy, which the weights need, lie in Amphion's processed data or, in
experiments that were published, beside args.json.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from models.checkpoint.importers import ImportedModel
from models.checkpoint.importers._amphion import Checkpoint, locate, read_args
from models.checkpoint.importers._amphion_statistics import Data, read_stats
from models.checkpoint.importers._fastspeech2 import Description, Levels, assemble
from models.checkpoint.importers._fastspeech2_weights import translate
from models.checkpoint.importers._settings import required, section, upper_edge
from models.checkpoint.tensors import named_tensors, read_weights
from utils.errors import InputError

KIND = "FastSpeech 2 of Amphion (args.json, checkpoint/ and statistics.json)"
_MEL = ("sample_rate", "n_fft", "win_size", "hop_size", "n_mel", "fmin", "fmax")
_F0 = ("f0_min", "f0_max")
_SYMBOLS = "symbols.dict"  # written where phones are not those of a lexicon
_REFUSED = {  # keys of `preprocess` that stand for values of another kind
    "use_min_max_norm_mel": "mels that are scaled to a range of their own",
    "use_log_scale_pitch": "the logarithm of pitch",
    "use_log_scale_energy": "the logarithm of energy",
}


def recognises(path: Path) -> bool:
    """Whether it is one, by args.json.

    Raises:
        InputError: If there are weights and no args.json.
    """
    checkpoint = locate(path)
    if checkpoint is None:
        return False
    return str(read_args(checkpoint).get("model_type")).lower() == "fastspeech2"


def read(path: Path) -> ImportedModel:
    """Reads an experiment, its folder of checkpoints or one checkpoint.

    Raises:
        InputError: If statistics are missing, something is broken, or the model is of a shape that
            has no place here.
    """
    checkpoint = cast("Checkpoint", locate(path))  # it was recognised
    args = read_args(checkpoint)
    description = _description(args, checkpoint.args)
    tensors = named_tensors(read_weights(checkpoint.weights), str(checkpoint.weights))
    weights = translate(tensors, checkpoint.weights)
    data = Data(
        checkpoint.args.parent,
        description.datasets[0],
        section(args, "preprocess"),
        description.levels,
    )
    return assemble(
        description,
        weights,
        read_stats(data, weights.n_speakers),
        source=f"FastSpeech 2 of Amphion (github.com/open-mmlab/Amphion), {checkpoint.name}",
        step=checkpoint.step,
    )


def _check(preprocess: Mapping[str, object], path: Path) -> None:
    """Refuses what the weights would be spoken with wrongly."""
    for key, what in _REFUSED.items():
        if preprocess.get(key):
            raise InputError(f"{path}: preprocess.{key}: {what} cannot be spoken with here")
    if preprocess.get("phone_extractor") != "lexicon" and (path.parent / _SYMBOLS).is_file():
        raise InputError(
            f"{path}: preprocess.phone_extractor: its phones are those of {_SYMBOLS}, and only the "
            "ARPAbet of the extractor lexicon can be spoken with here"
        )


def _description(args: Mapping[str, object], path: Path) -> Description:
    preprocess = section(args, "preprocess")
    _check(preprocess, path)
    datasets = args.get("dataset")
    if not isinstance(datasets, list) or not datasets:
        raise InputError(f"{path}: dataset is {datasets!r}, expected a list of names")
    mel = required(preprocess, f"{path}: preprocess", *_MEL, "mel_extract_mode")
    centred = mel.pop("mel_extract_mode") == "taco"
    praat = preprocess.get("pitch_extractor") == "parselmouth"
    return Description(
        path=path,
        model_path=path,
        datasets=tuple(map(str, datasets)),
        preprocess={
            **mel,
            "fmax": upper_edge(mel["fmax"], mel["sample_rate"]),
            **{key: preprocess[key] for key in _F0 if key in preprocess},
            "mel_padding": "centre" if centred else "hifigan",
            "pitch_extractor": "parselmouth" if praat else "pyworld",
        },
        model=section(args, "model"),
        levels=Levels(
            "frame" if preprocess.get("use_frame_pitch") else "phone",
            "frame" if preprocess.get("use_frame_energy") else "phone",
        ),
    )
