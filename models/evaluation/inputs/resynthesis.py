"""Copy-synthesis: recordings resynthesised from their mels by the vocoder of the systems.

Their error is that of mel and vocoder, without that of the acoustic model.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from models.base.devices import resolved_device
from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions
from models.synthesizer.fingerprint import fingerprint
from models.synthesizer.runs.copy_synthesis import CopySynthesis, synthesise_mels
from models.synthesizer.runs.mel_sources import MelSource, VocoderInput
from models.synthesizer.runs.metadata import CopyLine, ResultFolder
from models.synthesizer.vocoders import BUILT_IN, OpenedVocoder, open_vocoder
from modules.mel import MelSpectrogram
from processors.audio.frames import mel_of
from processors.metrics.utterance_scorer import EvaluatedUtterance, SpeechFile
from utils.errors import InputError
from utils.logging import get_logger

COPY = "copy"  # resynthesised recordings, as a system
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
    files = resynthesise(items, vocoder, inputs, folder)
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
    inputs: EvaluationInputs,
    folder: Path,
) -> dict[str, Path]:
    """Writes a copy of each recording to `<folder>/<id>.wav`, without its last partial frame.

    An existing copy is kept while recording, mel, vocoder and its settings are the same. Runs on a
    GPU if there is one, one recording at a time: batches are no faster.

    Args:
        items: Utterances; those without a recording are left out.

    Returns:
        The files by id.

    Raises:
        InputError: If a recording or the vocoder cannot be read, a recording is shorter than a
            frame, or a copy is not finite.
    """
    device, settings = resolved_device(), inputs.inference
    network, spectrogram = vocoder.load(settings, device), MelSpectrogram(vocoder.mel)
    facts = fingerprint(_VERSION, asdict(vocoder.mel), *vocoder.facts(network, settings))
    synthesis = CopySynthesis(
        network, vocoder.mel, inputs.preprocess, vocoder.name, folder, device, facts
    )
    sources = [
        _source(item, item.recorded, folder, spectrogram)
        for item in items
        if item.recorded is not None
    ]
    synthesise_mels(synthesis, sources, ResultFolder(folder, CopyLine))
    return {source.id: folder / f"{source.id}.wav" for source in sources}


def _source(
    item: EvaluatedUtterance,
    recorded: Callable[[], np.ndarray],
    folder: Path,
    mel: MelSpectrogram,
) -> MelSource:
    """The mel of the whole frames of a recording."""
    n_samples = len(wav := recorded())
    if n_samples // mel.config.hop_length * mel.config.hop_length < mel.config.n_fft:
        raise InputError(
            f"copy-synthesis: {item.id} has {n_samples} samples, too few for a mel; leave it out, "
            "or all copies by --copies no"
        )
    digest = hashlib.sha256(np.ascontiguousarray(wav).tobytes()).digest()
    version = (int.from_bytes(digest[:8], "big"),)
    return MelSource(item.id, "", item.audio or folder, version, partial(_load, recorded, mel))


def _load(recorded: Callable[[], np.ndarray], mel: MelSpectrogram) -> VocoderInput:
    wav, hop_length = recorded(), mel.config.hop_length
    return VocoderInput(mel_of(wav[: len(wav) // hop_length * hop_length], mel), None)


_log = get_logger(__name__)
