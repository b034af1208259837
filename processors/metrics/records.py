"""Records of metrics and checks: what they are, what they need, and what they return.

This file and those of the metrics import no package but numpy at their top: names can be checked,
and training runs, without the others, and a missing one affects its metric alone.
"""

import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from modules.mel import MelConfig


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
class Metric:
    """A metric, which gives utterances one number each; its definition is in the registry."""

    name: str
    score: Callable[[Any], MetricValue | None]  # None where the metric is undefined
    better: Literal["lower", "higher", ""]  # which values are better; empty where neither is
    unit: str = ""  # of its values; empty for plain numbers
    needs: str = ""  # what an utterance must have, besides its signal, for messages
    packages: tuple[str, ...] = ()  # that may not be installed, by their names in pip
    takes_encoder: bool = False  # the user's, in place of these packages
    # what `score` takes: "copies" a Copy, a recording and its copy, sample by sample; "pairs" an
    # AlignedPair, a recording and a copy or the same sentence with its own timing; "speech" a
    # LabelledSpeech, one signal without a reference
    family: Literal["copies", "pairs", "speech"] = field(kw_only=True)


@dataclass(frozen=True)
class Check:
    """A check, which flags utterances with a kind of failure; its definition is in the registry."""

    name: str
    # Given the speech and, where there is one, the recording of the same sentence, a LabelledSpeech
    # each: what is wrong, in one line with numbers ("0.8 s of silence at 2.31 s, recorded: 0.2 s"),
    # or None. Raises NotApplicableError if the utterance lacks something.
    score: Callable[[Any, Any], str | None]
    finds: str  # the failure, in a few words, for legends
    packages: tuple[str, ...] = ()  # as those of metrics


class NotApplicableError(Exception):
    """A check does not apply to this utterance; the message says what it lacks."""


def value_of(number: float | None, weight: float = 1.0) -> MetricValue | None:
    """Returns a number as a score; None stays None."""
    return None if number is None else MetricValue(number, weight)


def missing_packages(packages: Iterable[str]) -> tuple[str, ...]:
    """Returns the packages that are not installed."""
    return tuple(name for name in packages if importlib.util.find_spec(name) is None)
