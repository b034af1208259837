"""Trains the acoustic model on recordings and their phones alone, from a flat start.

The flat start spreads the phones evenly over the loud frames. Then Baum-Welch re-estimation (EM;
Rabiner 1989, "A tutorial on hidden Markov models", section III.C) alternates with splitting the
Gaussians. At last the states are tied by context, and the Gaussians grow again.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from processors.alignment.hmm import tying
from processors.alignment.hmm.chain import (
    N_STATES,
    SILENCE_PLACES,
    Segment,
    SilencePlace,
    segments_of,
)
from processors.alignment.hmm.mixtures import Mixtures, Sums, accumulate, single_gaussians
from processors.alignment.hmm.model import OTHER, PhoneHmm, norm_of, unit_of
from processors.text.symbols import SILENCE
from utils.errors import InputError
from utils.logging import get_logger

_log = get_logger(__name__)

MAX_GAUSSIANS = 4  # per context-independent state
MAX_IN_CONTEXT = 2  # per state in its context
_MAX_ITERATIONS = 12
_LEAST_GAIN = 0.01  # nats per frame; an iteration that gains less is the last of its size
_PARTS = 16  # partial sums, whatever the number of threads, so that rounding agrees
_LOUD = 0.4  # of the way from a recording's background (5 % of frames) to its loud parts (90 %)
_PRIOR = np.array([1.0, 2.0])  # of silences and of their places
_SHORTEST_STAY, _LONGEST_STAY = 0.05, 0.98
_REMEDY = "do the texts belong to the recordings?"
_NOTHING_FITS = f"preprocess.aligner hmm found no path through any recording; {_REMEDY}"


class Example(NamedTuple):
    """A training utterance."""

    speaker: str
    frames: np.ndarray  # features, not normalised, (T, D) float32
    words: tuple[tuple[str, ...], ...]  # phones of each word
    punctuated: tuple[bool, ...]  # whether punctuation follows the word


_Utterance = tuple[np.ndarray, tuple[Segment, ...]]  # normalised frames, (T, D), and segments


@dataclass
class _Expectations:
    """Expected counts of one E-step."""

    sums: Sums  # of the Gaussians
    dwelt: np.ndarray  # frames in each state, (P,)
    visits: np.ndarray  # entries into each state, (P,)
    # silences at each of SILENCE_PLACES, and the number of such places, with the prior, (3, 2)
    silences: np.ndarray = field(default_factory=lambda: np.tile(_PRIOR, (len(SILENCE_PLACES), 1)))
    log_likelihood: float = 0.0  # of all frames
    n_frames: int = 0  # number of them

    def add(self, other: "_Expectations") -> None:
        """Adds the expectations of other utterances."""
        for total, part in zip(self.sums, other.sums, strict=True):
            total += part
        self.dwelt += other.dwelt
        self.visits += other.visits
        self.silences += other.silences - _PRIOR  # which counts once
        self.log_likelihood += other.log_likelihood
        self.n_frames += other.n_frames


def train(examples: Sequence[Example], n_threads: int = 1) -> PhoneHmm:
    """Trains a model; utterances too short for their phones are left out.

    The same examples in the same order give the same model, with any number of threads.
    """
    model = _untrained(examples)
    utterances: list[_Utterance] = []
    for speaker, frames, phones, punctuated in examples:
        words = [model.numbers_of(word) for word in phones]
        if len(frames) >= N_STATES * sum(map(len, words)) > 0:
            utterances.append((model.normalized(frames, speaker), segments_of(words, punctuated)))
    if not utterances:
        fault = "no recording is long enough for the phones of its text"
        effect = "so that there is nothing for preprocess.aligner hmm to learn from"
        raise InputError(f"{fault}, {effect}; {_REMEDY}")
    with ThreadPoolExecutor(n_threads) as pool:
        model = _m_step(model, _e_step(pool, _flat_start, model, utterances))
        model = _train_growing(pool, model, utterances, MAX_GAUSSIANS)
        model = _tie_states(pool, model, utterances)
        return _train_growing(pool, model, utterances, MAX_IN_CONTEXT)


def _untrained(examples: Sequence[Example]) -> PhoneHmm:
    """Returns a model of units and speakers; every state has mean 0 and variance 1."""
    names = {unit_of(phone) for example in examples for word in example.words for phone in word}
    units = (SILENCE, *sorted(names), OTHER)
    frames: dict[str, list[np.ndarray]] = {}
    for example in examples:
        frames.setdefault(example.speaker, []).append(example.frames)
    norms = {speaker: norm_of(np.concatenate(parts)) for speaker, parts in sorted(frames.items())}
    P, D = tying.n_states(len(units)), examples[0].frames.shape[1] if examples else 1
    zeros, ones = np.zeros((P, 1, D), np.float32), np.ones((P, 1, D), np.float32)
    mixtures = Mixtures(np.ones((P, 1)), zeros, ones)
    shares: dict[SilencePlace, float] = {"edge": 0.8, "punctuation": 0.5, "word": 0.1}
    return PhoneHmm(units, tying.no_context(len(units)), mixtures, np.full(P, 0.5), shares, norms)


def _train_growing(
    pool: ThreadPoolExecutor, model: PhoneHmm, utterances: Sequence[_Utterance], most: int
) -> PhoneHmm:
    """Trains, splits the Gaussians and trains again, up to `most` of them per state."""
    size = 1
    while True:
        before = -np.inf
        for _ in range(_MAX_ITERATIONS):
            expectations = _e_step(pool, _expect, model, utterances)
            if expectations.n_frames == 0:
                raise InputError(_NOTHING_FITS)
            model = _m_step(model, expectations)
            now = expectations.log_likelihood / expectations.n_frames
            P, K = model.mixtures.counts.shape
            _log.debug("%d states of up to %d Gaussians: %.3f nats per frame", P, K, now)
            if now - before < _LEAST_GAIN:
                break
            before = now
        grown = "aligner hmm: trained up to %d Gaussians for each of %d states, of %d at most"
        _log.info(grown, size, len(model.stay), most)
        size = min(2 * size, most)
        allowed = np.full(len(model.stay), size)
        allowed[0] *= N_STATES  # silence has one mixture where phones have N_STATES
        mixtures = model.mixtures.split(allowed)
        if mixtures is None:
            return model
        model = replace(model, mixtures=mixtures)


def _tie_states(
    pool: ThreadPoolExecutor, model: PhoneHmm, utterances: Sequence[_Utterance]
) -> PhoneHmm:
    """Builds the model with one Gaussian for each state in each context of the trees."""

    def contexts_of(part: int) -> tying.Contexts:
        contexts: tying.Contexts = {}
        for frames, segments in utterances[part::_PARTS]:
            posteriors = model.posteriors(frames, model.chain(segments))
            if np.isfinite(posteriors.log_likelihood):
                tying.accumulate_contexts(contexts, frames, posteriors.occupancy, segments)
        return contexts

    contexts: tying.Contexts = {}
    for part in pool.map(contexts_of, range(_PARTS)):
        for key, sums in part.items():
            contexts[key] = contexts[key] + sums if key in contexts else sums
    if not contexts:
        raise InputError(_NOTHING_FITS)
    tied = tying.tie(contexts, len(model.units))
    mixtures = single_gaussians(tied.sums)
    return replace(model, tying=tied.tying, mixtures=mixtures, stay=model.stay[tied.states])


def _e_step(
    pool: ThreadPoolExecutor,
    expect: Callable[[PhoneHmm, _Utterance, _Expectations], None],
    model: PhoneHmm,
    utterances: Sequence[_Utterance],
) -> _Expectations:
    """Returns the expected counts of all utterances; `expect` adds those of one."""

    def expectations_of(utterances: Sequence[_Utterance]) -> _Expectations:
        P = len(model.stay)
        total = _Expectations(model.mixtures.zero_sums(), np.zeros(P), np.zeros(P))
        for utterance in utterances:
            expect(model, utterance, total)
        return total

    total = expectations_of([])
    for expectations in pool.map(expectations_of, [utterances[n::_PARTS] for n in range(_PARTS)]):
        total.add(expectations)
    return total


def _flat_start(model: PhoneHmm, utterance: _Utterance, expectations: _Expectations) -> None:
    """Spreads phones in equal parts over the loud frames, silence over the others."""
    frames, segments = utterance
    pdfs = model.chain(segments).pdfs
    spoken = np.repeat([not segment.place for segment in segments], N_STATES)
    low, high = np.percentile(frames[:, 0], [5, 90])
    loud = np.flatnonzero(frames[:, 0] > low + _LOUD * (high - low))
    states = np.flatnonzero(spoken)
    occupancy = np.zeros((len(frames), len(spoken)))
    occupancy[:, :N_STATES] = 1 / N_STATES  # all silence goes to the one before the first word
    occupancy[loud] = 0
    occupancy[loud, states[np.arange(len(loud)) * len(states) // max(len(loud), 1)]] = 1
    accumulate(frames, occupancy, pdfs, model.mixtures.gaussians, expectations.sums)


def _expect(model: PhoneHmm, utterance: _Utterance, expectations: _Expectations) -> None:
    """Adds the posteriors of an utterance; none if no path leads through it."""
    frames, segments = utterance
    chain = model.chain(segments)
    occupancy, skipped, log_likelihood = model.posteriors(frames, chain)
    if not np.isfinite(log_likelihood):
        return
    accumulate(frames, occupancy, chain.pdfs, model.mixtures.gaussians, expectations.sums)
    visits = np.ones(len(segments))
    for number, segment in enumerate(segments):
        if segment.place:
            visits[number] = 1 - _skip_probability(occupancy, skipped, number)
            expectations.silences[SILENCE_PLACES.index(segment.place)] += visits[number], 1
    np.add.at(expectations.dwelt, chain.pdfs, occupancy.sum(axis=0))
    np.add.at(expectations.visits, chain.pdfs, np.repeat(visits, N_STATES))
    expectations.log_likelihood += log_likelihood
    expectations.n_frames += len(frames)


def _skip_probability(occupancy: np.ndarray, skipped: np.ndarray, number: int) -> float:
    """Returns the posterior probability that there is no silence at segment `number`."""
    first, after = number * N_STATES, (number + 1) * N_STATES
    if number == 0:
        return float(occupancy[0, after])
    if after == occupancy.shape[1]:
        return float(occupancy[-1, first - 1])
    return float(min(skipped[after], 1.0))


def _m_step(model: PhoneHmm, expectations: _Expectations) -> PhoneHmm:
    speech = slice(1, len(model.stay) - N_STATES)
    mixtures = model.mixtures.reestimated(expectations.sums, speech)
    if expectations.n_frames == 0:  # the flat start has no transitions
        return replace(model, mixtures=mixtures)
    # prior: three visits of each state, of 3 frames each
    frames = (expectations.dwelt + 9) / (expectations.visits + 3)
    stay = np.clip(1 - 1 / np.maximum(frames, 1.0), _SHORTEST_STAY, _LONGEST_STAY)
    n_silences, places = expectations.silences.T
    shares = np.clip(n_silences / places, 0.01, 0.98).tolist()
    by_place = dict(zip(SILENCE_PLACES, shares, strict=True))
    return replace(model, mixtures=mixtures, stay=stay, silence_shares=by_place)
