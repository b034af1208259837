"""Metrics of speech, one per file; the name of a metric is the name of its file.

A metric imports optional packages only when it scores, so that a missing one affects that metric
alone.
"""

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, cast

import numpy as np

from modules.mel import MelConfig
from utils.config import nearest
from utils.errors import InputError

if TYPE_CHECKING:  # they import soxr, which training from prepared features does without
    from processors.scoring.aligned_pair import AlignedPair
    from processors.scoring.recognition import LabelledSpeech

_PIECE_FRAMES = 2048  # about 24 s

Pieces = Iterable[tuple[np.ndarray, np.ndarray]]  # parts of a recording and of its copy, (S,) each


@dataclass(frozen=True)
class Metric:
    """Unit, direction and requirements of a metric."""

    unit: str  # unit of its values; empty for plain numbers
    better: Literal["lower", "higher", ""]  # which values are better; empty where neither is
    # "copy": a recording and its sample-by-sample copy; "pair": a recording and the same sentence
    # with its own timing (or a copy); "speech": one signal, without a reference
    input: Literal["copy", "pair", "speech"]
    needs: str  # what an utterance must have to be scored, for messages
    # modules it imports that may not be installed, under their names in pip
    packages: tuple[str, ...] = ()
    user_model: Literal["", "encoder"] = ""  # field of `UserModels` without which it cannot score

    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)


class Value(NamedTuple):
    """The score of one utterance."""

    value: float
    weight: float = 1.0  # of the utterance in the mean over all
    note: str = ""  # details for the reader, such as the recognised words


class Copy(NamedTuple):
    """A recording and its copy, sample by sample."""

    wav: np.ndarray  # (S,) float32 in [-1, 1]
    wav_hat: np.ndarray  # (S,), the copy
    mel: MelConfig  # mel that the copy was made from, with the sample rate of both

    def pieces(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Parts of both at the same samples, short enough to bound the memory of a metric."""
        for span in piece_spans(len(self.wav), self.mel.hop_length):
            yield self.wav[span], self.wav_hat[span]


class CopyMetric(Protocol):
    """The module of a metric of copies."""

    METRIC: Metric

    def score(self, copy: Copy) -> Value | None:
        """Scores one copy; None where the metric is undefined."""


class PairMetric(Protocol):
    """The module of a metric of pairs."""

    METRIC: Metric

    def score(self, pair: "AlignedPair") -> Value | None:
        """Scores one pair; None where the metric is undefined."""


class SpeechMetric(Protocol):
    """The module of a metric of single signals."""

    METRIC: Metric

    def score(self, speech: "LabelledSpeech") -> Value | None:
        """Scores one signal; None where the metric is undefined."""


def metric_names() -> list[str]:
    """Names of the metrics: the files in this folder, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def find(name: str) -> CopyMetric | PairMetric | SpeechMetric:
    """The module of a metric.

    Raises:
        InputError: If there is no such metric; the message lists the known ones.
    """
    known = metric_names()
    if name not in known:
        raise InputError(f"no metric {name!r}{nearest(name, known)} (known: {', '.join(known)})")
    module = importlib.import_module(f"{__name__}.{name}")
    return cast("CopyMetric | PairMetric | SpeechMetric", module)


def value_of(number: float | None, weight: float = 1.0) -> Value | None:
    """A number as a score; None stays None.

    Args:
        number: Value of the metric.
        weight: Weight of the utterance in the mean over all.
    """
    return None if number is None else Value(number, weight)


def piece_spans(n_samples: int, hop_length: int) -> Iterator[slice]:
    """Consecutive ranges of samples of nearly equal length that cover all whole frames.

    Args:
        n_samples: Length of the signal.
        hop_length: Samples per frame; all edges are multiples of it.
    """
    T = n_samples // hop_length
    n_pieces = -(-T // _PIECE_FRAMES)
    edges = np.linspace(0, T, 1 + n_pieces).astype(int) * hop_length
    yield from map(slice, edges[:-1].tolist(), edges[1:].tolist())


def mean_over(
    pieces: Pieces, compare: Callable[[np.ndarray, np.ndarray], float | None]
) -> float | None:
    """Mean of a comparison over pieces, weighted by their length; None if none has a value.

    Args:
        pieces: Parts of a recording and of its copy, (S,) each.
        compare: Distance or similarity of two parts; None where it is undefined.
    """
    total = weight = 0.0
    for wav, wav_hat in pieces:
        value = compare(wav, wav_hat)
        if value is not None:
            total += value * len(wav)
            weight += len(wav)
    return total / weight if weight else None
