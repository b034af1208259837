"""Where passages lie in the time of speech: pauses, breaks, and the times of words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from models.synthesizer.passages import Passage
from processors.records import TimedMark, TimedSentence, TimedWord
from processors.text.symbols import PAUSES

T = TypeVar("T")


@dataclass
class SpokenTimes:
    """Times in speech, from its start; they grow while it is spoken piece by piece."""

    words: list[TimedWord] = field(default_factory=list)
    sentences: list[TimedSentence] = field(default_factory=list)  # the last one may be unfinished
    marks: list[TimedMark] = field(default_factory=list)

    def add(
        self,
        passage: Passage,
        durations: np.ndarray,
        frame_s: float,
        start_frame: int,
        *,
        starts_sentence: bool,
    ) -> None:
        """Adds what is in a passage that starts at a frame; durations are in frames, (N,)."""
        edges = (start_frame + np.concatenate([[0], np.cumsum(durations)])) * frame_s  # (N + 1,)
        words = [
            TimedWord(word.text, float(edges[word.start]), float(edges[word.end]))
            for word in passage.spoken.words
        ]
        self.words += words
        starts = [word.start_s for word in words]
        ends = [*starts, words[-1].end_s if words else start_frame * frame_s]
        self.marks += (TimedMark(name, ends[before]) for name, before in passage.marks)
        if not words:  # a break
            return
        sentence = TimedSentence(passage.spoken.text, words[0].start_s, words[-1].end_s)
        if not starts_sentence:
            begun = self.sentences.pop()
            sentence = TimedSentence(f"{begun.text} {sentence.text}", begun.start_s, sentence.end_s)
        self.sentences.append(sentence)


class Fitted(NamedTuple):
    """Frames around and of a passage."""

    n_silent: int  # silence before it
    n_cut_start: int  # left out
    n_cut_end: int
    durations: np.ndarray  # of the phones that are left, (N,)


class BreakFitter:
    """Fits the pauses at the edges of passages into breaks; takes the passages in order."""

    def __init__(self, frame_s: float) -> None:
        self._frame_s = frame_s
        self._n_kept = 0  # frames of pauses that are already part of the next break

    def fit(
        self, passage: Passage, following: Passage | None, durations: np.ndarray, n_pause: int
    ) -> Fitted:
        """Keeps as much of the pauses at both edges as there is room for.

        Durations are frames per phone, (N,); before a passage without a break are `n_pause` frames.
        """
        phones = passage.spoken.phones
        n_silent, n_cut_start, n_cut_end = n_pause, 0, 0
        if passage.break_s is not None:
            leading = _pause_frames(phones, durations)
            n_silent = round(passage.break_s / self._frame_s) - self._n_kept
            n_cut_start = max(0, leading - n_silent)
            n_silent -= leading - n_cut_start
        self._n_kept = 0
        if following is not None and following.break_s is not None:
            trailing = _pause_frames(phones[::-1], durations[::-1])
            self._n_kept = min(trailing, round(following.break_s / self._frame_s))
            n_cut_end = trailing - self._n_kept
        edges = np.concatenate([[0], np.cumsum(durations)])  # (N + 1,)
        left = edges.clip(n_cut_start, edges[-1] - n_cut_end)
        return Fitted(n_silent, n_cut_start, n_cut_end, np.diff(left))


def _pause_frames(phones: Sequence[str], durations: np.ndarray) -> int:
    """Frames of the pauses before the first word."""
    n = sum(1 for _ in takewhile(PAUSES.__contains__, phones))
    return int(durations[:n].sum())


@dataclass(frozen=True)
class Silence:
    """Silence between passages."""

    n_frames: int


@dataclass(frozen=True)
class Placed(Generic[T]):
    """The output of a passage, and how its edges are cut."""

    output: T
    passage: Passage
    fitted: Fitted


def place(
    sentences: Sequence[Sequence[Passage]],
    outputs: Iterable[tuple[T, np.ndarray]],
    times: SpokenTimes,
    frame_s: float,
    n_pause: int,
) -> Iterator[Silence | Placed[T]]:
    """Puts the outputs of passages and the silence around them in order.

    Args:
        outputs: For each passage with phones, its output and frames per phone, (N,).
        times: Gets the times of each passage before it is yielded.
        frame_s: Seconds per frame.
        n_pause: Frames of the pause between sentences.
    """
    fitter, waiting, start_frame = BreakFitter(frame_s), iter(outputs), 0
    passages = [(p, i == 0) for sentence in sentences for i, p in enumerate(sentence)]
    following = [*(passage for passage, _ in passages[1:]), None]
    for n, ((passage, starts), after) in enumerate(zip(passages, following, strict=True)):
        output, durations = None, np.zeros(0, dtype=np.int64)
        if passage.spoken.phones:
            output, durations = next(waiting)
        fitted = fitter.fit(passage, after, durations, n_pause if starts and n > 0 else 0)
        if fitted.n_silent > 0:
            yield Silence(fitted.n_silent)
        start_frame += fitted.n_silent
        times.add(passage, fitted.durations, frame_s, start_frame, starts_sentence=starts)
        if output is not None:
            yield Placed(output, passage, fitted)
        start_frame += int(fitted.durations.sum())
