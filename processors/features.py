"""From one recording and its text to the features that models are trained on."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from config.schema import PreprocessConfig
from modules.mel import MelConfig, MelSpectrogram
from preprocessors.manifest import Utterance
from processors.alignment import Aligner, make_aligner
from processors.audio import read_audio
from processors.pitch import extract_f0, require_extractor
from processors.records import Alignment, Features, SpokenText
from processors.text.frontend import TextFrontend


class FeatureError(ValueError):
    """An utterance whose parts do not fit together; the message says how."""


class Extraction(NamedTuple):
    """Features of one utterance and what was noticed on the way."""

    features: Features
    text_phones: tuple[str, ...]  # what the text frontend says; an aligner may say it otherwise
    out_of_vocabulary: tuple[str, ...]  # words pronounced by rule
    notices: tuple[str, ...]  # about the audio


@dataclass
class Trace:
    """How far the work on an utterance has come, for the report and for rejections.

    Attributes:
        part: What is being done: "audio", "text", "alignment", "mel" or "f0".
        cpu_seconds: CPU time of this process by part, summed over utterances.
        audio_seconds: Length of the recording as far as it could be read, else 0.
    """

    part: str = "audio"
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    audio_seconds: float = 0.0
    _since: float = field(default_factory=time.process_time)

    def start(self, part: str) -> None:
        """Ends the running part and starts another one."""
        self.stop()
        self.part = part

    def stop(self) -> None:
        """Adds the time since the last call to the running part."""
        now = time.process_time()
        self.cpu_seconds[self.part] = self.cpu_seconds.get(self.part, 0.0) + now - self._since
        self._since = now


class FeatureTools:
    """What a process needs for any number of utterances, built once: it costs more than they do.

    Args:
        config: Stage 1.
        dataset_root: The corpus, where alignments may lie.

    Raises:
        InputError: If the aligner cannot be built, or a package is missing.
    """

    def __init__(self, config: PreprocessConfig, dataset_root: Path) -> None:
        require_extractor(config.pitch_extractor)
        self.config = config
        self.mel = MelSpectrogram(config.mel)
        self.align: Aligner = make_aligner(config, dataset_root)
        self._frontends: dict[str, Callable[[str], SpokenText]] = {}

    def frontend(self, language: str) -> Callable[[str], SpokenText]:
        """The text frontend of a language.

        Raises:
            InputError: If there is none for it, or what it needs is not installed.
        """
        if language not in self._frontends:
            self._frontends[language] = TextFrontend(self.config.text, language)
        return self._frontends[language]


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
        AlignmentError: If text and recording cannot be aligned.
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
    durations = frame_durations(alignment.boundaries_s, tools.mel.config)
    wav = cut_to_frames(audio.wav, alignment, int(durations.sum()), tools.mel.config)
    features = _analyse(utterance, alignment.phones, durations, wav, tools, trace)
    trace.stop()
    return Extraction(features, spoken.phones, spoken.out_of_vocabulary, audio.notices)


def _analyse(
    utterance: Utterance,
    phones: tuple[str, ...],
    durations: np.ndarray,
    wav: np.ndarray,
    tools: FeatureTools,
    trace: Trace,
) -> Features:
    """Mel, energy and f0 of audio that is cut to whole frames."""
    config = tools.config
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
        phones=phones,
        durations=durations,
        mel=mel[0].numpy(),
        f0=f0,
        energy=energy[0].numpy(),
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


def cut_to_frames(
    wav: np.ndarray, alignment: Alignment, n_frames: int, mel: MelConfig
) -> np.ndarray:
    """Cuts the aligned span out of a recording, as whole frames.

    Args:
        wav: The recording, (S,).
        alignment: Its first boundary is where the span starts.
        n_frames: Length of the span, frames.
        mel: Frame length and sample rate.

    Returns:
        (n_frames * hop_length,). Up to one hop after the end of the recording is its reflection.

    Raises:
        FeatureError: If the recording ends earlier than that, or the span is too short.
    """
    start = round(float(alignment.boundaries_s[0]) * mel.sample_rate)
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
