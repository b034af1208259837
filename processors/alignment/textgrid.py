"""Alignments made elsewhere: Praat TextGrids, as the Montreal Forced Aligner (MFA) writes them.

What MFA's files are like, and what is done about it:

- Silence is `sp`, `sil`, an empty label or no interval at all: all the same here.
- Unknown words are `<unk>`, and their phones `spn`: these become `<spn>`.
- Intervals and tiers end up to half a second past or before the audio's end: they are cut.
- Intervals of no length: such phones last 0 s.
- Words are written otherwise than in the text: matched by their letters.
- There is no tier of words: matched by phones.

The file's phones are kept, also where the lexicon has others: they are what is said.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from config.schema import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment import AlignmentError
from processors.alignment.matching import match_boundaries
from processors.alignment.merge import SaidWord, Segment, merge, pauses_after
from processors.records import Alignment, SpokenText
from processors.text.symbols import NOISE
from utils.errors import InputError
from utils.files import user_path

MAX_MISMATCH_S = 0.5  # between the lengths of alignment and audio
MIN_PHONE_RATIO = 0.5  # of the file's phones to those of the text; and its inverse the other way

_SILENCES = {"", "sp", "sil", "<sil>", "<eps>", "pau"}
_UNKNOWN_PHONES = {"spn", "<spn>", "<unk>"}
_TIER_NAMES = {"word": "words", "words": "words", "phone": "phones", "phones": "phones"}
_DECLARED = re.compile(  # how many intervals a tier has, in the long and in the short form
    r'intervals:\s*size\s*=\s*(\d+)|"IntervalTier"\s+"[^"\n]*"\s+[\d.-]+\s+[\d.]+\s+(\d+)'
)


class Interval(NamedTuple):
    """A labelled stretch of a tier; silences are not kept."""

    label: str
    start_s: float
    end_s: float


class Grid(NamedTuple):
    """What a TextGrid says."""

    duration_s: float
    words: list[Interval]  # empty where there is no such tier
    phones: list[Interval]


def make_aligner(config: PreprocessConfig, dataset_root: Path) -> "TextGridAligner":
    """The aligner of a dataset.

    Raises:
        InputError: If the folder of TextGrids is missing.
    """
    folder = textgrid_folder(config, dataset_root)
    if not folder.is_dir():
        raise InputError(
            f"preprocess.aligner is textgrid, but there is no folder {folder}; put <id>.TextGrid"
            " files there, set preprocess.textgrid_dir, or set preprocess.aligner to pocketsphinx"
        )
    return TextGridAligner(folder, config.edge_silence_s)


def alignment_file(utterance: Utterance, config: PreprocessConfig, dataset_root: Path) -> Path:
    """The TextGrid of an utterance, whether or not it exists."""
    return find_textgrid(textgrid_folder(config, dataset_root), utterance)


def textgrid_folder(config: PreprocessConfig, dataset_root: Path) -> Path:
    """Where the TextGrids of a dataset are looked for."""
    if config.textgrid_dir:
        return user_path(config.textgrid_dir)
    return dataset_root / "TextGrid"


def find_textgrid(folder: Path, utterance: Utterance) -> Path:
    """`<folder>/<id>.TextGrid`, or in a folder of the speaker's name, as MFA writes it.

    The folder may have the speaker's full name (`VCTK_p225`) or the corpus' own (`p225`).
    """
    name = f"{utterance.id}.TextGrid"
    own_name = utterance.speaker.partition("_")[2] or utterance.speaker
    places = (folder / name, folder / utterance.speaker / name, folder / own_name / name)
    return next((path for path in places if path.is_file()), places[0])


class TextGridAligner:
    """Reads alignments from a folder of TextGrids.

    Args:
        folder: Holds `<id>.TextGrid` or `<speaker>/<id>.TextGrid`.
        edge_silence_s: Silence kept at both ends, seconds.
    """

    def __init__(self, folder: Path, edge_silence_s: float) -> None:
        self.folder = folder
        self.edge_silence_s = edge_silence_s

    def __call__(
        self, utterance: Utterance, wav: np.ndarray, sample_rate: int, spoken: SpokenText
    ) -> Alignment:
        """Reads the alignment of one utterance.

        Args:
            utterance: Its id and speaker name the file.
            wav: (S,); only its length counts.
            sample_rate: Of `wav`, Hz.
            spoken: Words and punctuation.

        Raises:
            AlignmentError: If the file is missing, empty, cut short or damaged, differs from the
                audio by more than `MAX_MISMATCH_S`, or holds the phones of another text.
        """
        path = find_textgrid(self.folder, utterance)
        duration_s = len(wav) / sample_rate
        grid = read_textgrid(path)
        try:
            _check_duration(grid, duration_s)
            _check_phones(grid, spoken)
            words = _by_words(grid, spoken) if grid.words else _by_phones(grid, spoken)
            return merge(words, duration_s, self.edge_silence_s)
        except AlignmentError as error:
            raise AlignmentError(f"{path}: {error}") from None


def read_textgrid(path: Path) -> Grid:
    """Reads the tiers `words` and `phones` of a TextGrid, in any case and form.

    Raises:
        AlignmentError: If the file is missing, empty, cut short or damaged, or has no phones.
    """
    # praatio's own objects refuse what MFA writes (intervals past the end or of no length)
    from praatio.utilities.errors import PraatioException
    from praatio.utilities.textgrid_io import parseTextgridStr

    text = _read_text(path)
    try:
        plain = parseTextgridStr(text, includeEmptyIntervals=True)
        tiers = [tier for tier in plain["tiers"] if tier["class"] == "IntervalTier"]
        _check_declared(text, tiers)
        found = {_tier_name(tier["name"]): _intervals(tier["entries"]) for tier in reversed(tiers)}
        duration_s = float(plain["xmax"])
    except (PraatioException, ValueError, LookupError, TypeError, AttributeError) as error:
        raise AlignmentError(f"{path}: not a whole TextGrid ({error}); make it again") from None
    if not found.get("phones"):
        names = ", ".join(str(tier["name"]) for tier in tiers) or "none"
        raise AlignmentError(f"{path}: no phones; expected a tier `phones`, found {names}")
    return Grid(duration_s, found.get("words", []), found["phones"])


def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
        utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        text = content.decode("utf-16" if utf16 else "utf-8-sig")
    except OSError as error:
        raise AlignmentError(f"{path}: no TextGrid ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise AlignmentError(f"{path}: neither UTF-8 nor UTF-16 ({error})") from None
    if not text.strip("\0 \r\n"):
        raise AlignmentError(f"{path}: the TextGrid is empty; make it again")
    return text.replace("\r\n", "\n")


def _check_declared(text: str, tiers: Sequence[dict]) -> None:
    declared = [int(long or short) for long, short in _DECLARED.findall(text)]
    found = [len(tier["entries"]) for tier in tiers]
    if declared and declared != found:
        raise ValueError(f"it declares {declared} intervals in its tiers and holds {found}")


def _tier_name(name: str) -> str:
    """`words` or `phones`; MFA puts the speaker before it: `p225 - phones`."""
    return _TIER_NAMES.get(name.rpartition(" - ")[2].strip().lower(), name)


def _intervals(entries: Sequence[tuple[str, str, str]]) -> list[Interval]:
    intervals = [Interval(label, float(start), float(end)) for start, end, label in entries]
    return sorted(
        (one for one in intervals if one.label.lower() not in _SILENCES),
        key=lambda one: (one.start_s, one.end_s),
    )


def _check_duration(grid: Grid, duration_s: float) -> None:
    longest = max(grid.duration_s, grid.phones[-1].end_s)
    if abs(longest - duration_s) > MAX_MISMATCH_S:
        raise AlignmentError(
            f"it lasts {longest:.2f} s, the recording {duration_s:.2f} s (more than"
            f" {MAX_MISMATCH_S} s of difference); is it of this recording?"
        )


def _check_phones(grid: Grid, spoken: SpokenText) -> None:
    expected = sum(word.end - word.start for word in spoken.words)
    if not MIN_PHONE_RATIO <= len(grid.phones) / max(expected, 1) <= 1 / MIN_PHONE_RATIO:
        raise AlignmentError(
            f"it has {len(grid.phones)} phones, the text {expected}; is it of this text?"
        )


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
        [[_bare(phone) for phone in spoken.phones[w.start : w.end]] for w in spoken.words],
        [[_bare(phone.label)] for phone in grid.phones],
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
