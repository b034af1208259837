"""Statistics of f0 and energy over the training split, per speaker and pooled."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import reduce
from itertools import product
from pathlib import Path

import numpy as np
import torch

from config.preprocess import PreprocessConfig
from modules.variance.adaptor import average_by_phone, interpolate_unvoiced
from processors.dataset.generated import FeatureSource
from processors.dataset.store import Prosody
from utils.config import build_complete
from utils.errors import InputError
from utils.files import read_json


@dataclass(frozen=True)
class Stat:
    """Mean, standard deviation and range of a quantity, in its own unit.

    `std` is never 0: where all values are equal, or there are none, it is 1, so that normalising
    by it stays defined. Without values, mean, min and max are 0.
    """

    mean: float
    std: float
    min: float
    max: float
    count: int = 1  # values seen: the weight when statistics are merged

    def merge(self, other: "Stat") -> "Stat":
        """Returns statistics of both sets of values together."""
        if self.count == 0 or other.count == 0:
            return self if other.count == 0 else other
        return _Moments.of(self).joined(_Moments.of(other)).stat()


@dataclass(frozen=True)
class SpeakerStats:
    """Statistics of one speaker, or of several together.

    Where durations are not known, those over phones are the ones over frames.
    """

    f0_frame: Stat  # voiced frames, Hz
    f0_phone: Stat  # means over phones of the interpolated contour, Hz; without unvoiced utterances
    energy_frame: Stat  # L2 norm of the STFT magnitude, every frame
    energy_phone: Stat  # means over phones
    seconds: float  # audio counted

    def merge(self, other: "SpeakerStats") -> "SpeakerStats":
        """Returns statistics of both together."""
        merged = {name: getattr(self, name).merge(getattr(other, name)) for name in _QUANTITIES}
        return SpeakerStats(**merged, seconds=self.seconds + other.seconds)


_QUANTITIES = tuple(field.name for field in fields(SpeakerStats) if field.name != "seconds")


@dataclass(frozen=True)
class CorpusStats:
    """Statistics by speaker name."""

    speakers: dict[str, SpeakerStats]

    @property
    def pooled(self) -> SpeakerStats:
        """All speakers together, each value with the same weight."""
        if not self.speakers:
            raise ValueError("statistics without a speaker; run stage 1 again")
        return reduce(SpeakerStats.merge, (self.speakers[name] for name in sorted(self.speakers)))

    def merge(self, other: "CorpusStats") -> "CorpusStats":
        """Returns statistics of two datasets; a speaker in both has the values of both."""
        merged = dict(self.speakers)
        for name, stats in other.speakers.items():
            merged[name] = merged[name].merge(stats) if name in merged else stats
        return CorpusStats(merged)

    def to_plain(self) -> dict[str, object]:
        """Returns the JSON-ready form; the pooled statistics are included for human readers."""
        plain: dict[str, object] = {
            "speakers": {name: asdict(self.speakers[name]) for name in sorted(self.speakers)}
        }
        return plain | {"pooled": asdict(self.pooled)} if self.speakers else plain

    @classmethod
    def read(cls, path: Path) -> "CorpusStats":
        """Reads what `to_plain` gave from a JSON file."""
        plain = read_json(path)
        speakers = plain.get("speakers") if isinstance(plain, dict) else None
        stats = build_complete(cls, {"speakers": speakers}, path)
        for name, quantity in product(stats.speakers, _QUANTITIES):
            if (std := getattr(stats.speakers[name], quantity).std) <= 0:
                where = f"speakers.{name}.{quantity}.std"
                raise InputError(f"{path}: {where} is {std:g}, expected above 0")
        return stats


def corpus_stats(store: FeatureSource, ids: Iterable[str], config: PreprocessConfig) -> CorpusStats:
    """Returns statistics over the training split of a store, in one pass and bounded memory."""
    removes = {"f0": config.pitch_remove_outlier, "energy": config.energy_remove_outlier}
    collected: dict[str, dict[str, _Moments]] = {}
    seconds: dict[str, float] = {}
    for id in store.reading_order(ids):
        position = store.index_of(id)
        speaker = store.speakers[position]
        seconds[speaker] = seconds.get(speaker, 0.0) + float(store.seconds[position])
        moments = collected.setdefault(speaker, dict.fromkeys(_QUANTITIES, _Moments()))
        for name, values in _quantities(store.read_prosody(position)).items():
            inliers = without_outliers(values) if removes[name.partition("_")[0]] else values
            if inliers.size:
                moments[name] = moments[name].joined(_Moments.of_values(inliers))
    stats = {}
    for speaker, moments in collected.items():
        of_speaker = {name: quantity.stat() for name, quantity in moments.items()}
        stats[speaker] = SpeakerStats(**of_speaker, seconds=seconds[speaker])
    return CorpusStats(stats)


def without_outliers(values: np.ndarray) -> np.ndarray:
    """Selects values within 1.5 interquartile ranges of the quartiles (Tukey's fences)."""
    if values.size == 0:
        return values
    low, high = np.percentile(values, [25, 75])
    margin = 1.5 * (high - low)
    return values[(values >= low - margin) & (values <= high + margin)]


def _quantities(prosody: Prosody) -> dict[str, np.ndarray]:
    """Returns the values of an utterance in float64, by the names of `SpeakerStats`."""
    voiced = prosody.f0[prosody.f0 > 0]
    f0_phone, energy_phone = voiced, prosody.energy
    if prosody.durations is not None:
        if voiced.size:  # interpolating nothing gives zeros, which are no pitch
            f0_phone = _phone_means(prosody.f0, prosody.durations, fill=True)
        energy_phone = _phone_means(prosody.energy, prosody.durations, fill=False)
    values = (voiced, f0_phone, prosody.energy, energy_phone)
    return {name: row.astype(np.float64) for name, row in zip(_QUANTITIES, values, strict=True)}


def _phone_means(contour: np.ndarray, durations: np.ndarray, *, fill: bool) -> np.ndarray:
    """Returns means over the phones that last at least a frame, (T,) and (N,) -> (<= N,)."""
    values = torch.from_numpy(contour)[None]  # (1, T)
    if fill:
        values = interpolate_unvoiced(values, torch.tensor([values.shape[1]]))
    means = average_by_phone(values, torch.from_numpy(durations)[None])  # (1, N)
    return means[0].numpy()[durations > 0]


@dataclass(frozen=True)
class _Moments:
    """Moments of some values, in float64.

    Deviations from the mean, not sums of squares, are kept: they do not cancel (Chan, Golub and
    LeVeque 1979).
    """

    count: int = 0
    mean: float = 0.0
    deviation: float = 0.0  # sum of the squared deviations
    low: float = np.inf
    high: float = -np.inf

    @classmethod
    def of(cls, stat: Stat) -> "_Moments":
        # a std of 1 also means "no spread"
        deviation = stat.std**2 * stat.count if stat.max > stat.min else 0.0
        return cls(stat.count, stat.mean, deviation, stat.min, stat.max)

    @classmethod
    def of_values(cls, values: np.ndarray) -> "_Moments":
        mean = float(values.mean())
        deviation = float(np.square(values - mean).sum())
        return cls(values.size, mean, deviation, float(values.min()), float(values.max()))

    def joined(self, other: "_Moments") -> "_Moments":
        """Returns the moments of both sets of values, of which the other is not empty."""
        count = self.count + other.count
        distance = other.mean - self.mean
        mean = self.mean + distance * other.count / count
        added = other.deviation + distance**2 * self.count * other.count / count
        low, high = min(self.low, other.low), max(self.high, other.high)
        return _Moments(count, mean, self.deviation + added, low, high)

    def stat(self) -> Stat:
        if self.count == 0:
            return Stat(mean=0.0, std=1.0, min=0.0, max=0.0, count=0)
        std = float(np.sqrt(self.deviation / self.count)) if self.high > self.low else 1.0
        return Stat(self.mean, std, self.low, self.high, self.count)
