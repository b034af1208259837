"""Checks of files, texts and folders before hours of scoring."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import soundfile

from models.evaluation.inputs.systems import SystemFile
from utils.errors import InputError, listed

SHOWN = 20  # lines of a list in a message


def refuse(faults: Sequence[str], message: str, total: int | None = None) -> None:
    """Raises an InputError that lists faults, if there are any.

    Args:
        faults: One line each.
        message: What they are.
        total: How many were checked; the message starts with "3 of 20 " then.
    """
    if not faults:
        return
    if total is not None:
        message = f"{len(faults)} of {total} {message}"
    more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
    raise InputError(f"{message}:" + "".join(f"\n  {line}" for line in (*faults[:SHOWN], *more)))


def check_sounds(files: Sequence[SystemFile]) -> None:
    """Refuses files that do not exist or have no header of a sound; lists them."""
    missing = [str(sound.file) for sound in files if not sound.file.is_file()]
    refuse(missing, "files that stage 3 wrote cannot be found; run it again", len(files))
    broken = [f"{sound.file}: {fault}" for sound in files if (fault := _fault(sound.file))]
    refuse(broken, "files cannot be read as audio; make them again", len(files))


def _fault(file: Path) -> str:
    """What is wrong with a sound file, by its header; empty if nothing is."""
    try:
        return "" if soundfile.info(file).frames else "it has no samples"
    except soundfile.LibsndfileError as error:
        return str(error.error_string)
    except UnicodeEncodeError:
        return "its name is not UTF-8, so that libsndfile cannot open it; rename it"


def check_same_utterances(systems: Mapping[str, Mapping[str, SystemFile]]) -> None:
    """Refuses systems with different utterances, or different texts; lists them."""
    first, *others = systems
    every = sorted({id for files in systems.values() for id in files})
    lines = []
    for name, files in systems.items():
        if lacking := [id for id in every if id not in files]:
            lines.append(f"{name}: {listed(lacking, SHOWN)}")
    refuse(
        lines,
        "only the same utterances can be compared; synthesise them, or choose some by "
        "--infer_dataset and --infer_testing_set; missing by system",
    )
    for name in others:
        for id, file in systems[name].items():
            text = systems[first][id].text
            if text and file.text and text != file.text:
                lines.append(f"{id}: {first} {text!r}, {name} {file.text!r}")
    refuse(lines, "systems with different texts under the same id cannot be compared")


def check_texts(
    systems: Mapping[str, Mapping[str, SystemFile]], texts: Mapping[str, str] | None
) -> None:
    """Refuses a table of texts that lacks files of unknown origin; lists their ids."""
    if texts is None:
        return
    sounds = [file for files in systems.values() for file in files.values()]
    ids = {file.id for file in sounds if file.kind == "file"}
    lacking = sorted(ids - texts.keys())
    refuse(lacking, "files without a text in the table of --texts", len(ids))


def check_folders(folders: Sequence[Path], report_folder: Path | None) -> None:
    """Makes the folder of --report_dir, and refuses folders that are not writable."""
    if report_folder is not None:
        try:
            report_folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            what = f"cannot be created ({error.strerror}); name another"
            if report_folder.is_file():
                what = "is a file, expected a folder"
            raise InputError(f"--report_dir {report_folder}: {what}") from error
        folders = (*folders, report_folder)
    for folder in folders:
        parents = (folder, *folder.absolute().parents)
        if not os.access(next(parent for parent in parents if parent.exists()), os.W_OK):
            raise InputError(f"{folder} is not writable, and scores go there; copy it elsewhere")
