"""The first part of stage 1 for acoustic models: the recording and the phones of its text."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.audio.files import read_audio
from processors.extraction.shards import Trace
from processors.records import SpokenText
from processors.text.frontend import TextFrontend


class ReadUtterance(NamedTuple):
    """An utterance before its alignment."""

    wav: np.ndarray  # (S,) float32 in [-1, 1], mono, at the configured rate
    spoken: SpokenText
    notices: tuple[str, ...]  # about recording and text, one line each


class UtteranceReader:
    """Reads recordings and texts; built once per process.

    Args:
        config: Stage 1.
    """

    def __init__(self, config: PreprocessConfig) -> None:
        self._config = config
        self._frontends: dict[str, Callable[[str], SpokenText]] = {}

    def frontend(self, language: str) -> Callable[[str], SpokenText]:
        """The text frontend of a language.

        Raises:
            InputError: If there is none for it, or what it needs is not installed.
        """
        if language not in self._frontends:
            self._frontends[language] = TextFrontend(self._config.text, language)
        return self._frontends[language]

    def prepare(self, utterances: Sequence[Utterance]) -> None:
        """Loads the text frontends of these utterances.

        Raises:
            InputError: If there is none for one of their languages: no fault of an utterance.
        """
        for language in {utterance.language for utterance in utterances}:
            self.frontend(language)

    def read(self, utterance: Utterance, trace: Trace) -> ReadUtterance:
        """Reads one utterance.

        Args:
            utterance: Recording and text.
            trace: Records progress and the length of the recording.

        Raises:
            AudioError: If the recording cannot be used.
            InputError: If the text has no pronunciation.
        """
        trace.start("audio")
        audio = read_audio(utterance.audio, self._config)
        trace.audio_seconds = len(audio.wav) / self._config.sample_rate
        trace.start("text")
        spoken = self.frontend(utterance.language)(utterance.text)
        unspoken = (f"the text holds the sign {s}, which is not spoken" for s in spoken.unspoken)
        return ReadUtterance(audio.wav, spoken, (*audio.notices, *unspoken))
