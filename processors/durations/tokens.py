"""Assigns a list of durations to phones: from frames per token to seconds.

Stage 1's sequence is `<sil>`, the phones of the words with the class of each run of punctuation
between them, and the class of the last punctuation. Other projects leave some of these out.

Frame i lasts from i to i + 1 hops after the first sample, whether a project centres its windows on
frames or not, so that the same hop gives the same counts. A recording of `S` samples has `S // hop`
frames (windows inside the audio) or `S // hop + 1` (centred windows).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from processors.alignment.aligner import AlignmentError
from processors.alignment.timed import Grid, Interval, make_grid
from processors.durations import Layout
from processors.records import SpokenText
from processors.text.symbols import APOSTROPHE
from utils.errors import InputError
from utils.files import read_text

WRONG_COUNT = "wrong token count"  # kind of an error
# Tokens of other projects that are not phones
_SIGNS = {*",.!?;:-'\"_|~#", *["", "...", "<space>", "sil", "sp", "end"]}
_SIGNS |= {"eos", "<eos>", "bos", "<bos>"}


class FrameRate(NamedTuple):
    """Hop length and sample rate of frames."""

    hop_length: int  # samples
    sample_rate: int  # Hz

    def __str__(self) -> str:
        return f"{self.hop_length} samples at {self.sample_rate} Hz"

    def limits(self, seconds: float) -> tuple[int, int]:
        """The smallest and largest number of frames of a recording."""
        whole = int(round(seconds * self.sample_rate) // self.hop_length)
        return whole, whole + 1

    def boundaries_s(self, frames: np.ndarray, start: float = 0.0) -> np.ndarray:
        """Start and end of each token in seconds from sample `start` on: (N,) -> (N + 1,)."""
        edges = np.concatenate([[0], np.cumsum(frames)]) * self.hop_length  # samples
        return (start + edges) / self.sample_rate


def correct_sum(
    frames: np.ndarray, seconds: float, rate: FrameRate, tolerance: int, *, trimmed: bool = False
) -> tuple[np.ndarray, int]:
    """Corrects the last tokens (N,) so that all frames sum to the length of the recording.

    Missing frames are added to the last token; surplus ones are taken from the last token, and from
    those before it if it is too short. `trimmed` frames may end long before the recording.

    Returns:
        The frames (N,), and how many were too many, or too few if negative.
    """
    total = int(frames.sum())
    fewest, most = rate.limits(seconds)
    off = max(total - most, 0) + (0 if trimmed else min(total - fewest, 0))
    if abs(off) > tolerance:
        raise AlignmentError(
            f"its frames ({rate}) add up to {total}, the recording has {fewest} or {most}: off by"
            f" {off:+d}; other frames need --hop_size and --sample_rate, trimmed recordings"
            " --phones_file",
            "wrong sum",
        )
    corrected = frames.copy()
    if off <= 0:
        corrected[-1] -= off
        return corrected, off
    ends = np.minimum(np.cumsum(frames), total - off)
    return np.diff(ends, prepend=0), off


class Tokens(NamedTuple):
    """The tokens of one utterance in a table."""

    names: tuple[str, ...]
    start_s: float | None  # of the first one; None: the start of the recording


class Table(NamedTuple):
    """A table of tokens."""

    tokens: dict[str, Tokens]  # by id
    rate: FrameRate | None  # if the table has it


def assign_frames(
    frames: np.ndarray, spoken: SpokenText, layout: Layout, *, end_token: bool
) -> np.ndarray:
    """Frames of each of stage 1's phones, (N,) int64; those without a token last 0 frames.

    Frames of an end token go to the last phone.
    """
    places = _token_places(spoken)
    n_tokens, n_found = len(places[layout]), len(frames)
    if n_found != n_tokens + end_token:
        fitting = [
            f"--tokens {name}{flag}"
            for name, of_layout in places.items()
            for flag, n_more in (("", 0), (" --end_token", 1))
            if n_found == len(of_layout) + n_more
        ]
        hint = " or ".join(fitting) or "list its tokens by --phones_file; no --tokens"
        raise AlignmentError(
            f"it has {n_found} durations, the text {n_tokens + end_token} tokens ({layout}); {hint}"
            " would fit",
            WRONG_COUNT,
        )
    durations = np.zeros(len(spoken.phones), dtype=np.int64)
    durations[places[layout]] = frames[:n_tokens]
    if end_token:
        durations[-1] += frames[-1]
    return durations


def _token_places(spoken: SpokenText) -> dict[Layout, list[int]]:
    """Indices of the phones of stage 1 that have a token, by layout."""
    places = [*range(len(spoken.phones))]
    of_words = [place for word in spoken.words for place in range(word.start, word.end)]
    return {
        "all": places,
        "no_start": places[1:],  # without the silence before the first word
        "no_edges": places[1:-1],  # also without the class of the last punctuation
        "no_pauses": of_words,
    }


def read_table(path: Path) -> Table:
    """Reads tokens: lines of `id|P1 P2 ...`, or `id|P1 P2 ...|start in seconds`.

    A first line `# hop_size 256 sample_rate 22050` gives the length of frames. Braces around the
    tokens are dropped.
    """
    tokens: dict[str, Tokens] = {}
    rate = None
    for n, line in enumerate(read_text(path).split("\n"), 1):
        if line.startswith("#"):
            rate = _rate(line, f"{path}:{n}")
        elif line.strip():
            id, *cells = (cell.strip() for cell in line.split("|"))
            if id in tokens:
                raise InputError(f"{path}:{n}: {id} has a line already; remove one of them")
            tokens[id] = _tokens(cells, f"{path}:{n}")
    return Table(tokens, rate)


def _rate(line: str, place: str) -> FrameRate:
    words = line.lstrip("# ").split()
    try:
        keys = dict(zip(words[::2], map(int, words[1::2]), strict=True))
        return FrameRate(keys["hop_size"], keys["sample_rate"])
    except (ValueError, KeyError):
        raise InputError(
            f"{place}: expected `# hop_size 256 sample_rate 22050`, found {line.strip()[:60]!r}"
        ) from None


def _tokens(cells: Sequence[str], place: str) -> Tokens:
    try:
        names, *start = cells
        if len(start) > 1 or not names.strip("{} "):
            raise ValueError
        return Tokens(tuple(names.strip("{}").split()), float(start[0]) if start else None)
    except ValueError:
        raise InputError(f"{place}: expected id|P1 P2 ... or id|P1 P2 ...|seconds") from None


def grid_of_tokens(
    tokens: Tokens, frames: np.ndarray, rate: FrameRate, *, in_letters: bool = False
) -> Grid:
    """N tokens with the times of their frames, (N,); signs become silence.

    In letters, an apostrophe is none.
    """
    signs = _SIGNS - {APOSTROPHE} if in_letters else _SIGNS
    start = (tokens.start_s or 0.0) * rate.sample_rate
    edges = rate.boundaries_s(frames, start).tolist()  # (N + 1,)
    names = ["" if name.lower() in signs else name for name in tokens.names]
    spans = zip(names, edges[:-1], edges[1:], strict=True)
    return make_grid(None, [], [Interval(*span) for span in spans])
