"""Learns a model from recordings and their phones alone, from a flat start.

At first the phones are spread evenly over what is loud, and silence is what is not. From then on
the model listens, weighs all ways through each utterance, and learns from each frame as much as
the frame belongs to a state (Baum and Welch's algorithm; Rabiner 1989, section III.C). Once that
brings no more, every mixture with enough frames is given more Gaussians. At last phones are told
apart by their neighbours as well, and the Gaussians grow again.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from processors.alignment.markov.chain import N_STATES, PLACES, Place, Segment, segments_of
from processors.alignment.markov.mixtures import Sums, grown, learnt, of_sums
from processors.alignment.markov.model import AcousticModel, blank_model, norm_of, unit_of
from processors.alignment.markov.passes import accumulate
from processors.alignment.markov.tying import Contexts, add_contexts, merged, tie
from utils.errors import InputError
from utils.logging import get_logger

MOST_GAUSSIANS = 4  # per state of a phone, whatever its neighbours are
MOST_IN_CONTEXT = 2  # per state in its context
_MOST_PASSES = 12
_LEAST_GAIN = 0.01  # nats per frame; passes that bring less are the last with so many Gaussians
_PARTS = 16  # sums are formed in these, whatever the number of threads, so that rounding agrees
_LOUD = 0.4  # of the way from a recording's background (5 % of frames) to its loud parts (90 %)
_SHORTEST_STAY, _LONGEST_STAY = 0.05, 0.98


class Example(NamedTuple):
    """What is learnt from: a recording and what is said.

    Attributes:
        speaker: Who says it.
        frames: Features as heard, (T, D) float32.
        words: Phones of each word.
        punctuated: Whether punctuation follows the word.
    """

    speaker: str
    frames: np.ndarray
    words: tuple[tuple[str, ...], ...]
    punctuated: tuple[bool, ...]


class _Lesson(NamedTuple):
    frames: np.ndarray  # normalised, (T, D)
    segments: tuple[Segment, ...]


@dataclass
class _Statistics:
    """What one pass over the corpus counts.

    Attributes:
        sums: Of the Gaussians.
        dwelt: Frames in each state, (P,).
        visits: How often it was entered, (P,).
        silences: How often there was silence at each place, and how many such places there are.
        log_likelihood: Of all frames.
        n_frames: Number of them.
    """

    sums: Sums
    dwelt: np.ndarray
    visits: np.ndarray
    silences: dict[Place, list[float]] = field(
        default_factory=lambda: {place: [1.0, 2.0] for place in PLACES}
    )
    log_likelihood: float = 0.0
    n_frames: int = 0

    def add(self, other: "_Statistics") -> None:
        """Adds what another part of the corpus counts; both began with the same prior."""
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            mine += theirs
        self.dwelt += other.dwelt
        self.visits += other.visits
        for place, (found, places) in other.silences.items():
            self.silences[place][0] += found - 1.0  # the prior counts once
            self.silences[place][1] += places - 2.0
        self.log_likelihood += other.log_likelihood
        self.n_frames += other.n_frames


def train(examples: Sequence[Example], n_threads: int = 1) -> AcousticModel:
    """Learns a model of the speakers' phones.

    The same examples in the same order give the same model, with any number of threads.

    Args:
        examples: Recordings with their phones; those that are too short for them are left out.
        n_threads: Work at the same time.

    Raises:
        InputError: If none is long enough.
    """
    model = _with_norms(examples)
    lessons = list(_lessons(model, examples))
    if not lessons:
        raise InputError(
            "no recording is long enough for the phones of its text, so that there is nothing for"
            " preprocess.aligner hmm to learn from; do the texts belong to the recordings?"
        )
    with ThreadPoolExecutor(n_threads) as pool:
        model = _updated(model, _gathered(pool, partial(_spread_evenly, model), lessons, model))
        model = _full_grown(pool, model, lessons, MOST_GAUSSIANS)
        model = _in_context(pool, model, lessons)
        return _full_grown(pool, model, lessons, MOST_IN_CONTEXT)


def _with_norms(examples: Sequence[Example]) -> AcousticModel:
    """A model that knows the speakers and the names of the units."""
    units = {unit_of(phone) for one in examples for word in one.words for phone in word}
    frames: dict[str, list[np.ndarray]] = {}
    for one in examples:
        frames.setdefault(one.speaker, []).append(one.frames)
    n_features = examples[0].frames.shape[1] if examples else 1
    norms = {speaker: norm_of(np.concatenate(parts)) for speaker, parts in sorted(frames.items())}
    return replace(blank_model(sorted(units), n_features), norms=norms)


def _lessons(model: AcousticModel, examples: Sequence[Example]) -> Iterator[_Lesson]:
    silence = 0
    for one in examples:
        words = [model.numbers_of(word) for word in one.words]
        if len(one.frames) >= N_STATES * sum(map(len, words)) > 0:
            segments = segments_of(words, one.punctuated, silence)
            yield _Lesson(model.normalized(one.frames, one.speaker), segments)


def _full_grown(
    pool: ThreadPoolExecutor, model: AcousticModel, lessons: Sequence[_Lesson], most: int
) -> AcousticModel:
    """The model once its mixtures have up to `most` Gaussians, and all have been learnt."""
    size = 1
    while True:
        model = _converged(pool, model, lessons)
        _log.info(
            "aligner hmm: learnt up to %d Gaussians for each of %d states, of %d at most",
            size,
            len(model.stay),
            most,
        )
        size = min(2 * size, most)
        allowed = np.full(len(model.stay), size)
        allowed[0] *= N_STATES  # silence has one mixture where phones have N_STATES
        mixtures = grown(model.mixtures, allowed)
        if mixtures is None:
            return model
        model = replace(model, mixtures=mixtures)


def _in_context(
    pool: ThreadPoolExecutor, model: AcousticModel, lessons: Sequence[_Lesson]
) -> AcousticModel:
    """The model with a Gaussian for each state in each context that is worth telling apart."""

    def part(number: int) -> Contexts:
        contexts: Contexts = {}
        for lesson in lessons[number::_PARTS]:
            heard = model.listen(lesson.frames, model.chain(lesson.segments))
            if np.isfinite(heard.log_likelihood):
                add_contexts(contexts, lesson.frames, heard.occupancy, lesson.segments)
        return contexts

    contexts = merged(pool.map(part, range(_PARTS)))
    if not contexts:
        raise _nothing_fits()
    tied = tie(contexts, len(model.units))
    return replace(
        model, tying=tied.tying, mixtures=of_sums(tied.sums), stay=model.stay[tied.states]
    )


def _converged(
    pool: ThreadPoolExecutor, model: AcousticModel, lessons: Sequence[_Lesson]
) -> AcousticModel:
    """The model after as many passes as bring something."""
    before = -np.inf
    for _ in range(_MOST_PASSES):
        statistics = _gathered(pool, partial(_listen, model), lessons, model)
        if statistics.n_frames == 0:
            raise _nothing_fits()
        model = _updated(model, statistics)
        now = statistics.log_likelihood / statistics.n_frames
        P, K = model.mixtures.counts.shape
        _log.debug("%d states of up to %d Gaussians: %.3f nats per frame", P, K, now)
        if now - before < _LEAST_GAIN:
            break
        before = now
    return model


def _nothing_fits() -> InputError:
    return InputError(
        "preprocess.aligner hmm found no way through any recording; do the texts belong to the"
        " recordings?"
    )


def _gathered(
    pool: ThreadPoolExecutor,
    work: Callable[[_Lesson, _Statistics], None],
    lessons: Sequence[_Lesson],
    model: AcousticModel,
) -> _Statistics:
    """The statistics of all lessons."""

    def part(number: int) -> _Statistics:
        statistics = _nothing(model)
        for lesson in lessons[number::_PARTS]:
            work(lesson, statistics)
        return statistics

    total = _nothing(model)
    for statistics in pool.map(part, range(_PARTS)):
        total.add(statistics)
    return total


def _nothing(model: AcousticModel) -> _Statistics:
    P = len(model.stay)
    return _Statistics(model.mixtures.no_sums(), np.zeros(P), np.zeros(P))


def _spread_evenly(model: AcousticModel, lesson: _Lesson, statistics: _Statistics) -> None:
    """The flat start: phones in equal parts over the loud frames, silence over the others."""
    chain = model.chain(lesson.segments)
    spoken = np.repeat([not segment.place for segment in lesson.segments], N_STATES)
    loudness = lesson.frames[:, 0]
    low, high = np.percentile(loudness, [5, 90])
    loud = np.flatnonzero(loudness > low + _LOUD * (high - low))
    states = np.flatnonzero(spoken)
    occupancy = np.zeros((len(lesson.frames), len(spoken)))
    occupancy[:, :N_STATES] = 1 / N_STATES  # the silence before the first word stands for all
    occupancy[loud] = 0
    occupancy[loud, states[np.arange(len(loud)) * len(states) // max(len(loud), 1)]] = 1
    accumulate(lesson.frames, occupancy, chain.pdfs, model.mixtures.gaussians, statistics.sums)


def _listen(model: AcousticModel, lesson: _Lesson, statistics: _Statistics) -> None:
    """Adds what is learnt from one utterance; nothing if there is no way through it."""
    chain = model.chain(lesson.segments)
    heard = model.listen(lesson.frames, chain)
    if not np.isfinite(heard.log_likelihood):
        return
    accumulate(
        lesson.frames, heard.occupancy, chain.pdfs, model.mixtures.gaussians, statistics.sums
    )
    visits = np.ones(len(lesson.segments))
    for number, segment in enumerate(lesson.segments):
        if segment.place:
            visits[number] = 1 - _missed(heard.occupancy, heard.skipped, number)
            statistics.silences[segment.place][0] += visits[number]
            statistics.silences[segment.place][1] += 1
    np.add.at(statistics.dwelt, chain.pdfs, heard.occupancy.sum(axis=0))
    np.add.at(statistics.visits, chain.pdfs, np.repeat(visits, N_STATES))
    statistics.log_likelihood += heard.log_likelihood
    statistics.n_frames += len(lesson.frames)


def _missed(occupancy: np.ndarray, skipped: np.ndarray, number: int) -> float:
    """Probability that there is no silence at segment `number`."""
    first, after = number * N_STATES, (number + 1) * N_STATES
    if number == 0:
        return float(occupancy[0, after])
    if after == occupancy.shape[1]:
        return float(occupancy[-1, first - 1])
    return float(min(skipped[after], 1.0))


def _updated(model: AcousticModel, statistics: _Statistics) -> AcousticModel:
    """The model that statistics speak for."""
    speech = slice(1, len(model.stay) - N_STATES)
    mixtures = learnt(model.mixtures, statistics.sums, speech)
    if statistics.n_frames == 0:  # the flat start says nothing about time
        return replace(model, mixtures=mixtures)
    # as if each state had been visited three times more, for 3 frames each
    frames = (statistics.dwelt + 9) / (statistics.visits + 3)
    stay = np.clip(1 - 1 / np.maximum(frames, 1.0), _SHORTEST_STAY, _LONGEST_STAY)
    shares = {
        place: float(np.clip(found / places, 0.01, 0.98))
        for place, (found, places) in statistics.silences.items()
    }
    return replace(model, mixtures=mixtures, stay=stay, silence_shares=shares)


_log = get_logger(__name__)
