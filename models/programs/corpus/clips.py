"""Clips of recordings: their record, the table of what is left out, and a page to listen to."""

import csv
import io
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from utils.errors import counted
from utils.files import write_text

RATE = 16000  # Hz, of pocketsphinx's acoustic model and of the aligner
SHORTEST_S, LONGEST_S = 1.0, 15.0  # of a clip, as in other corpora for TTS
LONGEST_PAUSE_S = 1.0  # inside a clip; longer ones may hold noise
USUAL_S = 5.0  # of a clip, to which others are compared
MARGIN_S = 0.1  # of silence before and after the speech of a clip
_SHOWN = 100  # clips of each list of the page, about ten minutes
_LONGEST_TEXT = 300  # characters of a text that is left out, which may be a whole chapter
_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; media-src 'self' file:">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; font: 1rem/1.4 system-ui, sans-serif }}
body {{ max-width: 75rem; margin: 1rem auto; padding: 0 1rem }}
td {{ padding: .3rem .6rem .3rem 0; vertical-align: top; border-bottom: 1px solid #8884 }}
audio {{ height: 2rem; width: 18rem }}
</style>
<h1>{title}</h1>
<p>{summary}</p>
"""


class CorpusClip(NamedTuple):
    """A stretch of a recording with its text; a line of a table of clips."""

    recording: str
    start_s: float
    end_s: float
    text: str
    misfit: float  # percent of the words that are recognised otherwise, later nats of the aligner
    reason: str = ""  # why it is left out
    room_start_s: float = 0.0  # end of the word before it
    room_end_s: float = 0.0  # start of the word after it
    text_first: int = -1  # words of the text; -1 for a clip that has none, or is left out
    text_last: int = -1
    n_unrecognised: int = 0  # words at its edges that belong to it by the text only
    parts: Sequence["CorpusClip"] = ()  # to which it may be divided; lists, as a table is read

    def span_s(self, margin_s: float) -> tuple[float, float]:
        """Returns start and end with a margin that no word before or after the clip reaches."""
        start_s = max(self.start_s - margin_s, min(self.room_start_s, self.start_s), 0.0)
        return start_s, min(self.end_s + margin_s, max(self.room_end_s, self.end_s))


def as_cell(text: str) -> str:
    """Returns a text as a cell of metadata.csv, on one line and without `|`."""
    return " ".join(text.replace("|", " ").split())


def write_left_out(path: Path, clips: Sequence[CorpusClip]) -> None:
    """Writes what is left out, and why, in the order of the recordings."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["recording", "start_s", "end_s", "reason", "text"])
    for clip in sorted(clips, key=lambda clip: (clip.recording, clip.start_s)):
        times = [f"{clip.start_s:.2f}", f"{clip.end_s:.2f}"] if clip.recording else ["", ""]
        writer.writerow([clip.recording, *times, clip.reason, clip.text[:_LONGEST_TEXT]])
    write_text(path, table.getvalue())


def write_page(
    path: Path,
    good: Mapping[str, CorpusClip],
    left_out: Sequence[CorpusClip],
    recordings: Mapping[str, Path],
) -> None:
    """Writes a page with the clips of the largest misfit, by id, and with what is left out.

    Clips are those in the folder `wavs` next to it; what is left out is in the recordings.
    """
    minutes = sum(clip.end_s - clip.start_s for clip in good.values()) / 60
    worst = sorted(good.items(), key=lambda item: -item[1].misfit)[:_SHOWN]
    audible = [clip for clip in left_out if clip.recording]
    longest = sorted(audible, key=lambda clip: clip.start_s - clip.end_s)[:_SHOWN]
    n_good, n_bad = len(good), len(audible)
    summary = f"{counted(n_good, 'clips')}, {minutes:.1f} min; {n_bad} stretches left out."
    parts = [_HEAD.format(title=escape(path.absolute().parent.name), summary=summary)]
    parts.append(f"<h2>Clips with the largest misfit ({len(worst)} of {n_good})</h2><table>")
    for id, clip in worst:
        parts.append(_row(f"wavs/{quote(id)}.wav", f"{id}, misfit {clip.misfit:.0f}", clip))
    parts.append(f"</table><h2>Left out, the longest ({len(longest)} of {n_bad})</h2><table>")
    for clip in longest:
        span = f"{clip.recording}, {clip.start_s:.2f}–{clip.end_s:.2f} s"
        uri = recordings[clip.recording].absolute().as_uri()
        parts.append(_row(f"{uri}#t={clip.start_s:.2f},{clip.end_s:.2f}", span, clip))
    write_text(path, "\n".join([*parts, "</table>", ""]))


def _row(url: str, label: str, clip: CorpusClip) -> str:
    audio = f'<audio controls preload="none" src="{escape(url)}"></audio>'
    text = f"{escape(clip.text[:_LONGEST_TEXT])}<br><em>{escape(clip.reason)}</em>"
    return f"<tr><td>{audio}<td>{escape(label)}<td>{text}"
