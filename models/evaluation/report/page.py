"""The page of stage 4: one HTML file, from a template with its style, script and escaped data.

Sounds are FLAC, in which browsers can seek; mels are small PNG pictures. More than 20 MB of them go
to a folder next to the page, `report_files` for `report.html`, which it links by relative paths:
both can be moved together. The page loads nothing else, and a browser runs no other script in it.
"""

import base64
import functools
import hashlib
import io
import re
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import numpy as np
import soundfile
import soxr
import torch

from models.base.results import colour_limits
from models.evaluation.report import tables
from models.evaluation.results import Evaluation, System
from modules.mel import MelConfig, MelSpectrogram
from processors.audio.frames import to_pcm16
from processors.audio.pitch import extract_f0
from processors.metrics.utterance_scorer import EvaluatedUtterance, read_waveform
from processors.records import TimedPhone
from utils.errors import InputError
from utils.files import replacing
from utils.logging import progress
from utils.parallel import ParallelBackend, n_cores, run_chunks

if TYPE_CHECKING:
    from markupsafe import Markup

EMBEDDED_BYTES = 20_000_000  # of sounds and pictures in a page; more go to a folder next to it
_PAGE_FILE = re.compile(r"\d+-\d+\.(flac|png)")
_STATIC = Path(__file__).parent / "static"
# one script, in this order
_SCRIPTS = ("base.js", "draw.js", "player.js", "findings.js", "card.js", "list.js")
_TYPES = {".flac": "audio/flac", ".png": "image/png"}
_SORT = ("mcd", "mel_l1")  # the first of these in the page sorts the list at first
_EXPLAINED = {
    "natural": "second readings by the same speaker; no system is expected to score better",
    "copy": "resynthesised recordings: the error of mel and vocoder alone",
}
RECORDING = ""  # the system of the recording; others have names
_INFO = slice(4, 42)  # the first block of FLAC metadata, STREAMINFO: 4 bytes of header and 34 more
_LAST = 0x80  # in the first byte of a header: no other block follows
_SEEK_TABLE = 3  # kind of block
_COLOURS = 64  # with 256 the files are half as large again, and look the same


class Track(NamedTuple):
    """One sound of an utterance, as it is in the JSON of the page."""

    system: str  # RECORDING for the recording
    seconds: float
    picture_s: float  # of the picture; less than a window from the length of the sound
    audio: str  # name of the FLAC file
    picture: str  # name of the PNG file
    phones: list[tuple[str, float, float]]  # names with start and end in seconds; may be none
    f0: list[float]  # Hz by frame of the mel, 0 where unvoiced, (T,)


def write_page(
    path: Path,
    evaluation: Evaluation,
    *,
    n_jobs: int | None = None,
    backend: ParallelBackend = "loky",
) -> None:
    """Writes a page of scores and sounds; `<its name>_files` next to it is replaced, too."""
    systems = tables.shown_systems(evaluation)
    path.parent.mkdir(parents=True, exist_ok=True)
    final = path.with_name(f"{path.stem}_files")
    files = final.iterdir() if final.is_dir() else ()  # of an earlier page
    if others := [file.name for file in files if not _PAGE_FILE.fullmatch(file.name)]:
        raise InputError(f"{final} holds {others[0]}, which is not of a page: move it away")
    with tempfile.TemporaryDirectory(prefix=f".{path.stem}", dir=path.parent) as name:
        folder = Path(name) / final.name
        folder.mkdir()
        tracks = _write_files(folder, evaluation, n_jobs or n_cores(), backend)
        n_bytes = sum(file.stat().st_size for file in folder.iterdir())
        embedded = n_bytes * 4 / 3 <= EMBEDDED_BYTES  # base64
        url = partial(_url, folder, "" if embedded else quote(final.name))
        data = (
            _data_of(item, tracks[position], systems, evaluation.mel, url)
            for position, item in enumerate(evaluation.items)
        )
        with replacing(path) as temporary:
            _render(temporary, evaluation, data, embedded=embedded)
            shutil.rmtree(final, ignore_errors=True)  # of an earlier page
            if not embedded:
                folder.rename(final)


