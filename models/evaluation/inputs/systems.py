"""Systems: folders of synthesised speech, their files and names, and checks before the work."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import soundfile

from models.base.results import METADATA, SINGLE
from models.synthesizer.runs import results
from models.synthesizer.runs.copy_synthesis import files_of
from models.synthesizer.runs.results import CopyLine, TestingSet, TextLine, parse_line
from preprocessors.audio_folder import SUFFIXES
from processors.audio.files import check_length
from processors.records import TimedPhone
from utils.errors import SHOWN, InputError, UtteranceError, listed, refuse
from utils.files import read_text

_RESULT = "result"  # folder in an experiment into which stage 3 writes


@dataclass(frozen=True)
class SystemFile:
    """A file to be scored. Strings are empty where they are not known."""

    id: str  # of the utterance
    file: Path
    kind: Literal["text", "copy", "file"]  # synthesised, resynthesised, or of unknown origin
    dataset: str = ""  # of a recorded sentence
    text: str = ""  # as given to stage 3
    normalised: str = ""  # the same in words
    speaker: str = ""
    vocoder: str = ""
    phones: tuple[TimedPhone, ...] = ()
    source: Path | None = None  # of a copy: the folder of stage 1, or the file, of its mel

    def __post_init__(self) -> None:
        if self.id in ("", "..") or Path(self.id).name != self.id:  # would leave the folder
            raise InputError(f"{self.file}: its id is {self.id!r}, which cannot name a file")


def read_system_files(folder: Path) -> list[SystemFile]:
    """Lists the files in `metadata.jsonl` of stage 3; without it, all sound files of the folder."""
    path = folder / METADATA
    if not path.is_file():
        if folder.is_dir() and any(file.suffix.lower() in SUFFIXES for file in folder.iterdir()):
            return sound_files(folder)
        raise InputError(
            f"{path} is missing: run stage 3, or correct --infer_output_dir; of a folder that "
            f"stage 3 did not write, files that end in {', '.join(SUFFIXES)} are scored"
        )
    try:
        files = [_system_file(folder, row) for row in results.read_rows(folder)]
    except TypeError as error:
        raise InputError(f"{path}: not what stage 3 writes ({error}); run it again") from error
    except InputError as error:
        raise InputError(f"{error}: run stage 3 again") from error
    if not files:
        raise InputError(f"{path} is empty: run stage 3")
    return files


def sound_files(folder: Path, dataset: str = "") -> list[SystemFile]:
    """Lists the sound files of a folder, each named by the id of its utterance."""
    return [SystemFile(file.stem, file, "file", dataset) for file in files_of(folder, SUFFIXES)]


def _system_file(folder: Path, row: dict[str, Any]) -> SystemFile:
    """Reads a line of `metadata.jsonl`, about a copy or a synthesised text."""
    if "mel_source" in row:
        copy = parse_line(row, CopyLine)
        file, source = folder / copy.file, Path(copy.mel_source)
        return SystemFile(copy.id, file, "copy", copy.dataset, vocoder=copy.vocoder, source=source)
    line = parse_line(row, TextLine)
    spoken = line.text, line.normalized, line.speaker, line.vocoder, line.phones
    return SystemFile(line.id, folder / line.file, "text", line.dataset, *spoken)


def select_files(
    files: Sequence[SystemFile],
    dataset: str | None,
    testing_set: TestingSet | None,
    processed: Path,
) -> Sequence[SystemFile]:
    """Selects the files of a dataset or split; files of unknown origin count as part of it."""
    if dataset is None:
        return files
    # copies of the user's own mels name no dataset
    unknown = {"file"} if any(file.dataset for file in files) else {"file", "copy"}
    named = [replace(file, dataset=dataset) if file.kind in unknown else file for file in files]
    of_dataset = {file.id: file for file in named if file.dataset == dataset}
    if not of_dataset:
        others = ", ".join(sorted({file.dataset for file in files if file.dataset})) or "none"
        fault = f"stage 3 synthesised nothing of the dataset {dataset!r} (synthesised: {others})"
        raise InputError(f"{fault}; run it, or correct --infer_dataset")
    if testing_set is None:
        return list(of_dataset.values())
    split = results.utterances_of(processed, dataset, testing_set)
    if missing := [utterance.id for utterance in split if utterance.id not in of_dataset]:
        fault = f"{len(missing)} utterances of the split {testing_set} were not synthesised"
        raise InputError(f"{fault} ({listed(missing)}): run stage 3")
    return [of_dataset[utterance.id] for utterance in split]


def vocoder_of(folder: Path, files: Sequence[SystemFile]) -> str:
    """Returns the name of the vocoder of all files; empty if unknown."""
    vocoder, *others = sorted({file.vocoder for file in files})
    if others:
        raise InputError(
            f"{folder} holds files of several vocoders: {', '.join([vocoder, *others])}; choose "
            "some by --infer_dataset and --infer_testing_set (mode batch), or run stage 3 with"
            " --overwrite"
        )
    return vocoder


def read_texts(path: Path) -> dict[str, str]:
    """Reads texts by id from lines of `id|text` or `id|text|normalised`; the last field counts."""
    texts: dict[str, str] = {}
    for n, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        id, *cells = (cell.strip() for cell in line.split("|"))
        if not id or len(cells) not in (1, 2):
            raise InputError(f"{path}:{n}: expected id|text, found {line.strip()[:80]!r}")
        if id in texts:
            raise InputError(f"{path}:{n}: {id} occurs twice; keep one of its texts")
        texts[id] = cells[-1]
    return texts


def system_names(folders: Sequence[Path], taken: Sequence[str] = ()) -> list[str]:
    """Names systems by the ends of their paths, as short as they differ, in their order.

    `result` and `single`, which every experiment has, are left out at the end where possible.
    """
    paths = [folder.resolve() for folder in folders]
    for n, path in enumerate(paths):
        if path in paths[:n]:
            raise InputError(f"--infer_output_dir names {folders[n]} twice")
    experiments = [
        next(folder for folder in (path, *path.parents) if folder.name not in (_RESULT, SINGLE))
        for path in paths
    ]
    if len(set(experiments)) == len(paths):
        paths = experiments
    for length in range(1, max(len(path.parts) for path in paths)):
        names = ["/".join(path.parts[-length:]) for path in paths]
        if len({*names, *taken}) == len(names) + len(taken):
            return names
    return [str(path) for path in paths]


def fault_of(file: Path) -> str:
    """Returns what is wrong with a sound file, by its header; empty if nothing is."""
    if not file.is_file():
        return "it is missing"
    try:
        check_length(file)
        return "" if soundfile.info(file).frames else "it has no samples"
    except UtteranceError as error:
        return str(error)
    except OSError as error:
        return str(error.strerror)
    except soundfile.LibsndfileError as error:
        return str(error.error_string)
    except UnicodeEncodeError:
        return "its name is not UTF-8, so that libsndfile cannot open it; rename it"


def check_same_utterances(systems: Mapping[str, Mapping[str, SystemFile]]) -> None:
    """Refuses systems with different utterances, or different texts; lists them."""
    ids = sorted({id for files in systems.values() for id in files})
    faults = []
    for name, files in systems.items():
        if missing := [id for id in ids if id not in files]:
            faults.append(f"{name}: {listed(missing, SHOWN)}")
    remedy = "synthesise them, or choose some by --infer_dataset and --infer_testing_set"
    refuse(faults, f"only the same utterances can be compared; {remedy}; missing by system")
    for id in ids:
        texts = dict.fromkeys(files[id].text for files in systems.values() if files[id].text)
        if len(texts) > 1:
            faults.append(f"{id}: {' and '.join(map(repr, texts))}")
    refuse(faults, "systems with different texts under the same id cannot be compared")


def make_folders(folders: Sequence[Path]) -> None:
    """Makes the folders of results where they are missing, and refuses those not writable."""
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fault = f"{folder} cannot be made ({error.strerror}), and scores go there"
            raise InputError(f"{fault}; name another") from error
        if not os.access(folder, os.W_OK):
            raise InputError(f"{folder} is not writable, and scores go there; copy it elsewhere")
