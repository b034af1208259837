"""The acoustic model of the aligner, one HMM for each phone in its context, and its features."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from processors.alignment.hmm.chain import (
    N_STATES,
    Chain,
    Posteriors,
    Segment,
    SilencePlace,
    chain_of,
    forward_backward,
)
from processors.alignment.hmm.mixtures import Mixtures, log_likelihoods, log_mixture
from processors.alignment.hmm.tying import Tying
from utils.errors import InputError
from utils.files import replacing

FORMAT = 6  # of the file, and of the method: raised when the same corpus gives another model
OTHER = "<other>"  # any phone that is not in the training data
_METADATA_KEY = "aligner"
# Windows of neighbouring frames overlap, and derivatives repeat what cepstra say, so that frames
# are not independent: unscaled, posteriors are far too sure of the boundaries.
_EMISSION_SCALE = 0.3
_STRESS = re.compile(r"^[ˈˌ']+|[0-9]+$")  # also tones: they change the pitch more than the spectrum

RATE = 16000  # Hz
FRAME_S = 0.01
N_FEATURES = 39  # cepstra, their first and their second derivatives
_HOP = round(FRAME_S * RATE)
_WINDOW = round(0.025 * RATE)
_N_FFT = 512
_N_MELS = 26
_N_CEPSTRA = N_FEATURES // 3
_LOWEST_HZ, _HIGHEST_HZ = 64.0, 7600.0
_PREEMPHASIS = 0.97
_FLOOR = 1e-10  # of power: digital silence stays finite
_REACH = 2  # frames on each side that the regression of a derivative uses


def mfcc(wav: np.ndarray, sample_rate: int) -> np.ndarray:
    """Computes mel-frequency cepstral coefficients and derivatives, (S,) in [-1, 1] -> (T, 39).

    Davis and Mermelstein 1980, "Comparison of parametric representations for monosyllabic word
    recognition". Frame t covers the 10 ms from t * 10 ms on, and its window of 25 ms has the same
    centre, so that boundaries between frames are boundaries in the audio, without a lead. The first
    column is the loudness; float32.
    """
    import soxr

    if sample_rate != RATE:
        wav = soxr.resample(wav, sample_rate, RATE)
    T = len(wav) // _HOP
    sharp = np.append(wav[:1], wav[1:] - _PREEMPHASIS * wav[:-1])
    padded = np.pad(sharp, (_WINDOW, _WINDOW + _HOP))
    first = _WINDOW + _HOP // 2 - _WINDOW // 2  # of the samples of frame 0
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[first::_HOP][:T]
    spectrum = np.fft.rfft(frames * np.hanning(_WINDOW), _N_FFT)
    log_mel = np.log(np.abs(spectrum) ** 2 @ _filters() + _FLOOR)  # (T, 26)
    mel, order = np.arange(_N_MELS)[:, None], np.arange(_N_CEPSTRA)
    cosines = np.sqrt(2 / _N_MELS) * np.cos(np.pi * order * (mel + 0.5) / _N_MELS)  # (26, 13)
    static = log_mel @ cosines  # (T, 13)
    deltas = _deltas(static)
    return np.concatenate([static, deltas, _deltas(deltas)], axis=1).astype(np.float32)


@lru_cache(maxsize=1)
def _filters() -> np.ndarray:
    """Returns triangles on the mel scale, (257, 26)."""
    lowest, highest = (2595 * np.log10(1 + hz / 700) for hz in (_LOWEST_HZ, _HIGHEST_HZ))
    edges = 700 * (10 ** (np.linspace(lowest, highest, _N_MELS + 2) / 2595) - 1)
    hz = np.arange(_N_FFT // 2 + 1)[:, None] * RATE / _N_FFT
    rising = (hz - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - hz) / (edges[2:] - edges[1:-1])
    return np.maximum(np.minimum(rising, falling), 0)


def _deltas(values: np.ndarray) -> np.ndarray:
    """Computes the slope of the regression line through the frames around each, (T, D)."""
    T = len(values)
    padded = np.pad(values, ((_REACH, _REACH), (0, 0)), mode="edge")
    steps = range(1, _REACH + 1)
    rise = sum(k * (padded[_REACH + k :][:T] - padded[_REACH - k :][:T]) for k in steps)
    return np.asarray(rise) / (2 * sum(k * k for k in steps))


def unit_of(phone: str) -> str:
    """Returns the acoustic unit of a phone: the phone without marks of stress and tone."""
    return _STRESS.sub("", phone) or phone


def norm_of(frames: np.ndarray) -> np.ndarray:
    """Returns the mean and deviation of a speaker's features, (T, D) -> (2, D)."""
    return np.array([frames.mean(axis=0), np.maximum(frames.std(axis=0), 1e-3)])


class HmmAlignment(NamedTuple):
    """An utterance in its recording."""

    ends_s: np.ndarray  # end of each segment, never decreasing, (N,) seconds
    emissions: np.ndarray  # log-likelihood of the frames under each distribution, (T, P)
    background: np.ndarray  # the same under the background model, (T,)


