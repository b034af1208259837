"""Copy-synthesis: recordings resynthesised from their mels by the vocoder of the systems.

Their error is that of mel and vocoder, without that of the acoustic model.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

from config.schema import InferenceConfig
from models.base.devices import resolved_device
from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions
from models.synthesizer.vocoders import BUILT_IN, OpenedVocoder, open_vocoder
from modules.mel import MelSpectrogram
from processors.audio.files import AudioError, write_wav
from processors.audio.frames import mel_of
from processors.metrics.utterance_scorer import EvaluatedUtterance, SpeechFile
from utils.errors import InputError
from utils.files import read_json, write_json
from utils.logging import get_logger, progress

COPY = "copy"  # resynthesised recordings, as a system
_KEYS = "copies.json"  # digest of what each file was made from, by id
_VERSION = 2  # raised when the same recording and vocoder give another copy than before


def add_copies(
    items: list[EvaluatedUtterance],
    vocoders: set[str],
    inputs: EvaluationInputs,
    options: EvaluationOptions,
    folder: Path,
) -> list[EvaluatedUtterance]:
    """Adds resynthesised recordings as the system `copy`, or logs why there are none.

    Args:
        vocoders: Names of the vocoders of the systems; "" if unknown.
        folder: Where the copies are kept.

    Returns:
        Items with copies, or `items` itself.

    Raises:
        InputError: If the vocoder cannot be opened or does not fit, or a recording is too short.
    """
    if not options.copies:
        return items
    are_copies = any(spoken.is_copy for item in items for spoken in item.spoken.values())
    if are_copies or items[0].recorded is None:
        if options.vocoder is not None:
            reason = "the systems are copies already" if are_copies else "there are no recordings"
            _log.info("no copy-synthesis: %s", reason)
        return items
    reference = options.vocoder or _built_in(vocoders)
    if reference is None:
        names = ", ".join(sorted(vocoders - {""})) or "an unknown vocoder"
        _log.info("no copy-synthesis: stage 3 used %s; name a vocoder by --vocoder_dir", names)
        return items
    mel = inputs.preprocess.mel
    vocoder = open_vocoder(reference, mel, resample=options.resample)
    files = resynthesise(items, vocoder, inputs.inference, folder)
    return [
        replace(item, spoken={**item.spoken, COPY: SpeechFile(files[item.id], is_copy=True)})
        for item in items
    ]


def _built_in(vocoders: set[str]) -> str | Path | None:
    """The vocoder that all systems used, if it needs no name."""
    (name, *others) = vocoders or {""}
    return None if others else BUILT_IN.get(name)


def resynthesise(
    items: Sequence[EvaluatedUtterance],
    vocoder: OpenedVocoder,
    settings: InferenceConfig,
    folder: Path,
) -> dict[str, Path]:
    """Writes a copy of each recording to `<folder>/<id>.wav`, without its last partial frame.

    An existing copy is kept while recording, mel, vocoder and its settings are the same. Runs on a
    GPU if there is one, one recording at a time: batches are no faster.

    Args:
        items: Utterances; those without a recording are left out.
        settings: Iterations of Griffin-Lim, precision of other vocoders.

    Returns:
        The files by id.

    Raises:
        InputError: If a recording or the vocoder cannot be read, a recording is shorter than a
            frame, or a copy is not finite.
    """
    device = resolved_device()
    network, mel = vocoder.load(settings, device), MelSpectrogram(vocoder.mel)
    facts = json.dumps([_VERSION, asdict(vocoder.mel), *vocoder.facts(network, settings)]).encode()
    keys, files = _read_keys(folder / _KEYS), {}
    with progress(len(items), "copy-synthesis") as bar:
        for item in items:
            bar.advance()
            if item.recorded is None:
                continue
            wav, path = item.recorded(), folder / f"{item.id}.wav"
            files[item.id] = path
            key = hashlib.sha256(facts + np.ascontiguousarray(wav).tobytes()).hexdigest()
            if keys.get(item.id) == key and path.is_file():
                continue
            # the file is removed first, so that a run that stops here leaves no key of another one
            path.unlink(missing_ok=True)
            keys[item.id] = key
            write_json(folder / _KEYS, dict(sorted(keys.items())))
            log_mel = torch.from_numpy(_mel_of(item.id, wav, mel))[None].to(device)  # (1, M, T)
            copy = network.infer(log_mel)[0].float().cpu().numpy()  # (T * hop_length,)
            try:
                write_wav(path, copy, mel.config.sample_rate)
            except AudioError as error:
                raise InputError(f"copy-synthesis: {error}; is the vocoder damaged?") from error
    return files


def _mel_of(id: str, wav: np.ndarray, mel: MelSpectrogram) -> np.ndarray:
    """The mel of the whole frames of a recording, (M, T)."""
    hop_length = mel.config.hop_length
    whole = wav[: len(wav) // hop_length * hop_length]  # (T * hop_length,)
    if len(whole) < mel.config.n_fft:
        raise InputError(
            f"copy-synthesis: {id} has {len(wav)} samples, too few for a mel; leave it out, or all "
            "copies by --copies no"
        )
    return mel_of(whole, mel)


def _read_keys(path: Path) -> dict[str, str]:
    keys = read_json(path) if path.is_file() else {}
    if not isinstance(keys, dict):
        raise InputError(f"{path}: not written by stage 4; delete it, and copies are made again")
    return keys


_log = get_logger(__name__)
