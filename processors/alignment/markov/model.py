"""What training learns: Gaussian mixtures for the states of phones, and how long they last."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from processors.alignment.markov.acoustics import FRAME_S
from processors.alignment.markov.chain import N_STATES, Chain, Place, Segment, chain_of
from processors.alignment.markov.contexts import Tying, n_states, no_context
from processors.alignment.markov.edits import background_of
from processors.alignment.markov.mixtures import Mixtures
from processors.alignment.markov.passes import Pass, forward_backward, log_likelihoods
from processors.text.symbols import SILENCE

OTHER = "<other>"  # any phone that training did not meet
# Neighbouring windows overlap and slopes repeat what cepstra say, so that frames are counted too
# often: taken at its word, a model is far too sure of its boundaries.
_EMISSION_SCALE = 0.3
_STRESS = re.compile(r"^[ˈˌ']+|[0-9]+$")  # also tones: they change the pitch more than the spectrum


def unit_of(phone: str) -> str:
    """The acoustic unit of a phone: the phone without marks of stress and tone."""
    return _STRESS.sub("", phone) or phone


class Norm(NamedTuple):
    """How the features of a speaker are distributed; what speakers differ in is taken away."""

    mean: np.ndarray  # (D,)
    deviation: np.ndarray  # (D,)

    def apply(self, frames: np.ndarray) -> np.ndarray:
        """Frames of mean 0 and variance 1, (T, D) float32."""
        return ((frames - self.mean) / self.deviation).astype(np.float32)


def norm_of(frames: np.ndarray) -> Norm:
    """The norm of a speaker.

    Args:
        frames: (T, D).
    """
    return Norm(frames.mean(axis=0), np.maximum(frames.std(axis=0), 1e-3))


class Found(NamedTuple):
    """An utterance in its recording.

    Attributes:
        ends_s: When each segment is over, never decreasing, (N,).
        occupancy: Probability of each state at each frame, (T, S).
        emissions: Log-likelihood of the frames under each distribution, (T, P).
        background: The same without knowledge of what is said, (T,).
    """

    ends_s: np.ndarray
    occupancy: np.ndarray
    emissions: np.ndarray
    background: np.ndarray


@dataclass(frozen=True)
class AcousticModel:
    """A hidden Markov model of each acoustic unit in each context, of N_STATES states.

    Attributes:
        units: Names; the first is silence, the last `OTHER`.
        tying: Which distribution a state has in its context; the first of all P of them is
            that of silence, the last N_STATES are those of `OTHER`.
        mixtures: One for each distribution, (P, ...).
        stay: Probability of staying in a state for another frame, (P,).
        silence_shares: How often there is silence at a place.
        norms: By speaker.
    """

    units: tuple[str, ...]
    tying: Tying
    mixtures: Mixtures
    stay: np.ndarray
    silence_shares: dict[Place, float]
    norms: dict[str, Norm]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {unit: number for number, unit in enumerate(self.units)}

    @cached_property
    def _frames(self) -> np.ndarray:
        """Frames of each distribution, (P,); 0 of the one that fits any sound a little."""
        frames = self.mixtures.counts.sum(axis=1)
        frames[-N_STATES:] = 0
        return np.asarray(frames)

    def numbers_of(self, phones: Iterable[str]) -> list[int]:
        """The unit of each phone."""
        other = self._numbers[OTHER]
        return [self._numbers.get(unit_of(phone), other) for phone in phones]

    def normalized(self, frames: np.ndarray, speaker: str) -> np.ndarray:
        """Features without what is peculiar to the speaker; a stranger is judged by these alone."""
        return (self.norms.get(speaker) or norm_of(frames)).apply(frames)

    def chain(self, segments: Sequence[Segment]) -> Chain:
        """The states of an utterance."""
        pdfs = self.tying.pdfs_of(segments)
        return chain_of(segments, pdfs, self.stay, self.silence_shares)

    def listen(self, frames: np.ndarray, chain: Chain) -> Pass:
        """Weighs all ways through an utterance.

        Args:
            frames: Normalised features, (T, D).
            chain: Its states.
        """
        pdfs, columns = np.unique(chain.pdfs, return_inverse=True)
        emissions = log_likelihoods(frames, self.mixtures.gaussians, pdfs)
        return forward_backward(_EMISSION_SCALE * emissions, columns, chain)

    def align(self, frames: np.ndarray, segments: Sequence[Segment]) -> Found | None:
        """Finds the segments of an utterance, in the mean over all ways through it.

        Args:
            frames: Normalised features, (T, D).
            segments: Of the utterance, N of them.

        Returns:
            When and how well; None if there is no way through.
        """
        chain = self.chain(segments)
        known = log_likelihoods(frames, self.mixtures.gaussians, np.arange(len(self.stay)))
        emissions = _EMISSION_SCALE * known
        heard = forward_backward(emissions, chain.pdfs, chain)
        if not np.isfinite(heard.log_likelihood):
            return None
        spent = heard.occupancy.sum(axis=0).reshape(len(segments), N_STATES).sum(axis=1)
        background = _EMISSION_SCALE * background_of(known, self._frames)
        return Found(np.cumsum(spent) * FRAME_S, heard.occupancy, emissions, background)


def blank_model(units: Sequence[str], n_features: int) -> AcousticModel:
    """A model that knows nothing: every state has mean 0 and variance 1.

    Args:
        units: Of phones, without silence and `OTHER`.
        n_features: D.
    """
    names = (SILENCE, *units, OTHER)
    P = n_states(len(names))
    shape = (P, 1, n_features)
    return AcousticModel(
        names,
        no_context(len(names)),
        Mixtures(np.ones((P, 1)), np.zeros(shape, np.float32), np.ones(shape, np.float32)),
        np.full(P, 0.5),
        {"edge": 0.8, "punctuation": 0.5, "word": 0.1},
        {},
    )
