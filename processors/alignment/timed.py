"""From phones and words with times, in any file format, to an alignment.

Phones keep the names of the source. Files of other programs have phones and silences: punctuation
comes from the text, and silence at both ends is cut to `edge_silence_s`. Files that this toolkit
wrote have the complete sequence with its punctuation, which is used unchanged.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment import aligner, matching
from processors.alignment.aligner import AlignedWord, AlignmentError
from processors.alignment.fit import check_coverage
from processors.records import Alignment, SpokenText, TimedPhone, TimedWord, Word
from processors.text import symbols
from utils.errors import InputError

MAX_MISMATCH_S = 0.5  # between the lengths of alignment and audio
MAX_CUT_S = 0.05  # of a phone past the end of the audio: the analysis window of an aligner
MIN_PHONE_RATIO = 0.5  # of the source's phones to those of the text; and its inverse
MAX_UNKNOWN_SHARE = 0.5  # of the time of the phones; 0.43 in LJ Speech, whose names MFA lacks
MAX_OVERLAP_S = 0.0101  # start and length are often rounded to 10 ms, each by itself
_SHOWN = 60  # letters of a text in a message
_AGAIN = "align this recording again"

_SILENCES = {"", "sp", "sil", "<sil>", "<eps>", "pau", "<pau>", "ssil", "#", "h#", "_", "<p:>"}
_SYMBOLS = {*symbols.OTHER_PUNCTUATION, symbols.WORD_BOUNDARY}  # of the symbol sets of NVIDIA
_UNKNOWN_PHONES = dict.fromkeys(("spn", "<spn>", "<unk>"), symbols.NOISE)


Span = tuple[str, float, float]  # a label, its start and its end in seconds


class Grid(NamedTuple):
    """The tiers of one recording, in order of time."""

    duration_s: float | None  # of the recording, if the source has it
    words: list[TimedWord]  # empty if the source has none
    phones: list[TimedPhone]  # without silences, unless it is a complete sequence
    # pitch of each phone of a complete sequence, 0 where unvoiced, if the source has it
    f0_hz: tuple[float, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the phones are a complete sequence of this toolkit, with every pause."""
        names = [phone.name for phone in self.phones]
        if names[:1] == [symbols.SILENCE]:
            return names[-1] in symbols.PUNCTUATION_PAUSES
        return not _SYMBOLS.isdisjoint(names)  # texts of these have no silence at the start


def make_grid(duration_s: float | None, words: Iterable[Span], phones: Iterable[Span]) -> Grid:
    """Builds a grid without silences, unless its sequence is complete; unknown is `<spn>`."""
    spoken = [TimedWord(*word) for word in words if not is_silence(word[0])]
    named = [TimedPhone(_UNKNOWN_PHONES.get(name.lower(), name), a, b) for name, a, b in phones]
    grid = Grid(duration_s, spoken, named)
    if grid.is_complete:
        return grid
    return grid._replace(phones=[phone for phone in named if not is_silence(phone.name)])


def is_silence(label: str) -> bool:
    """Returns whether a label is silence in any aligner's files, or a pause of this toolkit."""
    return label.lower() in _SILENCES or label in symbols.PAUSES


def check_times(grid: Grid) -> None:
    """Checks that times are numbers from 0, in order and without overlap."""
    for tier in (grid.words, grid.phones):
        for label, start_s, end_s in tier:
            if not 0 <= start_s <= end_s < inf:
                times = f"{label} lasts from {start_s:.3f} to {end_s:.3f} s"
                raise AlignmentError(f"{times}, and must end after it starts; {_AGAIN}")
        for (label, start_s, end_s), (after, after_s, _) in pairwise(tier):
            if after_s < start_s or end_s - after_s > MAX_OVERLAP_S:
                times = f"{label} lasts until {end_s:.3f} s, and {after} starts at {after_s:.3f} s"
                raise AlignmentError(f"times overlap or are not in order: {times}; {_AGAIN}")


def check_text(text: object, utterance: Utterance) -> None:
    """Refuses an alignment of another text than that of its utterance; None if it is not known."""
    if text not in (None, utterance.text):
        fault = f"it is of the text {str(text)[:_SHOWN]!r}, not {utterance.text[:_SHOWN]!r}"
        raise AlignmentError(f"{fault}; make it again")


