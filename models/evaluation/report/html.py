"""HTML of the page: the template with its style, script and escaped data."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from models.evaluation.report.contents import Contents, ordered, transcripts_of
from models.evaluation.report.tables import difference_rows, flag_rows, meanings_of, score_rows
from models.evaluation.report.tracks import RECORDING, Track
from models.evaluation.results import Evaluation, System
from modules.mel import MelConfig
from processors.scoring.utterance_scorer import EvaluatedUtterance

if TYPE_CHECKING:
    from markupsafe import Markup

_STATIC = Path(__file__).parent / "static"
# one script, in this order
_SCRIPTS = ("base.js", "draw.js", "player.js", "findings.js", "card.js", "list.js")
_TYPES = {".flac": "audio/flac", ".png": "image/png"}
_EXPLAINED = {
    "natural": "second readings by the same speaker; no system is expected to score better",
    "copy": "resynthesised recordings: the error of mel and vocoder alone",
}


class MediaFolder(NamedTuple):
    """Where the page finds sounds and pictures."""

    folder: Path  # where they are now
    link: str  # the folder next to the page; empty: they are embedded

    def url(self, name: str) -> str:
        """The URL of a file."""
        if self.link:
            return f"{self.link}/{name}"
        file = self.folder / name
        content = base64.b64encode(file.read_bytes()).decode("ascii")
        return f"data:{_TYPES[file.suffix]};base64,{content}"


def script_json(value: object) -> "Markup":
    """Formats JSON for a script element: without `<`, `>` and `&`."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)


def data_of(
    item: EvaluatedUtterance,
    tracks: Sequence[Track],
    systems: Sequence[System],
    mel: MelConfig,
    media: MediaFolder,
) -> "Markup":
    """Formats an utterance as JSON, which the page reads when it scrolls near the window.

    Args:
        item: The utterance.
        tracks: Its tracks.
        systems: In the order in which they are shown.
        mel: Of the frames.
        media: Where the files of the tracks are.
    """
    order = {RECORDING: 0, **{system.name: n for n, system in enumerate(systems, 1)}}
    shown = sorted((one for one in tracks if one.system in order), key=lambda t: order[t.system])
    return script_json(
        {
            "frame_s": mel.hop_length / mel.sample_rate,
            "tracks": [
                {
                    "voice": order[track.system],
                    "seconds": track.seconds,
                    "picture_s": track.picture_s,
                    "audio": media.url(track.audio),
                    "picture": media.url(track.picture),
                    "phones": track.phones,
                    "f0": _tenths(track.f0),
                    "warped": None if track.warped is None else _tenths(track.warped),
                }
                for track in shown
            ],
            "heard": [one._asdict() for one in transcripts_of(item, systems)],
        }
    )


def _tenths(f0: np.ndarray) -> list[float]:
    """Tenths of a hertz, short as JSON: a plain 0 where unvoiced."""
    return [round(hz, 1) or 0 for hz in f0.astype(float).tolist()]


def render(
    path: Path,
    evaluation: Evaluation,
    contents: Contents,
    data: Iterable["Markup"],
    *,
    embedded: bool,
) -> None:
    """Writes the page, with one utterance of `data` at a time in memory.

    Args:
        path: File to write.
        evaluation: Results.
        contents: What is shown of them.
        data: JSON of each utterance.
        embedded: Whether sounds and pictures are in the data.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    files, strict = FileSystemLoader(_STATIC), StrictUndefined
    environment = Environment(loader=files, undefined=strict, autoescape=True, trim_blocks=True)
    environment.filters["breakable"] = _breakable
    script = "".join(_part(name) for name in _SCRIPTS)
    systems = ordered(evaluation.systems)
    stream = environment.get_template("template.html").stream(
        **_tables(systems, evaluation.own, contents),
        comparisons=evaluation.comparisons,
        differences=difference_rows(contents.columns, contents.systems, evaluation.comparisons),
        mel=evaluation.mel,
        policy=_policy(script, embedded=embedded),
        style=Markup(_part("style.css")),
        script=Markup(script),
        data=data,
    )
    with path.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(stream)


def _tables(
    systems: Sequence[System], own: Sequence[System], contents: Contents
) -> dict[str, object]:
    """Variables of the template for the tables above the utterances."""
    shown, flags = contents.systems, flag_rows(systems)
    rows = score_rows(contents.columns, shown, systems)
    # systems before references: a narrow window shows them without scrolling
    order = sorted(range(len(shown)), key=lambda n: shown[n].is_reference)
    return {
        "title": _title(own),
        "date": f"{datetime.now().astimezone():%Y-%m-%d %H:%M}",
        "systems": systems,
        "own": own,
        "n_references": len(systems) - len(own),
        "voices": shown,
        "columns": contents.columns,
        "sort": contents.sort,
        "rows": rows,
        "with_scores": [n for n in order if any(row.cells[n] for row in rows)],
        "explained": _EXPLAINED,
        "flags": [row for row in flags if any(row.counts)],
        "not_found": [
            f"{row.label} ({row.unchecked} not checked)" if row.unchecked else row.label
            for row in flags
            if not any(row.counts)
        ],
        "with_flags": [n for n in order if n > 0 or any(row.counts[n] for row in flags)],
        "meanings": meanings_of(contents.columns, flags),
        "index": script_json(
            {
                "voices": [one._asdict() for one in shown],
                "checks": {row.check: row.label for row in flags},
                "columns": [asdict(column) for column in contents.columns],
                "utterances": [utterance._asdict() for utterance in contents.utterances],
            }
        ),
    }


def _breakable(name: str) -> "Markup":
    """A name with line breaks allowed after punctuation."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[_./-])", name))


def _title(own: Sequence[System]) -> str:
    if len(own) == 1 and "/" not in own[0].name:
        return "/".join(own[0].folder.parts[-2:])
    return ", ".join(system.name for system in own)


def _policy(script: str, *, embedded: bool) -> str:
    """Content security policy: this one script, and nothing from other places."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    places = "data:" if embedded else "'self' file:"
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        f"img-src {places}; media-src {places}; base-uri 'none'; form-action 'none'"
    )


def _part(name: str) -> str:
    return (_STATIC / name).read_text(encoding="utf-8")
