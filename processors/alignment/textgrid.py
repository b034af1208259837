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
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from config.schema import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment import AlignmentError
from processors.alignment.timed import Grid, Interval, align_grid, is_silence, make_grid
from processors.records import Alignment, SpokenText
from utils.errors import InputError
from utils.files import user_path

_TIER_NAMES = {
    **{"word": "words", "words": "words", "phone": "phones", "phones": "phones"},
    "pauses": "pauses",
}
_DECLARED = re.compile(  # how many intervals a tier has, in the long and in the short form
    r'intervals:\s*size\s*=\s*(\d+)|"IntervalTier"\s+"[^"\n]*"\s+[\d.-]+\s+[\d.]+\s+(\d+)'
)


def make_aligner(config: PreprocessConfig, dataset_root: Path) -> "TextGridAligner":
    """The aligner of a dataset.

    Raises:
        InputError: If the folder of TextGrids is missing.
    """
    folder = textgrid_folder(config, dataset_root)
    if not folder.is_dir():
        raise InputError(
            f"preprocess.aligner is textgrid, but there is no folder {folder}; put <id>.TextGrid"
            " files there, set preprocess.textgrid_dir, or align without TextGrids: set"
            " preprocess.aligner to pocketsphinx (English) or hmm (any language)"
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
            return align_grid(grid, spoken, duration_s, self.edge_silence_s)
        except AlignmentError as error:
            raise AlignmentError(f"{path}: {error}") from None


class Tiers(NamedTuple):
    """Which tiers of a TextGrid hold what; names in any case."""

    phones: str = ""  # empty: `phones` or `phone`, also with a speaker before it
    words: str = ""


USUAL_TIERS = Tiers()


def read_textgrid(path: Path, tiers: Tiers = USUAL_TIERS) -> Grid:
    """Reads the tiers of words and phones of a TextGrid of either form.

    A tier `pauses`, as the exports of this toolkit have it, makes the phones a whole sequence.

    Args:
        path: The file.
        tiers: Their names, where they are not `words` and `phones`.

    Raises:
        AlignmentError: If the file is missing, empty, cut short or damaged, or has no phones.
    """
    # praatio's own objects refuse what MFA writes (intervals past the end or of no length)
    from praatio.utilities.errors import PraatioException
    from praatio.utilities.textgrid_io import parseTextgridStr

    text = _read_text(path)
    try:
        plain = parseTextgridStr(text, includeEmptyIntervals=True)
        rows = [tier for tier in plain["tiers"] if tier["class"] == "IntervalTier"]
        _check_declared(text, rows)
        found = {_kind(tier["name"], tiers): _intervals(tier["entries"]) for tier in reversed(rows)}
        duration_s = float(plain["xmax"])
    except (PraatioException, ValueError, LookupError, TypeError, AttributeError) as error:
        raise AlignmentError(f"{path}: not a whole TextGrid ({error}); make it again") from None
    spoken = [one for one in found.get("phones", []) if not is_silence(one.label)]
    if not spoken:
        names = ", ".join(str(tier["name"]) for tier in rows) or "none"
        wanted = tiers.phones or "phones"
        raise AlignmentError(f"{path}: no phones; expected a tier `{wanted}`, found {names}")
    pauses = [one for one in found.get("pauses", []) if one.label]
    phones = sorted([*spoken, *pauses], key=_place)
    return make_grid(duration_s, found.get("words", []), phones)


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


def _kind(name: str, tiers: Tiers) -> str:
    """What a tier holds; MFA puts the speaker before its name: `p225 - phones`."""
    for kind, wanted in tiers._asdict().items():
        if wanted and name.strip().lower() == wanted.lower():
            return kind
    known = _TIER_NAMES.get(name.rpartition(" - ")[2].strip().lower(), name)
    return name if getattr(tiers, known, "") else known


def _intervals(entries: Sequence[tuple[str, str, str]]) -> list[Interval]:
    return sorted((Interval(text, float(a), float(b)) for a, b, text in entries), key=_place)


def _place(interval: Interval) -> tuple[float, float]:
    return interval.start_s, interval.end_s
