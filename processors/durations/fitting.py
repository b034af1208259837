"""Fits the durations of one recording to its text and its length."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import soundfile

from config.preprocess import PreprocessConfig
from modules.alignment.attention_quality import PathQuality
from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError, naming
from processors.alignment.fit import check_coverage
from processors.alignment.timed import Grid, align_grid, check_text, check_times
from processors.durations import Layout
from processors.durations.pitch import TokenPitch, pitch_of_phones
from processors.durations.sources import SourceEntry
from processors.durations.tokens import (
    WRONG_COUNT,
    FrameRate,
    Table,
    assign_frames,
    correct_sum,
    grid_of_tokens,
    read_table,
)
from processors.durations.writing import AlignedSpeech, aligned_speech
from processors.extraction.tts import frame_durations
from processors.records import Alignment, SpokenText
from processors.text.frontend import Frontends
from processors.text.symbols import PAUSES


@dataclass(frozen=True)
class Interpretation:
    """Options for reading a source; all but `names` apply to sources of frames only."""

    tokens: Layout = "all"  # which of stage 1's phones have a token
    end_token: bool = False  # there is one more token at the end
    table: Path | None = None  # a file that names the tokens instead
    rate: FrameRate | None = None  # length of a frame; None: that of the table or of stage 1
    tolerance: int = 3  # frames too many or too few that are corrected
    pitch: TokenPitch | None = None  # of the same tokens
    # whether phones keep the names of the source, or take those of the text, in order
    names: Literal["source", "text"] = "source"


class Fitter:
    """Fits the entries of a source."""

    def __init__(self, config: PreprocessConfig, interpretation: Interpretation) -> None:
        self._config = config
        self._options = interpretation
        self._frontends = Frontends(config.text)
        self._table = Table({}, None)
        if interpretation.table:
            self._table = read_table(interpretation.table)
        stage_1 = FrameRate(config.hop_length, config.sample_rate)
        self.rate = interpretation.rate or self._table.rate or stage_1

    def __call__(
        self, entry: SourceEntry, utterance: Utterance
    ) -> tuple[AlignedSpeech, int | None]:
        """Fits the entry of an utterance; AlignmentError if it does not fit text and recording.

        Returns:
            The speech, and the frames that were too many, or too few if negative; None for times.
        """
        spoken = self._frontends[utterance.language](utterance.text)
        with naming(entry.path):
            check_text(entry.text, utterance)
            _check_attention(entry.attention, self._config.min_attention)
            wav, sample_rate = _recording(utterance)
            seconds = len(wav) / sample_rate
            durations = entry.read()
            off = None
            if isinstance(durations, Grid):
                alignment = self._by_times(durations, spoken, seconds)
            else:
                if self._options.table:
                    alignment, off = self._by_table(durations.frames, spoken, seconds, utterance.id)
                else:
                    alignment, off = self._by_layout(durations.frames, spoken, seconds)
                alignment = self._with_pitch(alignment, durations.frames, utterance.id)
            check_coverage(alignment, wav, sample_rate)
        mel = self._config.mel
        frames = frame_durations(alignment.boundaries_s, mel)
        return aligned_speech(utterance, alignment, seconds, frames, mel), off

    def _by_times(self, grid: Grid, spoken: SpokenText, seconds: float) -> Alignment:
        check_times(grid)
        if self._options.names == "text":
            grid = renamed(grid, spoken)
        return align_grid(grid, spoken, seconds, self._config.edge_silence_s)

    def _by_layout(
        self, frames: np.ndarray, spoken: SpokenText, seconds: float
    ) -> tuple[Alignment, int]:
        options, mel = self._options, self._config.mel
        frames = assign_frames(frames, spoken, options.tokens, end_token=options.end_token)
        frames, off = correct_sum(frames, seconds, self.rate, options.tolerance)
        most = int(seconds * mel.sample_rate) // mel.hop_length + 1  # frames of stage 1
        end_s = most * mel.hop_length / mel.sample_rate
        boundaries_s = np.minimum(self.rate.boundaries_s(frames), end_s)  # (N + 1,)
        return Alignment(spoken.phones, boundaries_s, spoken.words), off

    def _by_table(
        self, frames: np.ndarray, spoken: SpokenText, seconds: float, id: str
    ) -> tuple[Alignment, int]:
        table, tokens = self._options.table, self._table.tokens.get(id)
        if tokens is None:
            raise AlignmentError(f"{table} does not have it")
        if len(frames) != len(tokens.names):
            counts = f"it has {len(frames)} durations, {table} {len(tokens.names)} tokens"
            raise AlignmentError(counts, WRONG_COUNT)
        left_s, tolerance = seconds - (tokens.start_s or 0.0), self._options.tolerance
        trimmed = tokens.start_s is not None
        frames, off = correct_sum(frames, left_s, self.rate, tolerance, trimmed=trimmed)
        in_letters = self._config.text.in_letters
        grid = grid_of_tokens(tokens, frames, self.rate, in_letters=in_letters)
        return self._by_times(grid, spoken, seconds), off

    def _with_pitch(self, alignment: Alignment, frames: np.ndarray, id: str) -> Alignment:
        """Adds the pitch of tokens that last so many frames, (K,)."""
        if self._options.pitch is None:
            return alignment
        hz = self._options.pitch.read(id, len(frames))  # (K,)
        tokens = self._table.tokens.get(id)
        start_s = (tokens.start_s or 0.0) if tokens else 0.0
        edges_s = self.rate.boundaries_s(frames, start_s * self.rate.sample_rate)
        return replace(alignment, f0_hz=pitch_of_phones(edges_s, hz, alignment.boundaries_s))


def _check_attention(attention: PathQuality | None, least: float) -> None:
    if attention is not None and attention.least < least:
        measured = ", ".join(f"{name} {value:.2f}" for name, value in attention._asdict().items())
        raise AlignmentError(
            f"poor attention ({measured}; preprocess.min_attention is {least:g}); train"
            " the voice longer, or check text and recording",
            "poor attention",
        )


def _recording(utterance: Utterance) -> tuple[np.ndarray, int]:
    """The recording in mono, (S,), and its sample rate."""
    try:
        wav, sample_rate = soundfile.read(utterance.audio, dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, OSError) as error:
        raise AlignmentError(f"{utterance.audio}: not readable as audio ({error})") from None
    return wav.mean(axis=1), sample_rate


def renamed(grid: Grid, spoken: SpokenText) -> Grid:
    """Gives the phones of a grid the names of the text, in order."""
    names = [name for word in spoken.words for name in spoken.phones[word.start : word.end]]
    n_found = sum(phone.label not in PAUSES for phone in grid.phones)
    if n_found != len(names):
        counts = f"it has {n_found} phones, the text {len(names)}; --names source keeps its own"
        raise AlignmentError(counts, WRONG_COUNT)
    waiting = iter(names)
    phones = [
        phone if phone.label in PAUSES else phone._replace(label=next(waiting))
        for phone in grid.phones
    ]
    return grid._replace(phones=phones)