def _write_files(
    folder: Path, evaluation: Evaluation, n_jobs: int, backend: ParallelBackend
) -> list[list[Track]]:
    """Returns the sounds and pictures of every utterance, named by its position."""
    work = partial(write_tracks, folder=folder, mel=evaluation.mel)
    chunks = {f"{position:05d}": [item] for position, item in enumerate(evaluation.items)}
    tracks: dict[str, list[Track]] = {}
    with progress(len(chunks), "page: utterances") as bar:
        for chunk in run_chunks(work, chunks, n_jobs, backend):
            if chunk.lost:
                fault = f"{chunk.lost[0].id}: its sounds crash the process that draws them"
                raise InputError(f"{fault}; are the files damaged? --page no leaves the page out")
            tracks[chunk.key] = chunk.result
            bar.advance()
    return [tracks[key] for key in chunks]


def write_tracks(
    key: str, items: Sequence[EvaluatedUtterance], folder: Path, mel: MelConfig
) -> list[Track]:
    """Writes the files of one utterance, `<key>-0.flac` and so on: the work of one process.

    The key is never made of a text or an id. Sounds of other rates than that of `mel`, the
    definition of the pictures, are resampled for them.
    """
    (item,) = items
    sounds: list[tuple[str, tuple[np.ndarray, int], tuple[TimedPhone, ...]]] = [
        (name, read_waveform(file.file), file.phones) for name, file in item.spoken.items()
    ]
    if item.recorded is not None:
        sounds.insert(0, (RECORDING, (item.recorded(), mel.sample_rate), item.phones()))
    analyses = [_analyse(*waveform, mel) for _, waveform, _ in sounds]
    low, high = colour_limits([log_mel for log_mel, _ in analyses])
    tracks = []
    for n, ((system, (wav, rate), phones), (log_mel, f0)) in enumerate(
        zip(sounds, analyses, strict=True)
    ):
        audio, picture = f"{key}-{n}.flac", f"{key}-{n}.png"
        write_flac(folder / audio, wav, rate)
        write_mel_picture(folder / picture, log_mel, low, high)
        picture_s = round(log_mel.shape[1] * mel.hop_length / mel.sample_rate, 4)
        timed = [(p.name, round(p.start_s, 3), round(p.end_s, 3)) for p in phones]
        seconds = round(len(wav) / rate, 3)
        # short as JSON: tenths of a hertz, a plain 0 where unvoiced
        curve = [round(hz, 1) or 0 for hz in f0.astype(float).tolist()]
        tracks.append(Track(system, seconds, picture_s, audio, picture, timed, curve))
    return tracks


def _analyse(wav: np.ndarray, sample_rate: int, mel: MelConfig) -> tuple[np.ndarray, np.ndarray]:
    """Returns the log-mel (M, T) and f0 (T,) of a sound, as they are drawn."""
    if sample_rate != mel.sample_rate:
        wav = soxr.resample(wav, sample_rate, mel.sample_rate)  # another (S,)
    wav = np.pad(wav, (0, max(mel.n_fft - len(wav), 0)))  # shorter sounds have a picture, too
    with torch.inference_mode():
        log_mel = _spectrogram(mel)(torch.from_numpy(wav)[None])[0].numpy()  # (M, T)
    return log_mel, extract_f0(wav, mel, log_mel.shape[1])


_spectrogram = functools.lru_cache(maxsize=1)(MelSpectrogram)


def write_flac(path: Path, wav: np.ndarray, sample_rate: int) -> None:
    """Writes mono audio, (S,) clipped to [-1, 1], as FLAC of 16 bits with a seek table (RFC 9639).

    libsndfile writes no seek table, and without one Chromium cannot seek in sounds of a few frames
    ("demuxer seek failed") and falls silent. An entry for the start is enough.
    """
    buffer = io.BytesIO()
    soundfile.write(buffer, to_pcm16(np.clip(wav, -1, 1)), sample_rate, "PCM_16", format="FLAC")
    content = buffer.getvalue()
    block, info = content[_INFO.start], content[_INFO.start + 1 : _INFO.stop]
    first_frame = struct.pack(">QQ2s", 0, 0, info[3:5])  # sample, byte, largest block
    table = bytes([_SEEK_TABLE | block & _LAST]) + len(first_frame).to_bytes(3, "big") + first_frame
    head = content[: _INFO.start] + bytes([block & ~_LAST]) + info
    path.write_bytes(head + table + content[_INFO.stop :])