def align_grid(
    grid: Grid, spoken: SpokenText, duration_s: float, edge_silence_s: float
) -> Alignment:
    """Joins a source's phones with the words and the punctuation of the text.

    Raises AlignmentError if the source belongs to another text or recording: if it differs from the
    audio by more than `MAX_MISMATCH_S`, a phone ends more than `MAX_CUT_S` after the audio, it
    lacks a word, or has phones or words of another text.
    """
    if not grid.phones:
        raise AlignmentError("it has no phones, only silence; does it belong to this recording?")
    check_times(grid)
    _check_same(grid, spoken, duration_s)
    _check_missing(grid, spoken, duration_s)
    names = tuple(phone.name for phone in grid.phones)
    last = grid.phones[-1]
    if grid.is_complete or names == spoken.phones:  # a phone lasts until the next one starts
        edges = np.array([*(phone.start_s for phone in grid.phones), last.end_s])
        f0_hz = np.array(grid.f0_hz) if grid.f0_hz else None
        return Alignment(names, edges, find_words(names, spoken), f0_hz=f0_hz)
    if last.end_s - duration_s > MAX_CUT_S or last.end_s > last.start_s >= duration_s:
        fault = f"its last phone, {last.name}, lasts from {last.start_s:.3f} to {last.end_s:.3f} s"
        raise AlignmentError(f"{fault}, and the recording ends at {duration_s:.3f} s; {_AGAIN}")
    if grid.words:
        words = _by_words(grid, spoken)
    else:
        spans = _spans_of_words(names, spoken)
        words = aligner.aligned_words(spoken, [grid.phones[start:end] for start, end in spans])
    return aligner.merge(words, duration_s, edge_silence_s)


def file_aligner(
    folder_of: Callable[[PreprocessConfig, Path], Path],
    find: Callable[[Path, Utterance], Path],
    read: Callable[[Path, Utterance], Grid],
    remedy: str,
) -> aligner.Aligner:
    """Returns an aligner that reads the alignment of each utterance from a file.

    `folder_of` gets the configuration and the folder of the corpus, `find` the folder of the files
    and the utterance; `remedy` is what to do without that folder.
    """

    def make(config: PreprocessConfig, dataset_root: Path, _folder: Path) -> aligner.Align:
        folder = folder_of(config, dataset_root)
        if not folder.is_dir():
            missing = f"preprocess.aligner is {config.aligner}, but there is no folder {folder}"
            raise InputError(f"{missing}; {remedy}")

        def align(utterance: Utterance, wav: np.ndarray, spoken: SpokenText) -> Alignment:
            path, rate = find(folder, utterance), config.sample_rate
            with aligner.naming(path):
                grid = read(path, utterance)
                alignment = align_grid(grid, spoken, len(wav) / rate, config.edge_silence_s)
                return replace(alignment, notices=check_coverage(alignment, wav, rate))

        return align

    return aligner.Aligner(
        make=make, files=lambda config, root: partial(find, folder_of(config, root))
    )


def find_words(names: Sequence[str], spoken: SpokenText) -> tuple[Word, ...]:
    """Finds the words of a text in phones and pauses that may differ from those of the text."""
    indices = [index for index, name in enumerate(names) if name not in symbols.PAUSES]
    spans = _spans_of_words([names[index] for index in indices], spoken)
    return tuple(
        Word(word.text, indices[start], indices[end - 1] + 1)
        for word, (start, end) in zip(spoken.words, spans, strict=True)
        if end > start
    )


def _spans_of_words(names: Sequence[str], spoken: SpokenText) -> list[tuple[int, int]]:
    """Returns the first phone of each word, and one past its last."""
    ends = matching.match_boundaries(_phones_of_words(spoken), [[_bare(name)] for name in names])
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _phones_of_words(spoken: SpokenText) -> list[list[str]]:
    return [[_bare(phone) for phone in spoken.phones[w.start : w.end]] for w in spoken.words]


