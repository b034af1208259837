"""HTML of the page: the template, its style, its script, and data that cannot break out of them."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from models.evaluation.report.contents import Contents, heard_of, ordered
from models.evaluation.report.differences import difference_rows
from models.evaluation.report.notes import FlagRow, flag_rows, meanings_of
from models.evaluation.report.summary import rows_of
from models.evaluation.report.tracks import RECORDING, Track
from models.evaluation.scores import Evaluation, System
from modules.mel import MelConfig
from processors.scoring.utterance_scorer import EvaluatedUtterance

if TYPE_CHECKING:
    from markupsafe import Markup

_HERE = Path(__file__).parent
# one script, in this order
_SCRIPTS = ("base.js", "draw.js", "player.js", "findings.js", "card.js", "list.js")
_TYPES = {".flac": "audio/flac", ".png": "image/png"}
_EXPLAINED = {
    "natural": "the same sentences read once more by the same speaker, which no voice need beat",
    "copy": "recordings through the vocoder alone, which is what it costs",
}


class Sources(NamedTuple):
    """Where the page finds a sound or picture."""

    folder: Path  # where it is now
    link: str  # the folder beside the page; empty: it is embedded

    def of(self, name: str) -> str:
        """The URL of a file."""
        if self.link:
            return f"{self.link}/{name}"
        file = self.folder / name
        content = base64.b64encode(file.read_bytes()).decode("ascii")
        return f"data:{_TYPES[file.suffix]};base64,{content}"


def script_json(value: object) -> "Markup":
    """JSON that is safe inside of a script element: it holds no `<`, `>` or `&`."""
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
    sources: Sources,
) -> "Markup":
    """What the page needs to show an utterance, which it reads when it is near the window."""
    voices = {RECORDING: 0, **{system.name: n for n, system in enumerate(systems, 1)}}
    shown = sorted(
        (track for track in tracks if track.voice in voices), key=lambda t: voices[t.voice]
    )
    return script_json(
        {
            "frame_s": mel.hop_length / mel.sample_rate,
            "tracks": [_track_json(track, voices[track.voice], sources) for track in shown],
            "heard": [heard._asdict() for heard in heard_of(item, systems)],
        }
    )


def _track_json(track: Track, voice: int, sources: Sources) -> Mapping[str, object]:
    return {
        "voice": voice,
        "seconds": track.seconds,
        "picture_s": track.picture_s,
        "audio": sources.of(track.audio),
        "picture": sources.of(track.picture),
        "phones": track.phones,
        "f0": _tenths(track.f0),
        "warped": None if track.warped is None else _tenths(track.warped),
    }


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
    """Writes the page; of `data` one utterance at a time is in memory."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["breakable"] = _breakable
    script = "".join(_part(name) for name in _SCRIPTS)
    systems = ordered(evaluation.systems)
    stream = environment.get_template("template.html").stream(
        **_tables(systems, contents),
        comparisons=evaluation.comparisons,
        differences=difference_rows(contents.columns, contents.voices, evaluation.comparisons),
        mel=evaluation.mel,
        policy=_policy(script, embedded=embedded),
        style=Markup(_part("style.css")),
        script=Markup(script),
        data=data,
    )
    with path.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(stream)


def _tables(systems: Sequence[System], contents: Contents) -> dict[str, object]:
    """What the tables above the utterances are made of."""
    rows = rows_of(contents.columns, contents.voices, systems)
    flags = flag_rows(systems)
    own = [system for system in systems if not system.is_reference]
    # what is judged stands first: a narrow window shows it without scrolling
    voices = sorted(range(len(contents.voices)), key=lambda n: contents.voices[n].is_reference)
    return {
        "title": _title(own),
        "date": f"{datetime.now().astimezone():%Y-%m-%d %H:%M}",
        "systems": systems,
        "own": own,
        "n_references": len(systems) - len(own),
        "voices": contents.voices,
        "columns": contents.columns,
        "sort": contents.sort,
        "rows": rows,
        "with_scores": [n for n in voices if any(row.cells[n] for row in rows)],
        "explained": _EXPLAINED,
        "flags": [row for row in flags if any(row.counts)],
        "not_found": [_not_found(row) for row in flags if not any(row.counts)],
        "with_flags": [n for n in voices if n > 0 or any(row.counts[n] for row in flags)],
        "meanings": meanings_of(contents.columns, flags),
        "index": script_json(
            {
                "voices": [voice._asdict() for voice in contents.voices],
                "checks": {row.check: row.label for row in flags},
                "columns": [asdict(column) for column in contents.columns],
                "utterances": [utterance._asdict() for utterance in contents.utterances],
            }
        ),
    }


def _not_found(row: FlagRow) -> str:
    return f"{row.label} ({row.unjudged} not judged)" if row.unjudged else row.label


def _breakable(name: str) -> "Markup":
    """A name that may be broken after its signs."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[_./-])", name))


def _title(own: Sequence[System]) -> str:
    if len(own) == 1 and "/" not in own[0].name:
        return "/".join(own[0].folder.parts[-2:])
    return ", ".join(system.name for system in own)


def _policy(script: str, *, embedded: bool) -> str:
    """What a browser may load and run: this one script, and nothing from elsewhere."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    places = "data:" if embedded else "'self' file:"
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        f"img-src {places}; media-src {places}; base-uri 'none'; form-action 'none'"
    )


def _part(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
