"""Records of metrics and checks: what they are, what they need, and what they return.

This file and those of the metrics import no package but numpy at their top: names can be checked,
and training runs, without the others, and a missing one affects its metric alone.
"""

import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    import numpy as np

    from modules.mel import MelConfig
    from processors.metrics.recognition.labelled_speech import LabelledSpeech
    from processors.metrics.signals.aligned_pair import AlignedPair  # noqa: F401  (as a string)

Scored = TypeVar("Scored")


class MetricValue(NamedTuple):
    """The score of one utterance."""

    value: float
    weight: float = 1.0  # of the utterance in the mean over all
    note: str = ""  # details for the reader, such as the recognised words


class Copy(NamedTuple):
    """A recording and its copy, sample by sample."""

    wav: "np.ndarray"  # (S,) float32 in [-1, 1]
    wav_hat: "np.ndarray"  # (S,), the copy
    mel: "MelConfig"  # mel that the copy was made from, with the sample rate of both


@dataclass(frozen=True)
class _Scorer:
    """What metrics and checks have in common."""

    name: str
    score: Callable[..., object]
    # modules it imports that may not be installed, under their names in pip
    packages: tuple[str, ...] = field(default=(), kw_only=True)
    # whether the user's speaker encoder takes the place of these packages
    takes_encoder: bool = field(default=False, kw_only=True)

    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)

    @property
    def meaning(self) -> str:
        """The definition in one sentence: the first paragraph of the docstring of `score`."""
        return (inspect.getdoc(self.score) or "").partition("\n\n")[0].replace("\n", " ")


@dataclass(frozen=True)
class Metric(_Scorer, Generic[Scored]):
    """A metric; its subclasses say what it scores."""

    score: Callable[[Scored], MetricValue | None]  # None where the metric is undefined
    better: Literal["lower", "higher", ""]  # which values are better; empty where neither is
    unit: str = ""  # of its values; empty for plain numbers
    needs: str = ""  # what an utterance must have, besides its signal, for messages


class CopyMetric(Metric[Copy]):
    """A metric of a recording and its copy, sample by sample."""


class PairMetric(Metric["AlignedPair"]):
    """A metric of a recording and the same sentence with its own timing, or a copy."""


class SpeechMetric(Metric["LabelledSpeech"]):
    """A metric of one signal, without a reference."""


AnyMetric = CopyMetric | PairMetric | SpeechMetric


@dataclass(frozen=True)
class Check(_Scorer):
    """A check, which flags utterances with one kind of failure."""

    # Given the speech and the recording of the same sentence, where there is one: what is wrong, in
    # one line with numbers ("0.8 s of silence at 2.31 s, recorded: 0.2 s"), or None. Raises
    # NotApplicableError if the utterance lacks something.
    score: "Callable[[LabelledSpeech, LabelledSpeech | None], str | None]"
    finds: str  # the failure, in a few words, for legends


class NotApplicableError(Exception):
    """A check does not apply to this utterance; the message says what it lacks."""


def value_of(number: float | None, weight: float = 1.0) -> MetricValue | None:
    """A number as a score; None stays None."""
    return None if number is None else MetricValue(number, weight)
