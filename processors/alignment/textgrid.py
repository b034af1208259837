"""The aligner "textgrid": Praat TextGrids, as the Montreal Forced Aligner (MFA) writes them.

Particulars of MFA's files, and how they are treated:

- Silence is `sp`, `sil`, an empty label or a gap: all are equal here.
- Unknown words are `<unk>`, and their phones `spn`: these become `<spn>`.
- Tiers and silences end up to half a second after or before the audio's end: they are cut. A phone
  is cut by 50 ms at most.
- Intervals may have no length: such phones last 0 s.
- Words are spelt differently from the text: they are matched by their letters.
- Without a tier of words, phones are matched instead.

The file's phones are kept where they differ from the lexicon's: they are what is spoken.
"""

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from preprocessors.manifest import Utterance, safe_id
from processors.alignment.aligner import AlignmentError
from processors.alignment.timed import Grid, Span, file_aligner, is_silence, make_grid
from utils.files import user_path

_MAKE = "align this recording, or correct preprocess.textgrid_dir"
_PLACE = itemgetter(1, 2)
_DECLARED = re.compile(  # how many intervals a tier has, in the long and in the short form
    r'intervals:\s*size\s*=\s*(\d+)|"IntervalTier"\s+"[^"\n]*"\s+[\d.-]+\s+[\d.]+\s+(\d+)'
)


def find_textgrid(folder: Path, utterance: Utterance) -> Path:
    """Finds `<id>.TextGrid`, in the folder or in that of the speaker, where MFA writes it."""
    stem = utterance.audio.stem  # of a name that is no id, the aligner knows only the name
    name = f"{stem if safe_id(stem) == utterance.id else utterance.id}.TextGrid"
    # that of VCTK_p225 may be called p225
    short = utterance.speaker.partition("_")[2] or utterance.speaker
    paths = (folder / name, folder / utterance.speaker / name, folder / short / name)
    return next((path for path in paths if path.is_file()), paths[0])


class Tiers(NamedTuple):
    """Names of the tiers of a TextGrid, in upper or lower case."""

    phones: str = ""  # empty: `phones` or `phone`, also after the speaker's name
    words: str = ""


USUAL_TIERS = Tiers()


def read_textgrid(path: Path, tiers: Tiers = USUAL_TIERS) -> Grid:
    """Reads the tiers of words and phones of a TextGrid of either form.

    With a tier `pauses`, which this toolkit exports, the phones are a complete sequence.
    """
    # praatio's own objects refuse what MFA writes (intervals past the end or of no length)
    from praatio.utilities.errors import PraatioException
    from praatio.utilities.textgrid_io import parseTextgridStr

    text = _read_text(path)
    try:
        plain = parseTextgridStr(text, includeEmptyIntervals=True)
        rows = [tier for tier in plain["tiers"] if tier["class"] == "IntervalTier"]
        declared = [int(long or short) for long, short in _DECLARED.findall(text)]
        n_entries = [len(tier["entries"]) for tier in rows]
        if declared and declared != n_entries:
            raise ValueError(f"it declares {declared} intervals in its tiers and holds {n_entries}")
        phones = _intervals(rows, tiers.phones, "phone")
        words = _intervals(rows, tiers.words, "word")
        pauses = [pause for pause in _intervals(rows, "", "pause") if pause[0]]
        duration_s = float(plain["xmax"])
    except (PraatioException, ValueError, LookupError, TypeError, AttributeError) as error:
        raise AlignmentError(f"not a complete TextGrid ({error}); make it again") from None
    spoken = [phone for phone in phones if not is_silence(phone[0])]
    for wanted, intervals in ((tiers.phones or "phones", spoken), (tiers.words, words)):
        if wanted and not intervals:
            names = ", ".join(str(tier["name"]) for tier in rows) or "none"
            raise AlignmentError(f"nothing in a tier `{wanted}`; its tiers are {names}")
    return make_grid(duration_s, words, sorted([*spoken, *pauses], key=_PLACE))


def textgrid_of(tiers: Mapping[str, Sequence[Span]], duration_s: float) -> str:
    """Formats a long TextGrid of intervals longer than 0 s, with gaps as empty intervals."""
    from praatio.utilities.textgrid_io import getTextgridAsStr

    span = {"xmin": 0, "xmax": duration_s}
    rows = []
    for name, intervals in tiers.items():
        entries = [(start_s, end_s, label) for label, start_s, end_s in intervals]
        rows.append({"class": "IntervalTier", "name": name, "entries": entries, **span})
    return str(getTextgridAsStr({"tiers": rows, **span}, "long_textgrid", includeBlankSpaces=True))


def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
        is_utf_16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        text = content.decode("utf-16" if is_utf_16 else "utf-8-sig")
    except OSError as error:
        raise AlignmentError(f"{error.strerror}; {_MAKE}") from None
    except UnicodeDecodeError as error:
        fault = f"no TextGrid in UTF-8 or UTF-16 ({error})"
        raise AlignmentError(f"{fault}; save it as UTF-8") from None
    return text.replace("\r\n", "\n")


def _intervals(rows: Sequence[dict[str, Any]], wanted: str, usual: str) -> list[Span]:
    """Returns the first tier of the wanted or, without one, a usual name; empty if missing."""
    names = (wanted.lower(),) if wanted else (usual, f"{usual}s")
    for row in rows:
        name = row["name"].strip().lower()  # MFA puts the speaker before it: `p225 - phones`
        if name in names or (not wanted and name.rpartition(" - ")[2].strip() in names):
            intervals = ((text, float(a), float(b)) for a, b, text in row["entries"])
            return sorted(intervals, key=_PLACE)
    return []


ALIGNER = file_aligner(
    lambda config, root: user_path(config.textgrid_dir or root / "TextGrid"),
    find_textgrid,
    lambda path, _utterance: read_textgrid(path),
    "put <id>.TextGrid files there, set preprocess.textgrid_dir, or align without TextGrids: set"
    " preprocess.aligner to pocketsphinx (English) or hmm (any language)",
)
