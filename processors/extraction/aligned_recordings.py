"""Recordings cut to the span that an acoustic model's features were made of."""

from collections.abc import Sequence

import numpy as np

from config.schema import PreprocessConfig
from modules.mel import MelConfig, MelSpectrogram
from preprocessors.manifest import Utterance
from processors.audio.files import read_audio
from processors.audio.pcm import to_pcm16
from processors.dataset.store import FeatureStore
from processors.extraction.recordings import mel_of
from processors.extraction.trace import Trace
from processors.records import Extraction, Features, Recording
from processors.text.symbols import Vocabulary
from utils.errors import UtteranceError

_SAME_MEL = 0.05  # mean difference: another version of PyTorch gives 1e-6, another take 1 and more


class SpanError(UtteranceError):
    """A recording that its features do not belong to; the message says why."""


class AlignedTools:
    """Reads recordings that features were made of.

    Args:
        config: Stage 1 of the vocoder; its mel may have another padding than the features'.
        store: The features.
        vocabulary: Phones that the acoustic model knows.
    """

    def __init__(
        self, config: PreprocessConfig, store: FeatureStore, vocabulary: Vocabulary
    ) -> None:
        self._config = config
        self._store = store
        self._vocabulary = vocabulary
        self._features: dict[str, Features] = {}
        self._mel = MelSpectrogram(store.mel)
        # the window of a frame begins at the same sample in both definitions
        self._shift = config.mel.edge_samples[0] - store.mel.edge_samples[0]

    def prepare(self, utterances: Sequence[Utterance]) -> None:
        """Reads the features of these recordings alone.

        Raises:
            InputError: If the store is damaged or lacks one: no fault of a recording.
        """
        self._features = {u.id: self._store.read(u.id) for u in utterances}

    def extract(self, utterance: Utterance, trace: Trace) -> Extraction:
        """Cuts a recording to the span of its features; `prepare` has read them.

        Returns:
            Audio of T frames and the true mel, as the features have it.

        Raises:
            AudioError: If the recording cannot be used.
            InputError: If the model does not know one of its phones.
            SpanError: If it is not the one that the features were made of.
        """
        trace.start("audio")
        audio = read_audio(utterance.audio, self._config)
        trace.audio_seconds = len(audio.wav) / self._config.sample_rate
        trace.start("mel")
        features = self._features[utterance.id]
        self._vocabulary.ids(features.phones)
        self._compare(audio.wav, features)
        T = features.mel.shape[1]
        start = features.start + self._shift
        wav = cut_span(audio.wav, start, T, self._config.mel)
        trace.stop()
        record = Recording(utterance.id, features.speaker, features.mel, to_pcm16(wav), start)
        return Extraction(record, audio.notices)

    def _compare(self, wav: np.ndarray, features: Features) -> None:
        """Makes sure that the features are those of this recording."""
        span = cut_span(wav, features.start, features.mel.shape[1], self._store.mel)
        difference = float(np.abs(mel_of(span, self._mel) - features.mel).mean())
        if difference > _SAME_MEL:
            raise SpanError(
                f"its mel differs from the features' by {difference:.2f} in the mean, so that they "
                "are of another recording; run stage 1 of the acoustic model again"
            )


def cut_span(wav: np.ndarray, start: int, n_frames: int, mel: MelConfig) -> np.ndarray:
    """Cuts whole frames out of a recording; less than two hops beyond its ends are reflected.

    Args:
        wav: The recording, (S,).
        start: First sample; below 0 where the span begins before the recording.
        n_frames: Length of the span.
        mel: Frame length.

    Returns:
        (n_frames * hop_length,).

    Raises:
        SpanError: If the recording is shorter than that.
    """
    end = start + n_frames * mel.hop_length
    before, after = max(0, -start), max(0, end - len(wav))
    span = wav[max(0, start) : end]
    if max(before, after) >= min(2 * mel.hop_length, len(span)):
        raise SpanError(
            f"the features end {after} samples after the recording; run stage 1 of the acoustic"
            " model again"
        )
    return np.pad(span, (before, after), mode="reflect")
