"""From a recording to what vocoders are trained on: all of it, and its mel."""

from collections.abc import Sequence

import numpy as np
import torch

from config.schema import PreprocessConfig
from modules.mel import MelSpectrogram
from preprocessors.manifest import Utterance
from processors.audio.files import read_audio
from processors.audio.pcm import to_pcm16
from processors.extraction.trace import Trace
from processors.records import Extraction, Recording

_PIECE_FRAMES = 4096  # about 48 s; an STFT takes some twenty times the memory of the audio


class RecordingTools:
    """What a process needs for any number of recordings.

    Args:
        config: Stage 1; rate, mel and limits of length count.
    """

    def __init__(self, config: PreprocessConfig) -> None:
        self.config = config
        self.mel = MelSpectrogram(config.mel)

    def prepare(self, utterances: Sequence[Utterance]) -> None:
        """All recordings are alike."""

    def extract(self, utterance: Utterance, trace: Trace) -> Extraction:
        """Makes the mel of a whole recording, which is cut to whole frames at its end.

        Raises:
            AudioError: If it cannot be used.
        """
        trace.start("audio")
        audio = read_audio(utterance.audio, self.config)
        trace.audio_seconds = len(audio.wav) / self.config.sample_rate
        trace.start("mel")
        hop = self.config.hop_size
        wav = audio.wav[: len(audio.wav) // hop * hop]
        mel = mel_of(wav, self.mel)
        record = Recording(utterance.id, utterance.speaker, mel, to_pcm16(wav))
        trace.stop()
        return Extraction(record, audio.notices)


def mel_of(wav: np.ndarray, mel: MelSpectrogram, piece: int = _PIECE_FRAMES) -> np.ndarray:
    """Computes a log-mel piece by piece, so that an hour takes no more memory than a minute.

    Args:
        wav: (T * hop_length,) float32 in [-1, 1].
        mel: Computes a piece.
        piece: Frames per piece.

    Returns:
        (M, T) float32.
    """
    hop = mel.config.hop_length
    T = len(wav) // hop
    margin = -(-mel.config.n_fft // hop)  # frames that the reflection at a piece's edge reaches
    whole = np.empty((mel.config.n_mels, T), dtype=np.float32)
    for first in range(0, T, piece):
        last = min(first + piece, T)
        begin, end = max(0, first - margin), min(T, last + margin)
        with torch.inference_mode():
            part = mel(torch.from_numpy(wav[begin * hop : end * hop])[None])[0]  # (M, end - begin)
        whole[:, first:last] = part[:, first - begin : last - begin].numpy()
    return whole
