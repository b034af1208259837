"""Scores of speech. Each file here is a metric: its name is the name of the file.

Nothing is registered by hand. A metric imports the packages it needs when it scores, so that one
that is not installed is missed by that metric alone.
"""

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, cast

import numpy as np

from modules.mel import MelConfig
from processors.scoring.pieces import spans
from utils.config import nearest
from utils.errors import InputError

if TYPE_CHECKING:
    from processors.scoring.aligned_pair import AlignedPair
    from processors.scoring.recognition import LabelledSpeech


@dataclass(frozen=True)
class Metric:
    """What a metric measures.

    Attributes:
        unit: Of its values; empty for plain numbers.
        better: Which values are better; empty where neither is.
        input: "copy": a copy of a recording, sample by sample; "pair": a recording and the same
            sentence in its own timing, which a copy is too; "speech": one sound by itself, which
            may be the recording.
        needs: What an utterance must have to be judged, for messages.
        packages: Modules that it imports and that may not be installed, named as pip names them.
        user_model: Field of `UserModels` without which it cannot score.
    """

    unit: str
    better: Literal["lower", "higher", ""]
    input: Literal["copy", "pair", "speech"]
    needs: str
    packages: tuple[str, ...] = ()
    user_model: Literal["", "encoder"] = ""

    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)


class Copy(NamedTuple):
    """A recording and a copy of it."""

    wav: np.ndarray  # (S,) float32 in [-1, 1]
    wav_hat: np.ndarray  # (S,), the copy
    mel: MelConfig  # the mel that the copy was made from, and the sample rate of both

    def pieces(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Parts of both, cut alike, that are not too long to be compared; see `pieces`."""
        for span in spans(len(self.wav), self.mel.hop_length):
            yield self.wav[span], self.wav_hat[span]


class Value(NamedTuple):
    """A score of one utterance."""

    value: float
    weight: float = 1.0  # of the utterance in the mean over all
    note: str = ""  # what it rests on: the words that were heard


class CopyMetric(Protocol):
    """What the file of a metric holds that judges copies."""

    METRIC: Metric

    def score(self, copy: Copy) -> Value | None:
        """Judges one copy; None where there is nothing to judge."""


class PairMetric(Protocol):
    """What the file of a metric holds that judges a sentence beside its recording."""

    METRIC: Metric

    def score(self, pair: "AlignedPair") -> Value | None:
        """Judges one pair; None where there is nothing to judge."""


class SpeechMetric(Protocol):
    """What the file of a metric holds that judges sounds by themselves."""

    METRIC: Metric

    def score(self, speech: "LabelledSpeech") -> Value | None:
        """Judges one sound; None where there is nothing to judge."""


def metric_names() -> list[str]:
    """Names of the metrics: the files in this folder, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def find(name: str) -> CopyMetric | PairMetric | SpeechMetric:
    """The module of a metric.

    Raises:
        InputError: If there is none of that name; the message lists those there are.
    """
    known = metric_names()
    if name not in known:
        raise InputError(f"no metric {name!r}{nearest(name, known)} (known: {', '.join(known)})")
    module = importlib.import_module(f"{__name__}.{name}")
    return cast("CopyMetric | PairMetric | SpeechMetric", module)
