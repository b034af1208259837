"""Hears the words of a recording: pocketsphinx with a language model of the text, or a function.

The language model has the trigrams of the text, interpolated with bigrams and single words
(absolute discounting; Ney, Essen and Kneser 1994, "On structuring probabilistic dependences").
No word of the text is unknown: the text front end pronounces all.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import log10
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.programs.corpus.texts import SourceText
from processors.alignment.pocketsphinx import LEAD_S
from processors.audio.speech_level import FRAME_S, frame_levels, speech_frames
from processors.metrics.recognition.labelled_speech import words_of
from processors.metrics.recognition.user_models import UserFunction, UserFunctionError
from utils.files import read_text, write_text

RATE = 16000  # Hz, of pocketsphinx's acoustic model and of the aligner
LONGEST_PIECE_S = 15.0
_BLOCK_S = 300.0
_PAUSE_FRAMES = 20
_SHORTEST_FRAMES = 10  # of a piece: clicks are shorter
_MARGIN_S = 0.15  # of silence around a piece
_DISCOUNT = 0.7
# cmn: each piece by itself. Of LJ Speech, 450 of 495 words are right with these weights of the
# language model and of pauses, 436 with the defaults; the second pass, fwdflat, adds a third to the
# time, and bestpath is not worth its time.
_OPTIONS = {"cmn": "batch", "lw": 9.5, "silprob": 0.1, "bestpath": False}
_MODEL, _DICTIONARY = "text.arpa", "text.dict"


class Piece(NamedTuple):
    """A stretch of sound between pauses, in seconds."""

    start_s: float
    end_s: float


class HeardWord(NamedTuple):
    """A word as it is recognised."""

    name: str
    start_s: float
    end_s: float


def find_pieces(pcm: np.ndarray) -> list[Piece]:
    """Finds sound between pauses of 0.2 s by its level over 50 ms, in 16-bit samples, (S,).

    Levels are relative to speech and noise of each five minutes. Longer pieces than
    `LONGEST_PIECE_S` are cut where they are softest.
    """
    step = round(_BLOCK_S * RATE)
    blocks = (pcm[n : n + step].astype(np.float32) / 32768 for n in range(0, len(pcm), step))
    is_loud = np.concatenate([speech_frames(block, RATE)[0] for block in blocks])
    frames = np.flatnonzero(is_loud)
    if not len(frames):
        return []
    gaps = np.flatnonzero(np.diff(frames) > _PAUSE_FRAMES)
    starts, ends = np.r_[frames[0], frames[gaps + 1]], np.r_[frames[gaps], frames[-1]] + 1
    pieces: list[Piece] = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end - start >= _SHORTEST_FRAMES:
            span = slice(round(start * FRAME_S * RATE), round(end * FRAME_S * RATE))
            pieces += _cut(frame_levels(pcm[span], RATE), start)
    return pieces


def _cut(levels: np.ndarray, start: int) -> list[Piece]:
    """Halves a long piece at the softest frame of its middle half."""
    if len(levels) * FRAME_S <= LONGEST_PIECE_S:
        return [Piece(start * FRAME_S, (start + len(levels)) * FRAME_S)]
    quarter = len(levels) // 4
    middle = quarter + int(np.argmin(levels[quarter:-quarter]))
    return _cut(levels[:middle], start) + _cut(levels[middle:], start + middle)


@dataclass(frozen=True)
class Recogniser:
    """Recognises the pieces of a recording; may be sent to other processes."""

    folder: Path  # of the language model, as `write_language_model` wrote it
    language: str
    function: UserFunction | None  # of a wav, its rate and the language; None for pocketsphinx

    def words(self, path: str, pieces: Sequence[Piece]) -> list[HeardWord]:
        """Returns the words of pieces of 16-bit samples in a file, `path#number`."""
        pcm = _load(path)
        return [word for piece in pieces for word in self._words(pcm, piece)]

    def texts(self, path: str, pieces: Sequence[Piece]) -> list[str]:
        """Returns what the user's function recognises in pieces of such a file."""
        pcm = _load(path)
        return [self._text(pcm, piece) for piece in pieces]

    def _text(self, pcm: np.ndarray, piece: Piece) -> str:
        wav = pcm[_samples(pcm, piece)].astype(np.float32) / 32768
        text = self.function and self.function(wav, RATE, self.language)
        if not isinstance(text, str):
            fault = f"{self.function}: returned {type(text).__name__}"
            raise UserFunctionError(f"{fault}; a recogniser returns the text as str")
        return " ".join(text.split())

    def _words(self, pcm: np.ndarray, piece: Piece) -> list[HeardWord]:
        if self.function is not None:  # which tells no times: words are spread evenly
            names = words_of(self._text(pcm, piece), self.language).split()
            edges = np.linspace(piece.start_s, piece.end_s, len(names) + 1).tolist()
            times = zip(names, pairwise(edges), strict=True)
            return [HeardWord(name, *span) for name, span in times]
        span, decoder = _samples(pcm, piece), _decoder(self.folder)
        decoder.reinit_feat()
        decoder.start_utt()
        decoder.process_raw(pcm[span].tobytes(), full_utt=True)
        decoder.end_utt()
        start_s = span.start / RATE + LEAD_S
        parts = decoder.seg() if decoder.hyp() is not None else ()
        return [
            HeardWord(name, start_s + start * FRAME_S, start_s + (end + 1) * FRAME_S)
            for name, start, end in (
                (p.word.partition("(")[0], p.start_frame, p.end_frame) for p in parts
            )
            if name and name[0] not in "<[+"
        ]