@dataclass(frozen=True)
class PhoneHmm:
    """A hidden Markov model of each acoustic unit in each context, of N_STATES states."""

    units: tuple[str, ...]  # names; the first is silence, the last `OTHER`
    # which distribution a state has in its context; the first of all P of them is that of silence,
    # the last N_STATES are those of `OTHER`
    tying: Tying
    mixtures: Mixtures  # one for each distribution, (P, ...)
    stay: np.ndarray  # probability of staying in a state for another frame, (P,)
    silence_shares: dict[SilencePlace, float]  # probability of silence, by place
    norms: dict[str, np.ndarray]  # mean and deviation of the features, by speaker, (2, D)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {unit: number for number, unit in enumerate(self.units)}

    def numbers_of(self, phones: Iterable[str]) -> list[int]:
        """Returns the unit of each phone."""
        return [self._numbers.get(unit_of(phone), self._numbers[OTHER]) for phone in phones]

    def normalized(self, frames: np.ndarray, speaker: str) -> np.ndarray:
        """Normalises features (T, D), of an unknown speaker by these frames alone; float32."""
        mean, deviation = self.norms[speaker] if speaker in self.norms else norm_of(frames)
        return ((frames - mean) / deviation).astype(np.float32)

    def chain(self, segments: Sequence[Segment]) -> Chain:
        """Returns the states of an utterance."""
        return chain_of(segments, self.tying.pdfs_of(segments), self.stay, self.silence_shares)

    def posteriors(self, frames: np.ndarray, chain: Chain) -> Posteriors:
        """Runs the E-step of an utterance, from its normalised features, (T, D)."""
        pdfs, columns = np.unique(chain.pdfs, return_inverse=True)
        emissions = log_likelihoods(frames, self.mixtures.gaussians, pdfs)
        return forward_backward(_EMISSION_SCALE * emissions, columns, chain)

    def align(self, frames: np.ndarray, segments: Sequence[Segment]) -> HmmAlignment | None:
        """Finds the segments of an utterance by their expected lengths over all paths.

        From its normalised features, (T, D); None if no path leads through them.
        """
        chain = self.chain(segments)
        unscaled = log_likelihoods(frames, self.mixtures.gaussians, np.arange(len(self.stay)))
        emissions = _EMISSION_SCALE * unscaled
        pdfs, columns = np.unique(chain.pdfs, return_inverse=True)
        posteriors = forward_backward(emissions[:, pdfs], columns, chain)
        if not np.isfinite(posteriors.log_likelihood):
            return None
        lengths = posteriors.occupancy.sum(axis=0).reshape(len(segments), N_STATES).sum(axis=1)
        counts = self.mixtures.counts.sum(axis=1)
        counts[-N_STATES:] = 0  # `OTHER` fits any sound a little
        log_shares = np.log(np.maximum(counts, 1e-9) / counts.sum())
        background = _EMISSION_SCALE * log_mixture(unscaled, log_shares)
        ends_s = np.cumsum(lengths) * FRAME_S
        return HmmAlignment(ends_s, emissions, background)


def save_model(path: Path, model: PhoneHmm, origin: dict[str, Any]) -> None:
    """Writes a model and what it was trained on to one safetensors file, atomically."""
    from safetensors.numpy import save

    about = {"format": FORMAT, "origin": origin, "units": model.units}
    about |= {"silence_shares": model.silence_shares, "speakers": list(model.norms)}
    tensors = {
        "counts": model.mixtures.counts,
        "means": model.mixtures.means,
        "variances": model.mixtures.variances,
        "stay": model.stay,
        "norms": np.array([*model.norms.values()]),  # (speakers, 2, D)
        **{f"tying.{name}": array for name, array in model.tying._asdict().items()},
    }
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    with replacing(path) as temporary:
        temporary.write_bytes(save(tensors, metadata={_METADATA_KEY: json.dumps(about)}))


def read_origin(path: Path) -> dict[str, Any] | None:
    """Reads the origin of a model, as `save_model` wrote it; None without a readable file."""
    try:
        return dict(_read_about(path)["origin"])
    except InputError:
        return None


def load_model(path: Path) -> PhoneHmm:
    """Reads a model."""
    from safetensors.numpy import load_file

    about = _read_about(path)
    tensors = load_file(path)
    norms = dict(zip(about["speakers"], tensors["norms"], strict=True))
    mixtures = Mixtures(tensors["counts"], tensors["means"], tensors["variances"])
    units = tuple(about["units"])
    tying = Tying(**{name: tensors[f"tying.{name}"] for name in Tying._fields})
    return PhoneHmm(units, tying, mixtures, tensors["stay"], about["silence_shares"], norms)


def _read_about(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            about = json.loads((file.metadata() or {})[_METADATA_KEY])
        if about["format"] != FORMAT:
            raise ValueError(f"it is of version {about['format']}, expected {FORMAT}")
    except (OSError, SafetensorError, LookupError, ValueError) as error:
        fault = f"{path}: no model of the aligner hmm can be read ({error})"
        raise InputError(f"{fault}; remove the file, and stage 1 trains it again") from error
    return dict(about)
