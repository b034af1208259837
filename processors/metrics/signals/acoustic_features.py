"""Acoustic features of a signal every 5 ms, and of its speaker, for metrics of two signals.

The built-in speaker encoder is GE2E (Wan et al. 2018, arXiv:1710.10467): three LSTM layers on mels
of 1.6 s; the embedding of an utterance is the mean over such windows. The package `resemblyzer` has
the network and its weights. Its voice activity detection needs a package that pip compiles, and
changes nothing for read speech: the equal error rate is 3 % with and without (18 speakers of six
corpora). The ends are cut by Arion's own instead, and the level is fixed: the similarity of a
recording to itself 20 dB lower would be 0.6 to 0.8.
"""

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import soxr

from modules.mel import MelConfig
from processors.audio.mel_cepstrum import log_envelopes, mel_cepstra
from processors.audio.pitch import extract_f0
from processors.audio.speech_level import speech_activity
from processors.metrics.recognition.user_models import SpeakerEncoder
from processors.records import TimedPhone
from utils.imports import without_modules
from utils.parallel import torch_threads

# Hz; the band above half of it is not compared. Most mels end at 8 kHz, and what a vocoder adds or
# lacks above would dominate: copies by Griffin-Lim have a mel-cepstral distortion of 3.7 dB below
# 8 kHz, and of 8.4 dB below 11 kHz.
HIGHEST_RATE = 16000
SILENCE_DB = -40.0  # relative to the loudest frame
_SILENT_DB = -80.0  # relative to full scale: a signal without a louder frame is silent
_FRAME_S = 0.005
_MARGIN_FRAMES = 10  # of silence on either side, so that windows at the ends are complete
_ENERGY_WINDOW_S = 0.025
_NOISE_DB = -60.0  # of the white noise added to the envelope, relative to the speech

BUILT_IN = "GE2E of the package resemblyzer"
SHORTEST_S = 1.0  # half a second of a recording has a similarity of 0.65 to the whole, 1 s of 0.8
_ENCODER_RATE = 16000  # Hz
_LEVEL_DB = -30  # of the training data, RMS relative to full scale