def _check_same(grid: Grid, spoken: SpokenText, duration_s: float) -> None:
    """Refuses a source of a recording of another length, or of another text."""
    last_s = grid.phones[-1].end_s
    # a source that does not give its length may leave out silence at its end
    longest = max(last_s, grid.duration_s or (duration_s if last_s < duration_s else 0.0))
    if abs(longest - duration_s) > MAX_MISMATCH_S:
        fault = f"it lasts {longest:.2f} s, the recording {duration_s:.2f} s"
        rule = f"more than {MAX_MISMATCH_S} s of difference"
        raise AlignmentError(f"{fault} ({rule}); does it belong to this recording?")
    n_expected = sum(word.end - word.start for word in spoken.words)
    n_phones = sum(phone.name not in symbols.PAUSES for phone in grid.phones)
    if not MIN_PHONE_RATIO <= n_phones / max(n_expected, 1) <= 1 / MIN_PHONE_RATIO:
        fault = f"it has {n_phones} phones, the text {n_expected}"
        raise AlignmentError(f"{fault}; does it belong to this text?")
    all_s = sum(phone.end_s - phone.start_s for phone in grid.phones)
    unknown_s = sum(p.end_s - p.start_s for p in grid.phones if p.name == symbols.NOISE)
    if unknown_s > MAX_UNKNOWN_SHARE * all_s:
        fault = f"{unknown_s:.2f} of its {all_s:.2f} s are phones of unknown words (spn)"
        raise AlignmentError(f"{fault}; give the aligner a dictionary with the words of this text")
    words = [word.text for word in grid.words]
    if not matching.is_same_text([word.text for word in spoken.words], words):
        words_of_file = " ".join(words)[:_SHOWN]
        fault = f"its words are '{words_of_file}', those of the text '{spoken.text[:_SHOWN]}'"
        raise AlignmentError(f"{fault}; does it belong to this text?")


def _check_missing(grid: Grid, spoken: SpokenText, duration_s: float) -> None:
    """Refuses sources without phones for a word of the text."""
    for word in grid.words:
        is_spoken = matching.UNKNOWN not in matching.symbols_of(word.text)
        if is_spoken and not any(word.start_s <= _middle(p) <= word.end_s for p in grid.phones):
            span = f"{word.start_s:.2f} to {word.end_s:.2f} s"
            raise AlignmentError(f"its word '{word.text}' from {span} has no phones; {_AGAIN}")
    units: Sequence[TimedPhone | TimedWord] = grid.words
    words, labels = [word.text for word in spoken.words], [word.text for word in grid.words]
    if grid.is_complete or not matching.is_comparable(words, labels):
        units = [phone for phone in grid.phones if phone.name not in symbols.PAUSES]
        names = [name for name, _, _ in units]
        phones = [[matching.UNKNOWN if name == symbols.NOISE else _bare(name)] for name in names]
        missing = matching.first_missing_word(_phones_of_words(spoken), phones)
    else:
        spelt = ([matching.symbols_of(word) for word in of] for of in (words, labels))
        missing = matching.first_missing_word(*spelt)
    if missing is not None:
        index, n_before = missing
        start_s = units[n_before - 1].end_s if n_before else 0.0
        end_s = units[n_before].start_s if n_before < len(units) else duration_s
        fault = f"it lacks the word '{spoken.words[index].text}' of the text"
        raise AlignmentError(f"{fault}, between {start_s:.2f} and {end_s:.2f} s; {_AGAIN}")


def _by_words(grid: Grid, spoken: SpokenText) -> list[AlignedWord]:
    """Returns the file's words, with the text's punctuation."""
    words = [*_timed_words(grid)]
    texts = ([matching.symbols_of(word.text) for word in of] for of in (spoken.words, words))
    matched = matching.match_boundaries(*texts)
    for pause, count in zip(aligner.pauses_after(spoken), matched, strict=True):
        if pause and count:
            words[count - 1] = words[count - 1]._replace(pause=pause)
    return words


def _timed_words(grid: Grid) -> Iterator[AlignedWord]:
    """Yields words with the phones whose middle is in them; others become words of their own."""
    waiting = list(reversed(grid.phones))
    for word in grid.words:
        while waiting and _middle(waiting[-1]) < word.start_s:
            phone = waiting.pop()
            yield AlignedWord(phone.name, (phone,))
        inside = []
        while waiting and _middle(waiting[-1]) <= word.end_s:
            inside.append(waiting.pop())
        if inside:
            yield AlignedWord(word.text, tuple(inside))
    yield from (AlignedWord(phone.name, (phone,)) for phone in reversed(waiting))


def _middle(phone: TimedPhone) -> float:
    return (phone.start_s + phone.end_s) / 2


def _bare(phone: str) -> str:
    return phone.lower().rstrip("012").lstrip("ˈˌ")
