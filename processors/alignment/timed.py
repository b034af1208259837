"""From phones and words with times, however they were written down, to an alignment.

Phones keep the names that the source gives them. Two kinds of sources are told apart:

- Those of other programs know phones and silences. Punctuation comes from the text, and silence
  at both ends is cut to `edge_silence_s`.
- Those that this toolkit wrote hold the whole sequence, from `<sil>` to the class of the last
  punctuation, and are taken as they stand.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

import numpy as np

from processors.alignment import AlignmentError
from processors.alignment.matching import is_same_text, match_boundaries
from processors.alignment.merge import SaidWord, Segment, merge, pauses_after
from processors.records import Alignment, SpokenText, Word
from processors.text.symbols import NOISE, PAUSES, PUNCTUATION_PAUSES, SILENCE

MAX_MISMATCH_S = 0.5  # between the lengths of alignment and audio
MIN_PHONE_RATIO = 0.5  # of the source's phones to those of the text; and its inverse
MAX_OVERLAP_S = 0.0101  # start and length are often rounded to 10 ms, each by itself
_SHOWN = 40  # letters of a text in a message

_SILENCES = {"", "sp", "sil", "<sil>", "<eps>", "pau", "<pau>", "ssil", "#", "h#", "_", "<p:>"}
_UNKNOWN_PHONES = {"spn", "<spn>", "<unk>"}


class Interval(NamedTuple):
    """A labelled stretch of time."""

    label: str
    start_s: float
    end_s: float


class Grid(NamedTuple):
    """What a source says about one recording; all in order of time."""

    duration_s: float | None  # of the recording, where the source knows it
    words: list[Interval]  # empty where it does not know them
    phones: list[Interval]  # without silences; the whole sequence if it is a complete one

    @property
    def is_complete(self) -> bool:
        """Whether the phones are a whole sequence of ours, with every pause."""
        names = [phone.label for phone in self.phones]
        return names[:1] == [SILENCE] and names[-1] in PUNCTUATION_PAUSES


def make_grid(
    duration_s: float | None, words: Sequence[Interval], phones: Sequence[Interval]
) -> Grid:
    """A grid without silences, unless they belong to a whole sequence of ours.

    Args:
        duration_s: Of the recording, where it is known.
        words: In order, silences too.
        phones: In order, silences too.
    """
    grid = Grid(duration_s, [word for word in words if not is_silence(word.label)], [*phones])
    if grid.is_complete:
        return grid
    return grid._replace(phones=[phone for phone in phones if not is_silence(phone.label)])


def is_silence(label: str) -> bool:
    """Whether a label stands for silence in the files of any aligner, or is a pause of ours."""
    return label.lower() in _SILENCES or label in PAUSES


def check_times(grid: Grid) -> None:
    """Makes sure that times run forwards, from 0 on.

    Raises:
        AlignmentError: If one does not; names the phone or word and its times.
    """
    _check_numbers(grid)
    for tier in (grid.words, grid.phones):
        for one in tier:
            if one.start_s < 0:
                raise AlignmentError(f"{one.label} starts at {one.start_s:.3f} s, before 0")
            if one.end_s < one.start_s:
                raise AlignmentError(
                    f"{one.label} ends at {one.end_s:.3f} s, before it starts ({one.start_s:.3f} s)"
                )
        for before, after in pairwise(tier):
            if after.start_s < before.start_s:
                raise AlignmentError(
                    f"time runs backwards: {after.label} starts at {after.start_s:.3f} s, after"
                    f" {before.label} at {before.start_s:.3f} s"
                )
            if before.end_s - after.start_s > MAX_OVERLAP_S:
                raise AlignmentError(
                    f"{before.label} ends at {before.end_s:.3f} s, while {after.label} starts at"
                    f" {after.start_s:.3f} s: they overlap"
                )


def align_grid(
    grid: Grid, spoken: SpokenText, duration_s: float, edge_silence_s: float
) -> Alignment:
    """Joins a source's phones with the words and the punctuation of the text.

    Args:
        grid: What the source says.
        spoken: What the text frontend says.
        duration_s: Length of the recording.
        edge_silence_s: Silence kept at both ends; a whole sequence of ours keeps its own.

    Raises:
        AlignmentError: If a time is no number, the source differs from the audio by more than
            `MAX_MISMATCH_S`, or it holds no phones, or phones or words of another text.
    """
    if not grid.phones:
        raise AlignmentError("it has silence alone; is it of this recording?")
    _check_numbers(grid)
    _check_duration(grid, duration_s)
    _check_phones(grid, spoken)
    _check_words(grid, spoken)
    if grid.is_complete:
        return _as_it_stands(grid, spoken)
    words = _by_words(grid, spoken) if grid.words else _by_phones(grid, spoken)
    return merge(words, duration_s, edge_silence_s)


def _as_it_stands(grid: Grid, spoken: SpokenText) -> Alignment:
    """A whole sequence; a phone lasts until the next one starts."""
    names = tuple(phone.label for phone in grid.phones)
    starts = [phone.start_s for phone in grid.phones]
    return Alignment(names, np.array([*starts, grid.phones[-1].end_s]), find_words(names, spoken))


def find_words(names: Sequence[str], spoken: SpokenText) -> tuple[Word, ...]:
    """Where the words of a text stand in a sequence of phones and pauses.

    Args:
        names: Of an alignment.
        spoken: What the text frontend makes of the text; its phones may differ from the others.
    """
    places = [place for place, name in enumerate(names) if name not in PAUSES]
    matched = match_boundaries(
        _phones_of_words(spoken), [[_bare(names[place])] for place in places]
    )
    spans = zip(spoken.words, [0, *matched[:-1]], matched, strict=True)
    return tuple(
        Word(word.text, places[start], places[end - 1] + 1)
        for word, start, end in spans
        if end > start
    )


def _check_numbers(grid: Grid) -> None:
    for one in (*grid.words, *grid.phones):
        if not (isfinite(one.start_s) and isfinite(one.end_s)):
            raise AlignmentError(
                f"{one.label} lasts from {one.start_s} to {one.end_s} s, which are no times"
            )


def _check_duration(grid: Grid, duration_s: float) -> None:
    """A source that does not know the recording's length may leave out silence at its end."""
    last_s = grid.phones[-1].end_s
    longest = max(last_s, grid.duration_s or (duration_s if last_s < duration_s else 0.0))
    if abs(longest - duration_s) > MAX_MISMATCH_S:
        raise AlignmentError(
            f"it lasts {longest:.2f} s, the recording {duration_s:.2f} s (more than"
            f" {MAX_MISMATCH_S} s of difference); is it of this recording?"
        )


