"""Checks of files, texts, transcripts and folders before hours of scoring."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import soundfile

from models.evaluation.inputs.systems import SystemFile
from processors.scoring.recognition import transcript_of
from processors.scoring.user_models import UserModels
from processors.scoring.utterance_scorer import EvaluatedUtterance
from utils.errors import InputError
from utils.logging import get_logger

SHOWN = 20  # lines of a list in a message


def refuse(faults: Sequence[str], message: str, total: int | None = None) -> None:
    """Raises an error that lists faults, if there are any.

    Args:
        faults: One line each.
        message: What they are.
        total: How many were checked; the message starts with "3 of 20 " then.

    Raises:
        InputError: If there are any.
    """
    if not faults:
        return
    if total is not None:
        message = f"{len(faults)} of {total} {message}"
    more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
    raise InputError(f"{message}:" + "".join(f"\n  {line}" for line in (*faults[:SHOWN], *more)))


def check_sounds(files: Sequence[SystemFile]) -> None:
    """Makes sure that files exist and have the header of a sound.

    Raises:
        InputError: If not; lists them.
    """
    missing = [str(one.file) for one in files if not one.file.is_file()]
    refuse(missing, "files that stage 3 wrote cannot be found; run it again", len(files))
    broken = [f"{one.file}: {fault}" for one in files if (fault := _fault(one.file))]
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
    """Makes sure that systems have the same utterances with the same texts.

    Raises:
        InputError: If not; lists the ids or texts.
    """
    first, *others = systems
    every = sorted({id for files in systems.values() for id in files})
    lines = []
    for name, files in systems.items():
        if lacking := [id for id in every if id not in files]:
            more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
            lines.append(f"{name}: {', '.join(lacking[:SHOWN])}{more}")
    refuse(
        lines,
        "only the same utterances can be compared; synthesise them, or choose some by "
        "--infer_dataset and --infer_testing_set; missing by system",
    )
    for name in others:
        for id, one in systems[name].items():
            text = systems[first][id].text
            if text and one.text and text != one.text:
                lines.append(f"{id}: {first} {text!r}, {name} {one.text!r}")
    refuse(lines, "systems with different texts under the same id cannot be compared")


def check_texts(
    systems: Mapping[str, Mapping[str, SystemFile]], texts: Mapping[str, str] | None
) -> None:
    """Makes sure that the table of texts, if any, holds all files of unknown origin.

    Args:
        systems: Files by system and id.
        texts: By id; None: there is no table.

    Raises:
        InputError: If not; lists the ids.
    """
    if texts is None:
        return
    ids = {one.id for files in systems.values() for one in files.values() if one.kind == "file"}
    lacking = sorted(ids - texts.keys())
    refuse(lacking, "files without a text in the table of --texts", len(ids))


def check_folders(folders: Sequence[Path], report_folder: Path | None) -> None:
    """Makes sure that results can be written, and makes the folder of --report_dir.

    Args:
        folders: Of systems.
        report_folder: That of --report_dir, if given.

    Raises:
        InputError: If a folder is not writable or cannot be made.
    """
    for folder in folders:
        _check_writable(folder)
    if report_folder is None:
        return
    try:
        report_folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"--report_dir {report_folder}: is a file, expected a folder") from None
    except OSError as error:
        raise InputError(
            f"--report_dir {report_folder}: cannot be created ({error.strerror}); name another"
        ) from error
    _check_writable(report_folder)


def _check_writable(folder: Path) -> None:
    """Raises an error if a folder, or where it will be made, is not writable."""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not os.access(existing, os.W_OK):
        raise InputError(f"{folder} is not writable, and scores go there; copy it elsewhere")


def user_models_by_system(
    names: Sequence[str],
    own: Sequence[str],
    items: Sequence[EvaluatedUtterance],
    user_models: UserModels,
) -> Mapping[str, UserModels]:
    """Gives each of several systems its own folder of transcripts.

    Args:
        names: Of systems and references.
        own: Of the systems only.
        items: What is scored.
        user_models: The user's, with the folder of all transcripts.

    Raises:
        InputError: If the folder of a system is missing, or transcripts of utterances with a text
            are; lists them.
    """
    root = user_models.transcripts
    if root is None:
        return {}
    folders = {name: root if [name] == list(own) else root / name for name in names}
    for name in own:
        if not folders[name].is_dir():
            raise InputError(f"--transcripts: {folders[name]} is missing, for the system {name}")
    paths = []
    for item in (one for one in items if one.text):
        spoken = [folder for name, folder in folders.items() if name in item.spoken]
        paths += [transcript_of(folder, item.id, recorded=False) for folder in spoken]
        if item.recorded is not None:
            paths.append(transcript_of(root, item.id, recorded=True))
    missing = [str(path) for path in paths if path.parent.exists() and not path.is_file()]
    refuse(missing, f"--transcripts: {len(missing)} are missing, of utterances with a text")
    return {name: replace(user_models, transcripts=one) for name, one in folders.items()}


def log_formats(system: str, items: Sequence[EvaluatedUtterance], sample_rate: int) -> None:
    """Logs how many files of a system will be resampled or mixed down for comparison.

    Args:
        system: Its name.
        items: What is scored.
        sample_rate: Of recordings, Hz.
    """
    own = [item for item in items if system in item.spoken]
    n_mixed, n_of_rate = 0, Counter[int]()
    for item in own:
        sound = soundfile.info(item.spoken[system].file)
        n_mixed += sound.channels > 1
        n_of_rate[sound.samplerate] += item.recorded is not None
    for rate, n in sorted(n_of_rate.items()):
        if n and rate != sample_rate:
            _log.info(
                "%s: %d of %d have %d Hz, and recordings %d Hz: pairs are compared at the lower "
                "rate",
                *(system, n, len(own), rate, sample_rate),
            )
    if n_mixed:
        _log.info("%s: channels of %d of %d are averaged to mono", system, n_mixed, len(own))


_log = get_logger(__name__)
