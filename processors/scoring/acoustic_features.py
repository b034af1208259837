"""One sound, analysed every 5 ms for metrics that compare two of them."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import soxr

from modules.mel import MelConfig
from processors.audio.cheaptrick import log_envelopes
from processors.audio.mel_cepstrum import mel_cepstra
from processors.audio.pitch import extract_f0
from processors.records import TimedPhone
from processors.scoring.user_models import Encoder

# Hz: what is above half of it is not compared. Most mels end at 8 kHz, and what a vocoder makes up
# above, or leaves out, would outweigh the rest: copies by Griffin-Lim have 3.7 dB of mel-cepstral
# distortion below 8 kHz, and 8.4 dB below 11.
HIGHEST_RATE = 16000
SILENCE_DB = -40.0  # below the loudest frame: as good as silent
_SILENT_DB = -80.0  # relative to full scale: nothing is said where no frame is louder
_FRAME_S = 0.005
_MARGIN_FRAMES = 10  # of silence before and after: no window at an end sees less than elsewhere
_ENERGY_WINDOW_S = 0.025
_NOISE_DB = -60.0  # of the noise under which an envelope is not followed, below the sound


class FrameRange(NamedTuple):
    """Frames from `start` up to, but without, `end`."""

    start: int
    end: int


@dataclass(frozen=True, eq=False)
class AcousticFeatures:
    """A sound; each analysis is made when it is asked for, once.

    There are T frames; the first ten and the last ten lie in silence before and after the sound.
    `times_s` says when each is.

    Attributes:
        wav: (S,) in [-1, 1].
        sample_rate: Hz.
        phones: Phones and pauses with times; none where nobody aligned them.
        encoder: The user's, of voices.
    """

    wav: np.ndarray
    sample_rate: int
    phones: tuple[TimedPhone, ...] = ()
    encoder: Encoder | None = None
    _at_other_rates: dict[int, "AcousticFeatures"] = field(default_factory=dict, repr=False)

    def at(self, sample_rate: int) -> "AcousticFeatures":
        """The same at another sample rate, which is kept for the next that asks for it."""
        if sample_rate == self.sample_rate:
            return self
        if sample_rate not in self._at_other_rates:
            wav = soxr.resample(self.wav, self.sample_rate, sample_rate)  # another (S,)
            self._at_other_rates[sample_rate] = AcousticFeatures(wav, sample_rate, self.phones)
        return self._at_other_rates[sample_rate]

    @cached_property
    def embedding(self) -> np.ndarray | None:
        """What the encoder says of the voice, (D,); None where there is no encoder."""
        return None if self.encoder is None else self.encoder(self.wav, self.sample_rate)

    @property
    def hop_length(self) -> int:
        """Samples per frame: 5 ms, to a whole sample."""
        return round(_FRAME_S * self.sample_rate)

    @property
    def frame_s(self) -> float:
        """Seconds per frame."""
        return self.hop_length / self.sample_rate

    @property
    def n_frames(self) -> int:
        """T, ten of them before and ten after the sound."""
        return 2 * _MARGIN_FRAMES - (-len(self.wav) // self.hop_length)

    @property
    def times_s(self) -> np.ndarray:
        """Seconds from the first sample to the middle of each frame, (T,); below 0 before it."""
        return (np.arange(self.n_frames) - _MARGIN_FRAMES) * self.frame_s

    @cached_property
    def samples(self) -> np.ndarray:
        """The sound with silence before and after, and no constant offset, (T * hop_length,).

        Silence throughout if it is empty, or not finite. Frame t is centred on sample
        t * hop_length.
        """
        samples = np.zeros(self.n_frames * self.hop_length)
        if len(self.wav) and np.isfinite(self.wav).all():
            centred = self.wav - np.mean(self.wav, dtype=np.float64)
            samples[_MARGIN_FRAMES * self.hop_length :][: len(centred)] = centred
        return samples

    @cached_property
    def energy(self) -> np.ndarray:
        """Level of each frame, dB relative to full scale, (T,).

        The root mean square under a Hann window of 25 ms. What is more than 40 dB below the loudest
        frame is set to that, so that it does not matter how silent silence is.
        """
        n = round(_ENERGY_WINDOW_S * self.sample_rate) // 2 * 2 + 1
        window = np.hanning(n + 2)[1:-1]  # (n,)
        squares = np.pad(self.samples**2, n // 2)
        frames = np.lib.stride_tricks.sliding_window_view(squares, n)[:: self.hop_length]  # (T, n)
        power = np.einsum("tn,n->t", frames, window / window.sum())
        level = 10 * np.log10(np.maximum(power, np.finfo(np.float64).tiny))
        return np.maximum(level, level.max() + SILENCE_DB)

    @cached_property
    def sound(self) -> FrameRange:
        """From the first to the last frame that is no silence; empty where there is none.

        Silence is 40 dB below the loudest frame, or less than -80 dB of full scale throughout.
        """
        loudest = self.energy.max()
        if loudest < _SILENT_DB:
            return FrameRange(0, 0)
        heard = np.flatnonzero(self.energy > loudest + SILENCE_DB)
        return FrameRange(int(heard[0]), int(heard[-1]) + 1)

    @cached_property
    def f0(self) -> np.ndarray:
        """Fundamental frequency (processors.audio.pitch), Hz, 0 where unvoiced, (T,)."""
        grid = MelConfig(
            sample_rate=self.sample_rate, hop_length=self.hop_length, f_max=self.sample_rate / 2
        )
        return extract_f0(self.samples, grid, self.n_frames)

    @cached_property
    def cepstra(self) -> np.ndarray:
        """Mel-cepstra of order 24 of CheapTrick's envelope, without that of the level, (T, 24).

        White noise 60 dB below the sound is added to the envelope, which thus hardly depends on
        what is below hearing, and not at all on the level.
        """
        start, end = self.sound
        sound = self.samples[start * self.hop_length : end * self.hop_length]
        floor = np.mean(sound**2) * 10 ** (_NOISE_DB / 10)
        envelopes = log_envelopes(self.samples, self.sample_rate, self.f0, self.hop_length, floor)
        parts = [mel_cepstra(envelope, self.sample_rate)[:, 1:] for envelope in envelopes]
        return np.concatenate(parts)