@dataclass(frozen=True, eq=False)
class AcousticFeatures:
    """A signal and its features, each computed on first use.

    There are T frames. The first ten and the last ten lie in silence that is added on either side;
    `times_s` holds their times.
    """

    wav: np.ndarray  # (S,) in [-1, 1]
    sample_rate: int  # Hz
    phones: tuple[TimedPhone, ...] = ()  # phones and pauses with times; empty where unknown
    encoder: SpeakerEncoder | None = None  # the user's; None for the built-in one
    _at_other_rates: dict[int, "AcousticFeatures"] = field(default_factory=dict, repr=False)

    def at(self, sample_rate: int) -> "AcousticFeatures":
        """Returns the same signal at another sample rate, resampled once."""
        if sample_rate == self.sample_rate:
            return self
        if sample_rate not in self._at_other_rates:
            wav = soxr.resample(self.wav, self.sample_rate, sample_rate)  # another (S,)
            other = AcousticFeatures(wav, sample_rate, self.phones, self.encoder)
            self._at_other_rates[sample_rate] = other
        return self._at_other_rates[sample_rate]

    @cached_property
    def embedding(self) -> np.ndarray | None:
        """Speaker embedding, (D,); None where the built-in encoder finds too little speech."""
        return (self.encoder or encode_speaker)(self.wav, self.sample_rate)

    @property
    def hop_length(self) -> int:
        """Samples per frame: 5 ms, rounded."""
        return round(_FRAME_S * self.sample_rate)

    @property
    def frame_s(self) -> float:
        """Seconds per frame."""
        return self.hop_length / self.sample_rate

    @property
    def n_frames(self) -> int:
        """T, with ten frames on either side of the signal."""
        return 2 * _MARGIN_FRAMES - (-len(self.wav) // self.hop_length)

    @property
    def times_s(self) -> np.ndarray:
        """Times of the centres of the frames, (T,); 0 is the first sample of the signal."""
        return (np.arange(self.n_frames) - _MARGIN_FRAMES) * self.frame_s

    @cached_property
    def samples(self) -> np.ndarray:
        """The signal without offset and with silence on either side, (T * hop_length,).

        Zeros if it is empty or not finite. Frame t is centred on sample t * hop_length.
        """
        samples = np.zeros(self.n_frames * self.hop_length)
        if len(self.wav) and np.isfinite(self.wav).all():
            centred = self.wav - np.mean(self.wav, dtype=np.float64)
            samples[_MARGIN_FRAMES * self.hop_length :][: len(centred)] = centred
        return samples

    @cached_property
    def energy(self) -> np.ndarray:
        """Level of each frame, dB relative to full scale, (T,).

        The root mean square under a Hann window of 25 ms. Values more than 40 dB below the loudest
        frame are raised to that limit, so that the level of silence does not matter.
        """
        n = round(_ENERGY_WINDOW_S * self.sample_rate) // 2 * 2 + 1
        window = np.hanning(n + 2)[1:-1]  # (n,)
        squares = np.pad(self.samples**2, n // 2)
        frames = np.lib.stride_tricks.sliding_window_view(squares, n)[:: self.hop_length]  # (T, n)
        power = np.einsum("tn,n->t", frames, window / window.sum())
        level = 10 * np.log10(np.maximum(power, np.finfo(np.float64).tiny))
        return np.maximum(level, level.max() + SILENCE_DB)

    @cached_property
    def sound(self) -> slice:
        """From the first to the last frame that is not silent; empty where there is none.

        Silent are frames 40 dB below the loudest, and signals below -80 dB of full scale.
        """
        loudest = self.energy.max()
        if loudest < _SILENT_DB:
            return slice(0, 0)
        loud = np.flatnonzero(self.energy > loudest + SILENCE_DB)
        return slice(int(loud[0]), int(loud[-1]) + 1)

    @cached_property
    def f0(self) -> np.ndarray:
        """Fundamental frequency (processors.audio.pitch), Hz, 0 where unvoiced, (T,)."""
        rate = self.sample_rate
        frames = MelConfig(sample_rate=rate, hop_length=self.hop_length, f_max=rate / 2)
        return extract_f0(self.samples, frames, self.n_frames)

    @cached_property
    def cepstra(self) -> np.ndarray:
        """Mel-cepstral coefficients 1 to 24 of CheapTrick's spectral envelope, (T, 24).

        White noise 60 dB below the speech is added to the envelope: the coefficients hardly depend
        on inaudible parts, and not at all on the level.
        """
        hop = self.hop_length
        sound = self.samples[self.sound.start * hop : self.sound.stop * hop]
        floor = np.mean(sound**2) * 10 ** (_NOISE_DB / 10)
        envelopes = log_envelopes(self.samples, self.sample_rate, self.f0, hop, floor)
        parts = [mel_cepstra(envelope, self.sample_rate)[:, 1:] for envelope in envelopes]
        return np.concatenate(parts)


def encode_speaker(wav: np.ndarray, sample_rate: int) -> np.ndarray | None:
    """Computes the speaker embedding, (256,) of length 1; None for less than 1 s of speech."""
    activity = speech_activity(wav, sample_rate)
    if activity is None or activity.end_s - activity.start_s < SHORTEST_S:
        return None
    speech = wav[round(activity.start_s * sample_rate) : round(activity.end_s * sample_rate)]
    speech = soxr.resample(speech, sample_rate, _ENCODER_RATE)  # another (S,)
    gain = 10 ** (_LEVEL_DB / 20) / np.sqrt(np.mean(speech**2))
    with torch_threads(1):
        return _network().embed_utterance(gain * speech)


@cache
def _network() -> Any:  # noqa: ANN401  # the package has no types
    """Returns the package's network, one per process: loading takes 0.2 s, its imports 0.5 s."""
    with without_modules("webrtcvad"):
        from resemblyzer import VoiceEncoder
    return VoiceEncoder("cpu", verbose=False)