def write_mel_picture(path: Path, mel: np.ndarray, low: float, high: float) -> None:
    """Writes a log-mel (M, T) as a PNG, lowest band at the bottom, from `low` (black) to `high`."""
    from matplotlib import colormaps
    from PIL import Image

    level = ((mel - low) / (high - low)).clip(0, 1)
    pixels = np.rint(level * (_COLOURS - 1)).astype(np.uint8)[::-1]  # (M, T), highest band first
    colours = np.rint(255 * colormaps["magma"](np.linspace(0, 1, _COLOURS))[:, :3])  # (C, 3)
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    picture.putpalette(colours.astype(np.uint8).tobytes())
    picture.save(path, format="PNG", optimize=True)


def _data_of(
    item: EvaluatedUtterance,
    tracks: Sequence[Track],
    systems: Sequence[System],
    mel: MelConfig,
    url: Callable[[str], str],
) -> dict[str, object]:
    """Returns the JSON of an utterance, which the page reads when it scrolls near the window."""
    by_system = {track.system: track for track in tracks}
    rows = []
    for voice, name in enumerate([RECORDING, *(system.name for system in systems)]):
        if track := by_system.get(name):
            urls = {"audio": url(track.audio), "picture": url(track.picture)}
            rows.append({**track._asdict(), **urls, "voice": voice})
    return {"frame_s": mel.frame_s, "tracks": rows, "heard": tables.transcripts_of(item, systems)}


def _url(folder: Path, link: str, name: str) -> str:
    """Returns the URL of a file in the folder `link`, or with its content if that is empty."""
    if link:
        return f"{link}/{name}"
    content = base64.b64encode((folder / name).read_bytes()).decode("ascii")
    return f"data:{_TYPES[Path(name).suffix]};base64,{content}"


def _render(path: Path, evaluation: Evaluation, data: Iterable[object], *, embedded: bool) -> None:
    """Writes the page, with one utterance of `data` at a time in memory."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    files, strict = FileSystemLoader(_STATIC), StrictUndefined
    environment = Environment(loader=files, undefined=strict, autoescape=True, trim_blocks=True)
    environment.filters["breakable"] = _breakable
    json_style = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    environment.policies["json.dumps_kwargs"] = json_style
    script = "".join((_STATIC / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    stream = environment.get_template("template.html").stream(
        **_variables(evaluation),
        policy=_policy(script, embedded=embedded),
        style=(_STATIC / "style.css").read_text(encoding="utf-8"),
        script=script,
        data=data,
    )
    with path.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(stream)


def _variables(evaluation: Evaluation) -> dict[str, object]:
    systems, evaluated = tables.shown_systems(evaluation), evaluation.systems
    voices, columns = tables.voices_of(systems), tables.columns_of(systems)
    flags = tables.flag_rows(systems)
    rows = tables.score_rows(columns, systems)
    names = [column.name for column in columns]
    directed = (n for n, column in enumerate(columns) if column.better)
    index = {
        "voices": [voice._asdict() for voice in voices],
        "checks": {row.check: row.label for row in flags},
        "columns": [asdict(column) for column in columns],
        "utterances": [
            tables.shown_utterance(item, systems, columns)._asdict() for item in evaluation.items
        ],
    }
    title = ", ".join(system.name for system in evaluated)
    if len(evaluated) == 1 and "/" not in title:
        title = "/".join(evaluated[0].folder.parts[-2:])
    return {
        "title": title,
        "date": f"{datetime.now().astimezone():%Y-%m-%d %H:%M}",
        "systems": systems,
        "evaluated": evaluated,
        "voices": voices,
        "columns": columns,
        "sort": next((names.index(n) for n in _SORT if n in names), next(directed, None)),
        "rows": rows,
        "with_scores": [n for n in range(len(voices)) if any(row.cells[n] for row in rows)],
        "explained": _EXPLAINED,
        "comparisons": evaluation.comparisons,
        "differences": tables.difference_rows(columns, voices, evaluation.comparisons),
        "flags": flags,
        "meanings": tables.meanings_of(columns, flags),
        "mel": evaluation.mel,
        "index": index,
    }


def _breakable(name: str) -> "Markup":
    """Allows line breaks in a name after punctuation."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[_./-])", name))


def _policy(script: str, *, embedded: bool) -> str:
    """Returns the content security policy: this one script, and nothing from other places."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    places = "data:" if embedded else "'self' file:"
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        f"img-src {places}; media-src {places}; base-uri 'none'; form-action 'none'"
    )
