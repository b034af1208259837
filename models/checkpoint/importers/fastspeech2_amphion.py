"""FastSpeech 2 of Amphion, with the statistics of pitch and energy as published."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from models.base.assets import Speaker
from models.checkpoint.foreign import ImportedModel, beside, named_part
from models.checkpoint.importers import _amphion
from models.checkpoint.importers import fastspeech2_ming024 as ming024
from models.checkpoint.importers._tables import existing, required, value_at
from models.checkpoint.tensors import named_tensors, read_weights
from processors.dataset.statistics import SpeakerStats, Stat
from utils.errors import InputError
from utils.files import read_json

KIND = "FastSpeech 2 of Amphion (args.json, checkpoint/ and statistics.json)"
FILES = _amphion.FILES
_REFUSED = {  # keys of `preprocess` by which the network computes other quantities
    "use_log_scale_pitch": "the logarithm of pitch",
    "use_log_scale_energy": "the logarithm of energy",
}
_SYMBOLS = "symbols.dict"  # written if phones are not those of a lexicon
_SPEAKERS = "spk2id.json"
_FOLDERS = {"pitch": "pitches", "energy": "energys"}  # of the statistics, unless a key names it


def recognises(weights: Path) -> bool:
    """Returns whether args.json belongs to FastSpeech 2."""
    return str(_amphion.args_of(weights).get("model_type")).lower() == "fastspeech2"


def read(weights: Path) -> ImportedModel:
    """Reads a checkpoint of an experiment."""
    path, args = _amphion.read(weights)
    # with these settings, the output would be wrong
    for key, what in _REFUSED.items():
        if value_at(args, f"preprocess.{key}"):
            raise InputError(f"{path}: preprocess.{key}: {what} cannot be used")
    is_lexicon = value_at(args, "preprocess.phone_extractor") == "lexicon"
    if not is_lexicon and (path.parent / _SYMBOLS).is_file():
        fault = f"{path}: preprocess.phone_extractor: its phones are those of {_SYMBOLS}"
        raise InputError(f"{fault}; only the ARPAbet phones of the extractor lexicon can be used")
    datasets = args.get("dataset")
    if not isinstance(datasets, list) or not datasets:
        raise InputError(f"{path}: dataset is {datasets!r}, expected a list of names")
    datasets = [str(name) for name in datasets]
    praat = value_at(args, "preprocess.pitch_extractor") == "parselmouth"
    settings = {
        **required(args, {"preprocess.mel_padding": "preprocess.mel_extract_mode"}, path),
        **_amphion.mel_settings(args, path),
        **existing(args, {key: key for key in ("preprocess.f0_min", "preprocess.f0_max")}),
        **ming024.model_settings(args.get("model"), path),
        "dataset": datasets,
        "preprocess.pitch_extractor": "parselmouth" if praat else "pyworld",
        **{f"model.{quantity}_level": _level(args, quantity) for quantity in _FOLDERS},
    }
    tensors = named_tensors(read_weights(weights), str(weights))
    # of several datasets, the network was trained with the statistics of the first
    speakers = _speakers(args, datasets[0], path, ming024.n_speakers_in(tensors))
    return replace(
        ming024.assemble(tensors, weights, settings, speakers, path),
        source=f"FastSpeech 2 of Amphion (open-mmlab/Amphion), {named_part(weights).name}",
        step=FILES.number_in(weights),
    )


def _level(args: Mapping[str, object], quantity: str) -> str:
    return "frame" if value_at(args, f"preprocess.use_frame_{quantity}") else "phone"


def _speakers(
    args: Mapping[str, object], dataset: str, path: Path, n_speakers: int
) -> dict[Speaker, SpeakerStats]:
    """Returns statistics of pitch and energy by speaker, in the order of their ids."""
    files = []
    for quantity, usual in _FOLDERS.items():
        prefix = "" if _level(args, quantity) == "frame" else "phone_"
        folder = value_at(args, f"preprocess.{prefix}{quantity}_dir") or f"{prefix}{usual}"
        files.append(path.parent / dataset / str(folder) / "statistics.json")
    if missing := [str(file) for file in files if not file.is_file()]:
        remedy = "copy the statistics of pitch and energy there from the data that Amphion prepared"
        raise InputError(f"{' and '.join(missing)} missing; {remedy} (processed_dir)")
    contents = {file: read_json(file) for file in files}
    by_key, whole_dataset = contents[files[0]], f"{dataset}_{dataset}"
    keys = list(by_key) if isinstance(by_key, dict) and len(by_key) == 1 else [whole_dataset]
    if n_speakers > 1:
        ids = beside(path, _SPEAKERS)
        keys = ming024.by_id(read_json(ids), n_speakers, ids)
    stats = {}
    for key in keys:
        pitch, energy = (_stat(v, (key, whole_dataset), file) for file, v in contents.items())
        speaker = Speaker(key.removeprefix(f"{dataset}_"), "en-us")
        stats[speaker] = SpeakerStats(pitch, pitch, energy, energy, 0.0)
    return stats


def _stat(values: object, keys: tuple[str, str], path: Path) -> Stat:
    """Returns statistics of one speaker, or of the whole dataset if the speaker has none."""
    speakers = values if isinstance(values, dict) else {}
    key = next((key for key in keys if key in speakers), None)
    if key is None:
        known = ", ".join(speakers)
        raise InputError(f"{path}: no statistics of {keys[0]}; it has those of {known}")
    voiced, every = (value_at(speakers[key], f"{part}_positions") for part in ("voiced", "total"))
    numbers = [value_at(voiced, "mean"), value_at(voiced, "std")]
    return ming024.stat_of([*numbers, value_at(every, "min"), value_at(every, "max")], path, key)
