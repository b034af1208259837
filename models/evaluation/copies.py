"""Copy-synthesis: recordings become mels, and sound again, by the vocoder that a voice speaks with.

What copies lack is lost by mel and vocoder alone: beside them, the scores of a voice tell what its
acoustic model costs.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import nn

from config.schema import InferenceConfig
from models.base.interfaces import Vocoder
from models.synthesizer.vocoders import GRIFFIN_LIM, OpenedVocoder, open_vocoder
from modules.mel import MelConfig, MelSpectrogram
from processors.audio.files import AudioError, write_wav
from processors.extraction.recordings import mel_of
from processors.scoring.utterance_scorer import EvaluatedUtterance
from utils.errors import InputError
from utils.files import read_json, write_json
from utils.logging import get_logger, progress

_KEYS = "copies.json"  # what each file was made from, by id
_VERSION = 1  # raised when the same recording and vocoder give another copy than before


def open_copying_vocoder(
    spoken_by: str, reference: str | Path | None, mel: MelConfig, *, resample: bool = False
) -> OpenedVocoder | None:
    """Finds the vocoder that stage 3 spoke with.

    Args:
        spoken_by: Its name in `metadata.jsonl`.
        reference: As given by --vocoder_dir; None: Griffin-Lim.
        mel: What the acoustic model makes.
        resample: Use it also if it was made for another mel or sample rate.

    Returns:
        None, and one line in the log, if stage 3 spoke by a trained one and none is given.

    Raises:
        InputError: If it cannot be found, is no vocoder, or was made for another mel.
    """
    if reference is None and spoken_by != GRIFFIN_LIM:
        get_logger(__name__).info(
            "without copy-synthesis: stage 3 spoke by %s; give it by --vocoder_dir", spoken_by
        )
        return None
    return open_vocoder(reference, mel, resample=resample)


def copies_of(
    items: Sequence[EvaluatedUtterance],
    vocoder: OpenedVocoder,
    settings: InferenceConfig,
    folder: Path,
) -> dict[str, Path]:
    """Copies recordings into `<folder>/<id>.wav`, as long as these but for a last part of a frame.

    A copy that is there already is kept while recording, mel, vocoder and its settings are the
    same. On a GPU where there is one; else one after another, which is as fast as in batches.

    Args:
        items: Utterances; those without a recording are left out.
        vocoder: Reads the mel of the experiment that is judged, `vocoder.mel`.
        settings: The experiment's: iterations of Griffin-Lim, precision of other vocoders.
        folder: Made where missing.

    Returns:
        The files by id.

    Raises:
        InputError: If a recording or the vocoder cannot be read, a recording is shorter than a
            frame, or a copy is not finite.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    speaker = vocoder.load(settings, device)
    work = _Work(speaker, MelSpectrogram(vocoder.mel), device, _key_of(vocoder, speaker, settings))
    keys, made = _read_keys(folder), {}
    with progress(len(items), "copy-synthesis") as bar:
        for item in items:
            if item.recorded is not None:
                made[item.id] = _copied(item.id, item.recorded(), work, folder, keys)
            bar.advance()
    return made


class _Work(NamedTuple):
    """What makes copies."""

    vocoder: Vocoder
    mel: MelSpectrogram
    device: str
    key: str  # of mel and vocoder


def _copied(id: str, wav: np.ndarray, work: _Work, folder: Path, keys: dict[str, str]) -> Path:
    """Makes one copy of a recording (S,), unless it is there; `keys`: what copies were made of."""
    path = folder / f"{id}.wav"
    key = hashlib.sha256(work.key.encode() + np.ascontiguousarray(wav).tobytes()).hexdigest()
    if keys.get(id) == key and path.is_file():
        return path
    if keys.pop(id, None) is not None:
        _write_keys(folder, keys)  # first: a file that is being replaced is nobody's copy
    config = work.mel.config
    whole = wav[: len(wav) // config.hop_length * config.hop_length]  # (T * hop_length,)
    if len(whole) < config.n_fft:
        raise InputError(
            f"copy-synthesis: {id} has {len(wav)} samples, too few for a mel; leave it out, or all "
            "copies by --copies no"
        )
    mel = mel_of(whole, work.mel)  # (M, T)
    copy = work.vocoder.infer(torch.from_numpy(mel)[None].to(work.device))[0]  # (T * hop_length,)
    try:
        write_wav(path, copy.float().cpu().numpy(), config.sample_rate)
    except AudioError as error:
        raise InputError(f"copy-synthesis: {error}; is the vocoder damaged?") from error
    keys[id] = key
    _write_keys(folder, keys)
    return path


def _key_of(vocoder: OpenedVocoder, speaker: Vocoder, settings: InferenceConfig) -> str:
    """What copies depend on beside the recording."""
    facts: list[object] = [_VERSION, asdict(vocoder.mel)]
    if vocoder.model is None:
        facts.append([vocoder.name, settings.griffin_lim_iterations])
    else:
        facts.append([asdict(vocoder.model.assets.mel), settings.vocoder_precision])
        facts.append(_digest(cast("nn.Module", speaker)))
    return json.dumps(facts)


def _digest(network: nn.Module) -> str:
    """Of the weights, wherever they came from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        values = tensor.contiguous().cpu().flatten().view(torch.uint8).numpy()
        digest.update(name.encode() + values.tobytes())
    return digest.hexdigest()


def _read_keys(folder: Path) -> dict[str, str]:
    path = folder / _KEYS
    if not path.is_file():
        return {}
    keys = read_json(path)
    if not isinstance(keys, Mapping):
        raise InputError(f"{path}: not written here; delete it, and copies are made again")
    return dict(keys)


def _write_keys(folder: Path, keys: Mapping[str, str]) -> None:
    write_json(folder / _KEYS, dict(sorted(keys.items())))
