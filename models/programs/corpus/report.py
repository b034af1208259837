"""The tables of a corpus of recordings, and a page to listen to its worst clips."""

import csv
import io
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from models.programs.corpus.checking import Clip
from utils.errors import counted
from utils.files import write_text

_SHOWN = 100  # clips of each list of the page
_LONGEST_TEXT = 300  # characters of a text that is left out
_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; media-src 'self' file:">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; font: 1rem/1.4 system-ui, sans-serif }}
body {{ max-width: 75rem; margin: 1rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; width: 100% }}
td {{ padding: .3rem .6rem .3rem 0; vertical-align: top; border-bottom: 1px solid #8884 }}
audio {{ height: 2rem; width: 18rem }}
</style>
<h1>{title}</h1>
<p>{summary}</p>
"""


def write_left_out(path: Path, clips: Sequence[Clip]) -> None:
    """Writes what is left out, and why, in the order of the recordings."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["recording", "start_s", "end_s", "reason", "text"])
    for clip in sorted(clips, key=lambda clip: (clip.recording, clip.start_s)):
        times = [f"{clip.start_s:.2f}", f"{clip.end_s:.2f}"] if clip.recording else ["", ""]
        writer.writerow([clip.recording, *times, clip.reason, clip.text[:_LONGEST_TEXT]])
    write_text(path, table.getvalue())


def write_page(
    path: Path, good: Mapping[str, Clip], left_out: Sequence[Clip], recordings: Mapping[str, Path]
) -> None:
    """Writes a page with the clips of the largest misfit, by id, and with what is left out.

    Clips are those in the folder `wavs` next to it; what is left out is in the recordings.
    """
    minutes = sum(clip.end_s - clip.start_s for clip in good.values()) / 60
    worst = sorted(good.items(), key=lambda item: -item[1].misfit)[:_SHOWN]
    heard = [clip for clip in left_out if clip.recording]
    longest = sorted(heard, key=lambda clip: clip.start_s - clip.end_s)[:_SHOWN]
    summary = f"{counted(len(good), 'clips')}, {minutes:.1f} min; {len(heard)} stretches left out."
    parts = [_HEAD.format(title=escape(path.absolute().parent.name), summary=summary)]
    parts.append(f"<h2>Clips with the largest misfit ({len(worst)} of {len(good)})</h2><table>")
    for id, clip in worst:
        parts.append(_row(f"wavs/{quote(id)}.wav", f"{id}, misfit {clip.misfit:.0f}", clip))
    parts.append(f"</table><h2>Left out, the longest ({len(longest)} of {len(heard)})</h2><table>")
    for clip in longest:
        place = f"{clip.recording}, {clip.start_s:.2f}–{clip.end_s:.2f} s"
        uri = recordings[clip.recording].absolute().as_uri()
        parts.append(_row(f"{uri}#t={clip.start_s:.2f},{clip.end_s:.2f}", place, clip))
    write_text(path, "\n".join([*parts, "</table>", ""]))


def _row(sound: str, place: str, clip: Clip) -> str:
    audio = f'<audio controls preload="none" src="{escape(sound)}"></audio>'
    text = f"{escape(clip.text[:_LONGEST_TEXT])}<br><em>{escape(clip.reason)}</em>"
    return f"<tr><td>{audio}<td>{escape(place)}<td>{text}"
