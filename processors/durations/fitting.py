"""One recording's durations from elsewhere, fitted to its text and its length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import soundfile

from config.schema import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment import AlignmentError
from processors.alignment.timed import Grid, align_grid, check_times
from processors.durations import Layout
from processors.durations.formats import AlignedSpeech, Counts, Entry
from processors.durations.frames import FrameRate, SumError, find_frame_rate, mend
from processors.durations.tokens import (
    Table,
    TokenCountError,
    grid_of_tokens,
    read_table,
    spread,
)
from processors.extraction.features import frame_durations
from processors.records import Alignment, SpokenText, TimedPhone, TimedWord
from processors.text.frontend import TextFrontend
from processors.text.symbols import PAUSES


@dataclass(frozen=True)
class Reading:
    """How durations are understood.

    Attributes:
        tokens: Of frames: which of stage 1's phones have a token.
        end_token: Of frames: one more stands at the end.
        table: Of frames: a file that names the tokens instead.
        rate: Of frames: how long one is; None: it is found.
        tolerance: Frames too many or too few that are put right.
        names: Whose phones are kept: the source's, or those of the text, in order.
    """

    tokens: Layout = "all"
    end_token: bool = False
    table: Path | None = None
    rate: FrameRate | None = None
    tolerance: int = 3
    names: Literal["source", "text"] = "source"


class Fitted(NamedTuple):
    """What was made of an entry."""

    speech: AlignedSpeech
    off: int | None  # frames too many, or too few if negative; None: the source has times


class Fitter:
    """Fits the entries of a source.

    Args:
        config: Stage 1.
        reading: How the entries are understood.
        entries: By id of their utterance.
        utterances: By id.

    Attributes:
        rate: How long a frame is; that of stage 1 where no entry counts frames.

    Raises:
        InputError: If the table cannot be read, or the frame rate is not known and none fits.
    """

    def __init__(
        self,
        config: PreprocessConfig,
        reading: Reading,
        entries: Mapping[str, Entry],
        utterances: Mapping[str, Utterance],
    ) -> None:
        self._config = config
        self._reading = reading
        self._frontends: dict[str, TextFrontend] = {}
        self._table = read_table(reading.table) if reading.table else Table({}, None)
        self.rate = reading.rate or self._table.rate or self._find_rate(entries, utterances)

    def __call__(self, entry: Entry, utterance: Utterance) -> Fitted:
        """Fits one entry.

        Raises:
            AlignmentError: If the entry is broken or does not fit text and recording; the message
                names its file.
            InputError: If the text cannot be spoken.
        """
        spoken = self._spoken(utterance)
        try:
            seconds = seconds_of(utterance)
            found = entry.read()
            off = None
            if isinstance(found, Grid):
                alignment = self._by_times(found, spoken, seconds)
            elif self._reading.table:
                alignment, off = self._by_table(found, spoken, seconds, utterance.id)
            else:
                alignment, off = self._by_layout(found, spoken, seconds)
            return Fitted(self._speech(utterance, alignment, seconds), off)
        except (TokenCountError, SumError) as error:
            error.args = (f"{entry.path}: {error}",)
            raise
        except AlignmentError as error:
            named = str(error).startswith(str(entry.path))
            raise AlignmentError(str(error) if named else f"{entry.path}: {error}") from None

    def _spoken(self, utterance: Utterance) -> SpokenText:
        language = utterance.language
        if language not in self._frontends:
            self._frontends[language] = TextFrontend(self._config.text, language)
        return self._frontends[language](utterance.text)

    def _by_times(self, grid: Grid, spoken: SpokenText, seconds: float) -> Alignment:
        check_times(grid)
        if self._reading.names == "text":
            grid = renamed(grid, spoken)
        return align_grid(grid, spoken, seconds, self._config.edge_silence_s)

    def _by_layout(
        self, counts: Counts, spoken: SpokenText, seconds: float
    ) -> tuple[Alignment, int]:
        """Also how many frames there were too many."""
        reading = self._reading
        frames = spread(counts.frames, spoken, reading.tokens, end_token=reading.end_token)
        frames, off = mend(frames, seconds, self.rate, reading.tolerance)
        boundaries_s = self._cut(self.rate.boundaries_s(frames), seconds)
        return Alignment(spoken.phones, boundaries_s, spoken.words), off

    def _by_table(
        self, counts: Counts, spoken: SpokenText, seconds: float, id: str
    ) -> tuple[Alignment, int]:
        """Also how many frames there were too many."""
        table, tokens = self._reading.table, self._table.tokens.get(id)
        if tokens is None:
            raise AlignmentError(f"{table} does not have it")
        n_found, n_named = len(counts.frames), len(tokens.names)
        if n_found != n_named:
            raise TokenCountError(
                f"it has {n_found} durations, {table} {n_named} tokens", n_found, {}
            )
        left_s = seconds - (tokens.start_s or 0.0)
        trimmed = tokens.start_s is not None
        frames, off = mend(
            counts.frames, left_s, self.rate, self._reading.tolerance, trimmed=trimmed
        )
        grid = grid_of_tokens(tokens, frames, self.rate)
        return self._by_times(grid, spoken, seconds), off

    def _cut(self, boundaries_s: np.ndarray, seconds: float) -> np.ndarray:
        """Boundaries (N + 1,) that end before stage 1 has no more frames."""
        mel = self._config.mel
        most = int(seconds * mel.sample_rate) // mel.hop_length + 1
        return np.minimum(boundaries_s, most * mel.hop_length / mel.sample_rate)

    def _speech(self, utterance: Utterance, alignment: Alignment, seconds: float) -> AlignedSpeech:
        mel = self._config.mel
        frames = frame_durations(alignment.boundaries_s, mel)
        words = words_of(alignment)
        return AlignedSpeech(
            utterance.id,
            utterance.text,
            seconds,
            phones_of(alignment),
            words,
            frames,
            mel.hop_length,
            mel.sample_rate,
        )

    def _find_rate(
        self, entries: Mapping[str, Entry], utterances: Mapping[str, Utterance]
    ) -> FrameRate:
        """From the sums of all entries that can be read, and the lengths of their recordings."""
        own = FrameRate(self._config.hop_size, self._config.sample_rate)
        sums: list[int] = []
        seconds: list[float] = []
        for id, entry in entries.items():
            try:
                found, length = entry.read(), seconds_of(utterances[id])
            except AlignmentError:  # it is rejected when its turn comes
                continue
            if isinstance(found, Grid):
                return own
            sums.append(int(found.frames.sum()))
            seconds.append(length)
        return find_frame_rate(sums, seconds, own, self._reading.tolerance) if sums else own


def seconds_of(utterance: Utterance) -> float:
    """Length of a recording, by its header.

    Raises:
        AlignmentError: If it cannot be read.
    """
    try:
        info = soundfile.info(utterance.audio)
    except (soundfile.LibsndfileError, OSError) as error:
        raise AlignmentError(f"{utterance.audio}: not readable as audio ({error})") from None
    return info.frames / info.samplerate


def renamed(grid: Grid, spoken: SpokenText) -> Grid:
    """A grid whose phones have the names that the text gives them, in order.

    Raises:
        TokenCountError: If it has more or fewer phones than the text.
    """
    names = [name for word in spoken.words for name in spoken.phones[word.start : word.end]]
    found = [phone for phone in grid.phones if phone.label not in PAUSES]
    if len(found) != len(names):
        raise TokenCountError(
            f"it has {len(found)} phones, the text {len(names)}; --names source keeps its own",
            len(found),
            {},
        )
    waiting = iter(names)
    phones = [
        phone if phone.label in PAUSES else phone._replace(label=next(waiting))
        for phone in grid.phones
    ]
    return grid._replace(phones=phones)


def phones_of(alignment: Alignment) -> tuple[TimedPhone, ...]:
    """Phones and pauses with times."""
    edges: Sequence[float] = alignment.boundaries_s.tolist()
    return tuple(map(TimedPhone, alignment.phones, edges[:-1], edges[1:]))


def words_of(alignment: Alignment) -> tuple[TimedWord, ...]:
    """Words with times."""
    edges: Sequence[float] = alignment.boundaries_s.tolist()
    return tuple(TimedWord(w.text, edges[w.start], edges[w.end]) for w in alignment.words)