def _load(path: str) -> np.ndarray:
    return np.asarray(np.load(path.rpartition("#")[0], mmap_mode="r"))


def _samples(pcm: np.ndarray, piece: Piece) -> slice:
    start, end = piece.start_s - _MARGIN_S, piece.end_s + _MARGIN_S
    return slice(max(0, round(start * RATE)), min(len(pcm), round(end * RATE)))


@cache
def _decoder(folder: Path) -> Any:  # noqa: ANN401  # a type of pocketsphinx
    from pocketsphinx import Config, Decoder

    files = {"lm": str(folder / _MODEL), "dict": str(folder / _DICTIONARY)}
    return Decoder(Config(samprate=RATE, loglevel="FATAL", **files, **_OPTIONS))


def write_language_model(folder: Path, source: SourceText) -> None:
    """Writes trigrams and pronunciations of a text in English.

    Words have the pronunciations of the text front end, and those that pocketsphinx knows.
    """
    from pocketsphinx import get_model_path

    folder.mkdir(exist_ok=True)
    names = ["<s>", *(word.name for word in source.words), "</s>"]
    counts = [Counter(zip(*(names[n:] for n in range(size)), strict=False)) for size in (1, 2, 3)]
    followers = [Counter(words[:-1] for words in table) for table in counts[1:]]
    total = len(names)

    def rest(words: tuple[str, ...]) -> float:
        return _DISCOUNT * followers[len(words) - 1][words] / counts[len(words) - 1][words]

    def probability(words: tuple[str, ...]) -> float:
        if len(words) == 1:
            return counts[0][words] / total
        context = words[:-1]
        seen = counts[len(words) - 1][words] - _DISCOUNT
        return seen / counts[len(context) - 1][context] + rest(context) * probability(words[1:])

    lines = ["\\data\\", *(f"ngram {size}={len(counts[size - 1])}" for size in (1, 2, 3))]
    for size, table in enumerate(counts, 1):
        lines += ["", f"\\{size}-grams:"]
        for words in table:
            weight = f" {log10(max(rest(words), 1e-5)):.4f}" if size < 3 else ""
            lines.append(f"{log10(probability(words)):.4f} {' '.join(words)}{weight}")
    write_text(folder / _MODEL, "\n".join([*lines, "", "\\end\\", ""]))
    entries: dict[str, dict[str, None]] = {}  # pronunciations, in order
    for word in source.words:
        phones = " ".join(phone.rstrip("012") for phone in word.phones)
        entries.setdefault(word.name, {})[phones] = None
    for line in read_text(Path(get_model_path("en-us/cmudict-en-us.dict"))).splitlines():
        name, _, phones = line.partition(" ")  # such as "the(2) DH IY"
        if (name := name.partition("(")[0]) in entries:
            entries[name][phones] = None
    lines = [
        f"{name}{f'({n})' if n > 1 else ''} {phones}"
        for name, alternatives in entries.items()
        for n, phones in enumerate(alternatives, 1)
    ]
    write_text(folder / _DICTIONARY, "\n".join([*lines, ""]))
