"""From one recording and its text to the features that models are trained on."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from config.schema import PreprocessConfig
from modules.mel import MelConfig, MelSpectrogram
from preprocessors.manifest import Utterance
from processors.alignment import Aligner, make_aligner
from processors.alignment.misfits import check_fit
from processors.audio.files import read_audio
from processors.audio.pitch import extract_f0, require_extractor
from processors.extraction.trace import Trace
from processors.records import Alignment, Extraction, Features, SpokenText
from processors.text.frontend import TextFrontend
from utils.errors import UtteranceError


class FeatureError(UtteranceError):
    """An utterance whose parts do not fit together; the message says how."""


class FeatureTools:
    """What a process needs for any number of utterances, built once: it costs more than they do.

    Args:
        config: Stage 1.
        dataset_root: The corpus, where alignments may lie.
        folder: Its processed data, where an aligner that learns finds what it has learnt.

    Raises:
        InputError: If the aligner cannot be built, or a package is missing.
    """

    def __init__(self, config: PreprocessConfig, dataset_root: Path, folder: Path = Path()) -> None:
        require_extractor(config.pitch_extractor)
        self.config = config
        self.mel = MelSpectrogram(config.mel)
        self.align: Aligner = make_aligner(config, dataset_root, folder)
        self._frontends: dict[str, Callable[[str], SpokenText]] = {}

    def frontend(self, language: str) -> Callable[[str], SpokenText]:
        """The text frontend of a language.

        Raises:
            InputError: If there is none for it, or what it needs is not installed.
        """
        if language not in self._frontends:
            self._frontends[language] = TextFrontend(self.config.text, language)
        return self._frontends[language]

    def prepare(self, utterances: Sequence[Utterance]) -> None:
        """Makes ready for these utterances.

        Raises:
            InputError: If nobody can speak one of their languages: no fault of an utterance.
        """
        for language in {utterance.language for utterance in utterances}:
            self.frontend(language)

    def extract(self, utterance: Utterance, trace: Trace) -> Extraction:
        """Features of one utterance; see `extract_features`."""
        return extract_features(utterance, self, trace)


def extract_features(
    utterance: Utterance, tools: FeatureTools, trace: Trace | None = None
) -> Extraction:
    """Extracts everything from one utterance.

    The audio is cut to the aligned span, and that to whole frames: phones are rounded to frames at
    their boundaries, so that errors do not add up; where the recording ends up to a frame too
    early, it is continued by reflection.

    Args:
        utterance: Recording and text.
        tools: Of the same configuration.
        trace: Is told which part runs.

    Returns:
        Features with T = sum of durations, M = `n_mels`, all float32 but the durations.

    Raises:
        AudioError: If the recording cannot be used.
        InputError: If the text cannot be spoken.
        AlignmentError: If text and recording cannot be aligned, or fit worse than `max_misfit`.
        FeatureError: If the alignment goes on after the end of the recording by more than a frame,
            or the utterance is too short for one analysis window.
    """
    trace = trace or Trace()
    trace.start("audio")
    audio = read_audio(utterance.audio, tools.config)
    trace.audio_seconds = len(audio.wav) / tools.config.sample_rate
    trace.start("text")
    spoken = tools.frontend(utterance.language)(utterance.text)
    trace.start("alignment")
    alignment = tools.align(utterance, audio.wav, tools.config.sample_rate, spoken)
    if alignment.score is not None:
        trace.score = alignment.score
        check_fit(alignment.score, tools.config.max_misfit)
    features = _analyse(utterance, alignment, audio.wav, tools, trace)
    trace.stop()
    return Extraction(
        features,
        audio.notices,
        features.phones,
        spoken.phones,
        spoken.out_of_vocabulary,
    )


def _analyse(
    utterance: Utterance,
    alignment: Alignment,
    recording: np.ndarray,
    tools: FeatureTools,
    trace: Trace,
) -> Features:
    """Mel, energy and f0 of the aligned span of a recording, (S,)."""
    config = tools.config
    durations = frame_durations(alignment.boundaries_s, tools.mel.config)  # (N,), or (1,): T
    start = span_start(alignment, tools.mel.config)
    wav = cut_to_frames(recording, start, int(durations.sum()), tools.mel.config)
    trace.start("mel")
    with torch.inference_mode():
        mel, energy = tools.mel.mel_and_energy(torch.from_numpy(wav)[None])  # (1, M, T), (1, T)
    trace.start("f0")
    T = mel.shape[2]
    f0 = extract_f0(
        wav,
        tools.mel.config,
        T,
        method=config.pitch_extractor,
        f0_min=config.f0_min,
        f0_max=config.f0_max,
    )
    return Features(
        id=utterance.id,
        speaker=utterance.speaker,
        phones=alignment.phones,
        durations=durations if alignment.has_times else None,
        mel=mel[0].numpy(),
        f0=f0,
        energy=energy[0].numpy(),
        start=start,
    )


def frame_durations(boundaries_s: np.ndarray, mel: MelConfig) -> np.ndarray:
    """Frames of each phone, counted from the first boundary.

    Boundaries are rounded, not durations: each lies within half a frame of its place, however long
    the utterance.

    Args:
        boundaries_s: (N + 1,) seconds.
        mel: Frame rate.

    Returns:
        (N,) int64.

    Raises:
        FeatureError: If there are no phones, or boundaries go backwards or start before 0.
    """
    frames = (boundaries_s - boundaries_s[:1]) * mel.sample_rate / mel.hop_length
    durations = np.diff(np.floor(frames + 0.5).astype(np.int64))
    if durations.size == 0 or durations.min() < 0 or boundaries_s[0] < 0:
        raise FeatureError("the alignment has no phones or goes backwards; correct or remove it")
    return durations


def span_start(alignment: Alignment, mel: MelConfig) -> int:
    """Where the aligned span begins in the recording, samples."""
    return round(float(alignment.boundaries_s[0]) * mel.sample_rate)


def cut_to_frames(wav: np.ndarray, start: int, n_frames: int, mel: MelConfig) -> np.ndarray:
    """Cuts the aligned span out of a recording, as whole frames.

    Args:
        wav: The recording, (S,).
        start: Where the span begins, samples.
        n_frames: Length of the span, frames.
        mel: Frame length and sample rate.

    Returns:
        (n_frames * hop_length,). Up to one hop after the end of the recording is its reflection.

    Raises:
        FeatureError: If the recording ends earlier than that, or the span is too short.
    """
    wanted = n_frames * mel.hop_length
    if wanted < mel.n_fft:
        raise FeatureError(
            f"only {n_frames} frames ({wanted} samples) are speech, less than one analysis window "
            f"of {mel.n_fft} samples; is the recording the one of this text?"
        )
    span = wav[start : start + wanted]
    missing = wanted - len(span)
    if missing > mel.hop_length:
        raise FeatureError(
            f"the alignment lasts {n_frames} frames, the recording {len(span) // mel.hop_length}; "
            "align this recording again"
        )
    return np.ascontiguousarray(np.pad(span, (0, missing), mode="reflect"), dtype=np.float32)