def _check_phones(grid: Grid, spoken: SpokenText) -> None:
    expected = sum(word.end - word.start for word in spoken.words)
    found = sum(phone.label not in PAUSES for phone in grid.phones)
    if not MIN_PHONE_RATIO <= found / max(expected, 1) <= 1 / MIN_PHONE_RATIO:
        raise AlignmentError(f"it has {found} phones, the text {expected}; is it of this text?")


def _check_words(grid: Grid, spoken: SpokenText) -> None:
    if not is_same_text([word.text for word in spoken.words], [word.label for word in grid.words]):
        said = " ".join(word.label for word in grid.words)
        raise AlignmentError(
            f"its words are '{_beginning(said)}', those of the text '{_beginning(spoken.text)}';"
            " is it of this text?"
        )


def _beginning(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def _by_words(grid: Grid, spoken: SpokenText) -> list[SaidWord]:
    """The file's words, with the text's punctuation."""
    words = list(_timed_words(grid))
    matched = match_boundaries(
        [_letters(word.text) for word in spoken.words], [_letters(word.text) for word in words]
    )
    for pause, count in zip(pauses_after(spoken), matched, strict=True):
        if pause and count:
            words[count - 1] = words[count - 1]._replace(pause=pause)
    return words


def _timed_words(grid: Grid) -> Iterator[SaidWord]:
    """The words with the phones whose middle lies in them; phones outside of words stay alone."""
    waiting = list(reversed(grid.phones))
    for word in grid.words:
        while waiting and _middle(waiting[-1]) < word.start_s:
            phone = waiting.pop()
            yield SaidWord(phone.label, (_segment(phone),))
        inside = []
        while waiting and _middle(waiting[-1]) <= word.end_s:
            inside.append(_segment(waiting.pop()))
        if inside:
            yield SaidWord(word.label, tuple(inside))
    yield from (SaidWord(phone.label, (_segment(phone),)) for phone in reversed(waiting))


def _by_phones(grid: Grid, spoken: SpokenText) -> list[SaidWord]:
    """The text's words and punctuation, with the file's phones."""
    matched = match_boundaries(
        _phones_of_words(spoken), [[_bare(phone.label)] for phone in grid.phones]
    )
    segments = [_segment(phone) for phone in grid.phones]
    starts = [0, *matched[:-1]]
    return [
        SaidWord(word.text, tuple(segments[start:end]), pause)
        for word, start, end, pause in zip(
            spoken.words, starts, matched, pauses_after(spoken), strict=True
        )
    ]


def _segment(phone: Interval) -> Segment:
    label = NOISE if phone.label.lower() in _UNKNOWN_PHONES else phone.label
    return Segment(label, phone.start_s, phone.end_s)


def _middle(interval: Interval) -> float:
    return (interval.start_s + interval.end_s) / 2


def _letters(word: str) -> str:
    """What counts in a comparison; one sign for what has no letters, such as `<unk>`."""
    if word.lower() == "<unk>":
        return "?"
    return "".join(char for char in word.casefold() if char.isalnum()) or "?"


def _bare(phone: str) -> str:
    return phone.lower().rstrip("012").lstrip("ˈˌ")


def _phones_of_words(spoken: SpokenText) -> list[list[str]]:
    return [[_bare(phone) for phone in spoken.phones[w.start : w.end]] for w in spoken.words]
