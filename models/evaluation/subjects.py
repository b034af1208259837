"""What a run of stage 4 scores: systems, what they are compared with, and their utterances."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from models.base.result_files import COMPARISON
from models.evaluation.copies import copies_of, open_copying_vocoder
from models.evaluation.inputs import Result, read_results, sounds_in
from models.evaluation.items import NATURAL, items_of, with_natural
from models.evaluation.judges import Kind
from models.evaluation.place import Place, names_of
from models.evaluation.selection import Selection, chosen, vocoder_of
from processors.scoring.user_models import UserModels
from processors.scoring.utterance_scorer import EvaluatedUtterance, SpeechFile
from utils.errors import InputError
from utils.files import user_path
from utils.logging import get_logger

COPY = "copy"  # copy-synthesis, as a system


@dataclass(frozen=True)
class Extras:
    """What scores are put beside, and where that goes.

    Attributes:
        natural: A folder of second readings by the speaker, named by the id of what they repeat.
        copies: Whether recordings are copied, where that says something.
        vocoder: What copies them; None: Griffin-Lim, where stage 3 spoke by it.
        resample: Whether it may be one for another mel.
        plugins: Functions of the user's, and transcripts.
        folder: Where page, comparison and copies go; None: with one system beside its files, else
            `comparison` in the first one's.
    """

    natural: Path | None = None
    copies: bool = True
    vocoder: str | Path | None = None
    resample: bool = False
    plugins: UserModels = field(default_factory=UserModels)
    folder: Path | None = None


class Subjects(NamedTuple):
    """What is scored."""

    folders: dict[str, Path]  # of systems, and then of references
    vocoders: dict[str, str]  # of systems
    items: list[EvaluatedUtterance]  # ordered by id, those that only a reference has spoken last
    out: Path  # where what is about all systems goes

    def kinds(self) -> dict[str, Kind]:
        """What there is of each system and reference."""
        kinds = {}
        for name in self.folders:
            own = [item for item in self.items if name in item.spoken]
            kinds[name] = Kind(
                copies=all(item.spoken[name].is_copy for item in own),
                recorded=all(item.recorded is not None for item in own),
                is_reference=name not in self.vocoders,
                texts=any(item.text for item in own),
            )
        return kinds


def gather(place: Place, selection: Selection, extras: Extras) -> Subjects:
    """Finds the files of all systems, their recordings, and what else they are compared with.

    Copies of the recordings are made where systems spoke texts, and it is known by which vocoder.

    Args:
        place: Where they are.
        selection: Which of them.
        extras: What they are put beside.

    Raises:
        InputError: If a file or a recording is missing, systems have not spoken the same, or a
            folder cannot be written to.
    """
    folders = dict(zip(names_of(place.folders, (COPY, NATURAL)), place.folders, strict=True))
    several = place.folders[0] / COMPARISON if len(folders) > 1 else place.folders[0]
    out = extras.folder or several
    processed = user_path(place.references.preprocess.processed_dir)
    spoken = {
        name: chosen(read_results(folder), selection, processed) for name, folder in folders.items()
    }
    vocoders = {name: vocoder_of(folders[name], results) for name, results in spoken.items()}
    for folder in place.folders:
        _check_writable(folder)
    if extras.folder is not None:
        _make_report_folder(extras.folder)
    items = items_of(spoken, place.references)
    copied = _with_copies(items, set(vocoders.values()), place, extras, out / COPY)
    if copied is not items:
        folders[COPY] = out / COPY
    if extras.natural is None:
        return Subjects(folders, vocoders, copied, out)
    folders[NATURAL] = extras.natural
    dataset = selection.dataset or ""
    readings = [Result(file.stem, file, "file", dataset) for file in sounds_in(extras.natural)]
    named = {result.dataset for results in spoken.values() for result in results} - {""}
    datasets = tuple(sorted({*place.references.datasets, *named}))
    wider = replace(place.references, datasets=datasets)
    return Subjects(folders, vocoders, with_natural(copied, readings, wider), out)


def _check_writable(folder: Path) -> None:
    """Hours of work would be lost at their end."""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not os.access(existing, os.W_OK):
        raise InputError(
            f"{folder} cannot be written to, and that is where the scores go; copy it elsewhere"
        )


def _make_report_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"--report_dir {folder}: that is a file; name a folder") from None
    except OSError as error:
        raise InputError(
            f"--report_dir {folder}: no such folder can be made ({error.strerror}); name another"
        ) from error
    _check_writable(folder)


def _with_copies(
    items: list[EvaluatedUtterance], vocoders: set[str], place: Place, extras: Extras, folder: Path
) -> list[EvaluatedUtterance]:
    """Adds copy-synthesis by the vocoder of the systems, where that says something."""
    if not extras.copies:
        return items
    copies = any(spoken.is_copy for item in items for spoken in item.spoken.values())
    if copies or items[0].recorded is None:
        if extras.vocoder is not None:
            reason = "these are copies already" if copies else "there are no recordings"
            _log.info("without copy-synthesis: %s", reason)
        return items
    if extras.vocoder is None and (len(vocoders) > 1 or "" in vocoders):
        _log.info("without copy-synthesis: say by --vocoder_dir which vocoder it should cost")
        return items
    opened = open_copying_vocoder(
        "".join(vocoders), extras.vocoder, place.references.preprocess.mel, resample=extras.resample
    )
    if opened is None:
        return items
    files = copies_of(items, opened, place.inference, folder)
    return [
        replace(item, spoken={**item.spoken, COPY: SpeechFile(files[item.id], is_copy=True)})
        for item in items
    ]


def plugins_of(
    names: Sequence[str], own: Sequence[str], plugins: UserModels
) -> Mapping[str, UserModels]:
    """Transcripts are of the files of one system: of several, each has a folder of its own.

    Args:
        names: Of systems and references.
        own: Of the systems alone.
        plugins: What the user brings.

    Raises:
        InputError: If the folder of a system is missing.
    """
    folder = plugins.transcripts
    if folder is None:
        return {}
    places = {name: folder if [name] == list(own) else folder / name for name in names}
    for name in own:
        if not places[name].is_dir():
            raise InputError(f"--transcripts: {places[name]} is missing, of what {name} spoke")
    return {name: replace(plugins, transcripts=place) for name, place in places.items()}


_log = get_logger(__name__)
