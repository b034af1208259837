"""What there is to be scored: the files of a folder, and what is known about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from models.base.result_files import METADATA
from models.synthesizer.copy_synthesis import CopyLine
from models.synthesizer.mel_sources import files_of
from models.synthesizer.results import TextLine
from preprocessors.audio_folder import SUFFIXES
from processors.records import TimedPhone
from utils.errors import InputError
from utils.files import read_jsonl, read_text

SHOWN = 20  # lines of a list in a message


@dataclass(frozen=True)
class Result:
    """A file to be scored.

    Attributes:
        id: Of the utterance.
        file: The sound.
        kind: "text": a text that was spoken; "copy": of a recording, by a vocoder; "file": from
            anywhere.
        dataset: Of a recorded sentence; empty for the user's own.
        text: What was to be said, as given; empty where it is not known here.
        normalized: The same in words.
        speaker: Empty where it is not known here.
        vocoder: What made the sound; empty where it is not known.
        phones: What is spoken and when; none where it is not known.
        source: Of a copy: the folder of stage 1, or the file, that its mel comes from.
    """

    id: str
    file: Path
    kind: Literal["text", "copy", "file"]
    dataset: str = ""
    text: str = ""
    normalized: str = ""
    speaker: str = ""
    vocoder: str = ""
    phones: tuple[TimedPhone, ...] = ()
    source: Path | None = None

    def __post_init__(self) -> None:
        if self.id in ("", "..") or Path(self.id).name != self.id:  # its copy would lie elsewhere
            raise InputError(f"{self.file}: its id is {self.id!r}, which cannot name a file")


def read_results(folder: Path) -> list[Result]:
    """What stage 3 wrote, as `metadata.jsonl` says; or the sound files of any other folder.

    Raises:
        InputError: If there is nothing, or `metadata.jsonl` holds something else.
    """
    path = folder / METADATA
    if not path.is_file():
        return _any_files(folder)
    rows = cast("list[dict[str, Any]]", read_jsonl(path))
    if not rows:
        raise InputError(f"{path} is empty: run stage 3")
    try:
        if "mel_source" in rows[0]:
            return [_of_clip(folder, CopyLine(**row)) for row in rows]
        return [_of_text(folder, TextLine(**row)) for row in rows]
    except (TypeError, KeyError) as error:
        raise InputError(f"{path}: not what stage 3 writes ({error}); run it again") from error


def sounds_in(folder: Path) -> list[Path]:
    """The sound files of a folder, sorted; each is named after its utterance.

    Raises:
        InputError: If there is none.
    """
    return files_of(folder, SUFFIXES)


def _any_files(folder: Path) -> list[Result]:
    if not folder.is_dir() or not any(file.suffix.lower() in SUFFIXES for file in folder.iterdir()):
        raise InputError(
            f"{folder / METADATA} is missing: run stage 3, or correct --infer_output_dir; of a "
            f"folder that stage 3 did not write, files that end in {', '.join(SUFFIXES)} are scored"
        )
    return [Result(file.stem, file, "file") for file in sounds_in(folder)]


def _of_text(folder: Path, line: TextLine) -> Result:
    return Result(
        line.id,
        folder / line.file,
        "text",
        line.dataset,
        line.text,
        line.normalized,
        line.speaker,
        line.vocoder,
        tuple(_timed(phone) for phone in cast("list[dict[str, Any]]", line.phones)),
    )


def _timed(phone: dict[str, Any]) -> TimedPhone:
    start_s = float(phone["start_s"])
    return TimedPhone(str(phone["phone"]), start_s, start_s + float(phone["duration_s"]))


def _of_clip(folder: Path, line: CopyLine) -> Result:
    return Result(
        line.id,
        folder / line.file,
        "copy",
        line.dataset,
        vocoder=line.vocoder,
        source=Path(line.mel_source),
    )


def read_texts(path: Path) -> dict[str, str]:
    """A table of texts by id: lines of `id|text`, or of `id|text|text in words`, which counts.

    Raises:
        InputError: If it cannot be read, a line is another one, or an id stands twice.
    """
    texts: dict[str, str] = {}
    for n, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        id, *cells = (cell.strip() for cell in line.split("|"))
        if not id or len(cells) not in (1, 2):
            raise InputError(f"{path}:{n}: expected id|text, found {line.strip()[:80]!r}")
        if id in texts:
            raise InputError(f"{path}:{n}: {id} stands twice; which text is it?")
        texts[id] = cells[-1]
    return texts


def refuse(faults: Sequence[str], message: str) -> None:
    """Lists what is wrong, one line each.

    Raises:
        InputError: If anything is.
    """
    if not faults:
        return
    more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
    raise InputError(f"{message}:" + "".join(f"\n  {line}" for line in (*faults[:SHOWN], *more)))
