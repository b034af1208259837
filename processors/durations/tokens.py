"""Assigns a list of durations to phones.

Stage 1's sequence is `<sil>`, the phones of the words with the class of each run of punctuation
between them, and the class of the last punctuation. Other projects leave some of these out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from processors.alignment import AlignmentError
from processors.alignment.timed import Grid, Interval, make_grid
from processors.durations import LAYOUTS, Layout
from processors.durations.frames import FrameRate
from processors.records import SpokenText
from processors.text.symbols import APOSTROPHE
from utils.errors import InputError
from utils.files import read_text

# Tokens of other projects that are not phones
_SIGNS = {*",.!?;:-'\"_|~#", *["", "...", "<space>", "sil", "sp", "end"]}
_SIGNS |= {"eos", "<eos>", "bos", "<bos>"}


class TokenCountError(AlignmentError):
    """A number of durations that differs from the number of tokens of the text.

    Args:
        message: What was found.
        found: Number of durations.
        counts: Number of tokens in every layout.
    """

    def __init__(self, message: str, found: int, counts: Mapping[str, int]) -> None:
        super().__init__(message)
        self.found = found
        self.counts = counts


class Tokens(NamedTuple):
    """The tokens of one utterance in a table."""

    names: tuple[str, ...]
    start_s: float | None  # of the first one; None: the start of the recording


class Table(NamedTuple):
    """A table of tokens."""

    tokens: dict[str, Tokens]  # by id
    rate: FrameRate | None  # if the table has it


def token_places(spoken: SpokenText, layout: Layout) -> list[int]:
    """Indices of the phones of stage 1 that have a token in a layout.

    Args:
        spoken: The text.
        layout: `all`: each phone; `no_start`: all but the silence before the first word;
            `no_edges`: nor the class of the last punctuation; `no_pauses`: only phones of words.
    """
    places = [*range(len(spoken.phones))]
    if layout == "no_start":
        return places[1:]
    if layout == "no_edges":
        return places[1:-1]
    if layout == "no_pauses":
        return [place for word in spoken.words for place in range(word.start, word.end)]
    return places


def assign_frames(
    frames: np.ndarray, spoken: SpokenText, layout: Layout, *, end_token: bool
) -> np.ndarray:
    """Frames of each of stage 1's phones; those without a token last 0 frames.

    Args:
        frames: Of the source's tokens.
        spoken: The text.
        layout: Which phones have a token.
        end_token: There is one more token at the end; its frames go to the last phone.

    Returns:
        (N,) int64.

    Raises:
        TokenCountError: If the number of tokens differs.
    """
    places = token_places(spoken, layout)
    if len(frames) != len(places) + end_token:
        counts: dict[str, int] = {name: len(token_places(spoken, name)) for name in LAYOUTS}
        end = " and an end token" if end_token else ""
        raise TokenCountError(
            f"it has {len(frames)} durations, the text {len(places)} tokens ({layout}){end}",
            len(frames),
            counts,
        )
    durations = np.zeros(len(spoken.phones), dtype=np.int64)
    durations[places] = frames[: len(places)]
    if end_token:
        durations[-1] += frames[-1]
    return durations


def suggest(faults: Iterable[TokenCountError]) -> str:
    """The flags that fit wrong numbers of durations, for a message; empty if there are none.

    A layout must fit nine of ten or more, since several layouts fit a few by chance.
    """
    fitting: Counter[str] = Counter()
    n_faults = 0
    for fault in faults:
        n_faults += 1
        for layout, n in fault.counts.items():
            if fault.found == n:
                fitting[f"--tokens {layout}"] += 1
            elif fault.found == n + 1:
                fitting[f"--tokens {layout} --end_token"] += 1
    if n_faults == 0:
        return ""
    for flags, n in fitting.most_common(1):
        if 10 * n >= 9 * n_faults:
            return f"{flags} would fit {n} of these {n_faults}"
    return "no --tokens would fit them; list the tokens of each utterance by --phones_file"


def read_table(path: Path) -> Table:
    """Reads tokens: lines of `id|P1 P2 ...`, or `id|P1 P2 ...|start in seconds`.

    A first line `# hop_size 256 sample_rate 22050` gives the length of frames. Braces around the
    tokens are dropped.

    Raises:
        InputError: If a line has another form; names file and line.
    """
    tokens: dict[str, Tokens] = {}
    rate = None
    for n, line in enumerate(read_text(path).split("\n"), 1):
        if line.startswith("#"):
            rate = _rate(line, f"{path}:{n}")
        elif line.strip():
            id, *cells = (cell.strip() for cell in line.split("|"))
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
    """The tokens with times; signs become silence.

    Args:
        tokens: N of them.
        frames: (N,).
        rate: Of the frames.
        in_letters: An apostrophe is a letter.
    """
    signs = _SIGNS - {APOSTROPHE} if in_letters else _SIGNS
    start = (tokens.start_s or 0.0) * rate.sample_rate
    edges = rate.boundaries_s(frames, start).tolist()  # (N + 1,)
    names = ["" if name.lower() in signs else name for name in tokens.names]
    spans = zip(names, edges[:-1], edges[1:], strict=True)
    return make_grid(None, [], [Interval(*span) for span in spans])
