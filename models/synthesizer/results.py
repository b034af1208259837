"""What stage 3 wrote into a folder: sound files, and `metadata.jsonl` with a line for each."""

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar, cast

from models.base.result_files import COMPARISON, METADATA, PAGE, SCORES, UNFINISHED, UTTERANCES
from models.synthesizer.speech import Speech
from utils.errors import InputError
from utils.files import read_jsonl, write_jsonl

_NUMBERED = re.compile(r"text-(\d+)")


@dataclass(frozen=True)
class Settings:
    """How texts are spoken."""

    speaker: str | None = None  # None: the model's only one; in batch mode, as recorded
    pitch_control: float = 1.0
    energy_control: float = 1.0
    duration_control: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class TextLine:
    """One line of `metadata.jsonl`. Times are in seconds from the start of the file."""

    id: str
    file: str  # name of the sound file, beside metadata.jsonl
    text: str  # as given
    normalized: str
    speaker: str
    dataset: str  # of a recorded sentence; empty for a text of the user's
    pitch_control: float
    energy_control: float
    duration_control: float
    seed: int
    vocoder: str
    seconds: float
    real_time_factor: float  # seconds of work per second of speech
    words: list[dict[str, object]]  # word, start_s, end_s
    phones: list[dict[str, object]]  # phone, start_s, duration_s
    out_of_vocabulary: list[str]
    hop_length: int = 0  # samples of a frame, of which durations are multiples; 0: not known
    sample_rate: int = 0  # Hz


def line_of(
    id: str, speech: Speech, settings: Settings, *, dataset: str, vocoder: str, work_s: float
) -> TextLine:
    """The line about one spoken text; `work_s` is how long that took."""
    return TextLine(
        id=id,
        file=f"{id}.wav",
        text=speech.text,
        normalized=speech.normalized,
        speaker=speech.speaker,
        dataset=dataset,
        pitch_control=settings.pitch_control,
        energy_control=settings.energy_control,
        duration_control=settings.duration_control,
        seed=settings.seed,
        vocoder=vocoder,
        seconds=round(speech.seconds, 4),
        real_time_factor=round(work_s / speech.seconds, 4),
        words=[
            {"word": word.text, "start_s": round(word.start_s, 4), "end_s": round(word.end_s, 4)}
            for word in speech.words
        ],
        phones=[
            {
                "phone": phone.name,
                "start_s": round(phone.start_s, 4),
                "duration_s": round(phone.end_s - phone.start_s, 4),
            }
            for phone in speech.phones
        ],
        out_of_vocabulary=list(speech.out_of_vocabulary),
        hop_length=round(speech.frame_s * speech.sample_rate),
        sample_rate=speech.sample_rate,
    )


class ResultLine(Protocol):
    """What a line of any `metadata.jsonl` says."""

    @property
    def id(self) -> str:
        """Unique in the folder."""

    @property
    def file(self) -> str:
        """Name of the sound file."""

    @property
    def dataset(self) -> str:
        """Of a recorded sentence; empty for the user's own."""


L = TypeVar("L", bound=ResultLine)


class ResultFolder(Generic[L]):
    """A folder of sound files. Runs into the same folder add to it.

    Args:
        folder: Where the files are; need not exist.
        entry: What a line of its `metadata.jsonl` holds.

    Raises:
        InputError: If its `metadata.jsonl` holds something else.
    """

    def __init__(self, folder: Path, entry: type[L]) -> None:
        self.folder = folder
        self._lines = {line.id: line for line in read_lines(folder, entry)}

    def check_dataset(self, dataset: str, ids: Iterable[str]) -> None:
        """Makes sure that no file of another dataset would be overwritten.

        Raises:
            InputError: If an id is here already as a sentence of another dataset.
        """
        for id in ids:
            line = self._lines.get(id)
            if line is not None and line.dataset != dataset:
                raise InputError(
                    f"{self.folder / line.file} is of the dataset {line.dataset!r}; the {id} of "
                    f"{dataset!r} would overwrite it: choose another --infer_output_dir"
                )

    def forget_scores(self) -> None:
        """Removes what stage 4 found out about files that are about to be made anew."""
        for name in (SCORES, UTTERANCES, PAGE):
            (self.folder / name).unlink(missing_ok=True)
        for name in (f"{COMPARISON}.json", PAGE):
            (self.folder / COMPARISON / name).unlink(missing_ok=True)
        for folder in (self.folder, self.folder / COMPARISON):
            shutil.rmtree(folder / UNFINISHED, ignore_errors=True)

    def add(self, line: L) -> None:
        """Takes in what is known about a file that was written."""
        self._lines[line.id] = line

    def save(self) -> None:
        """Writes `metadata.jsonl`, ordered by id."""
        ordered = sorted(self._lines.values(), key=lambda line: line.id)
        write_jsonl(self.folder / METADATA, (vars(line) for line in ordered))


class Results(ResultFolder[TextLine]):
    """A folder of spoken texts.

    Args:
        folder: Where the files are; need not exist.

    Raises:
        InputError: If its `metadata.jsonl` is not what stage 3 writes.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, TextLine)
        self._taken: set[str] = set()

    def id_for(self, text: str, speaker: str, settings: Settings) -> str:
        """The id under which a text of the user's is spoken: `text-0001` and so on.

        A text that is here already, by the same speaker with the same controls and seed, keeps its
        id, and so its file is made anew. Any other text gets a number that was never used here: no
        run overwrites another text, and no file is named after a text.
        """
        wanted = (text, speaker, *_controls(settings))
        for id, line in self._lines.items():
            if id not in self._taken and (line.text, line.speaker, *_controls(line)) == wanted:
                break
        else:
            id = f"text-{self._highest_number() + 1:04d}"
        self._taken.add(id)
        return id

    def _highest_number(self) -> int:
        names = {path.stem for path in self.folder.glob("text-*")} | self._lines.keys()
        matches = (_NUMBERED.fullmatch(name) for name in names | self._taken)
        return max((int(match[1]) for match in matches if match), default=0)


def _controls(source: Settings | TextLine) -> tuple[float, ...]:
    return (
        source.pitch_control,
        source.energy_control,
        source.duration_control,
        source.seed,
    )


def read_lines(folder: Path, entry: type[L]) -> list[L]:
    """The lines of a folder's `metadata.jsonl` whose sound files are still there.

    Args:
        folder: May not exist.
        entry: What a line holds.

    Raises:
        InputError: If the file holds something else.
    """
    path = folder / METADATA
    if not path.exists():
        return []
    try:
        rows = cast("list[dict[str, object]]", read_jsonl(path))
        lines = [entry(**row) for row in rows]  # checked by name only
    except TypeError as error:
        raise InputError(
            f"{path} is not a list of what this stage makes ({error}); move it away, or choose "
            "another --infer_output_dir"
        ) from error
    return [line for line in lines if (folder / line.file).exists()]
