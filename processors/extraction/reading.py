"""The first part of stage 1: the recording, and for acoustic models the phones of its text."""

from collections.abc import Callable, Iterable

import numpy as np

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.audio.files import read_audio
from processors.extraction.shards import Trace
from processors.records import SpokenText
from processors.text.frontend import TextFrontend


def read_recording(utterance: Utterance, config: PreprocessConfig, trace: Trace) -> np.ndarray:
    """Reads the audio of an utterance, (S,) float32; raises AudioError if it cannot be used."""
    trace.start("audio")
    wav, trace.notices = read_audio(utterance.audio, config)
    trace.audio_seconds = len(wav) / config.sample_rate
    return wav


class UtteranceReader:
    """Reads recordings and texts; built once per process."""

    def __init__(self, config: PreprocessConfig) -> None:
        self._config = config
        self._frontends: dict[str, Callable[[str], SpokenText]] = {}

    def frontend(self, language: str) -> Callable[[str], SpokenText]:
        """The text frontend of a language."""
        if language not in self._frontends:
            self._frontends[language] = TextFrontend(self._config.text, language)
        return self._frontends[language]

    def prepare(self, utterances: Iterable[Utterance]) -> None:
        """Loads the text frontends of these utterances; raises InputError as `frontend` does."""
        for language in {utterance.language for utterance in utterances}:
            self.frontend(language)

    def read(self, utterance: Utterance, trace: Trace) -> tuple[np.ndarray, SpokenText]:
        """Reads the recording, (S,) float32, and the phones of the text."""
        wav = read_recording(utterance, self._config, trace)
        trace.start("text")
        spoken = self.frontend(utterance.language)(utterance.text)
        unspoken = (f"the text holds the sign {s}, which is not spoken" for s in spoken.unspoken)
        trace.notices = (*trace.notices, *unspoken)
        return wav, spoken
