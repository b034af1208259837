"""Recognises the words of a recording by pocketsphinx with a language model of the text.

The language model has the trigrams of the text, interpolated with bigrams and single words
(absolute discounting; Ney, Essen and Kneser 1994, "On structuring probabilistic dependences").
No word of the text is unknown: the text front end pronounces all. A function of the user's may
recognise the words instead.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import NamedTuple

import numpy as np

from models.programs.corpus.clips import (
    LONGEST_PAUSE_S,
    LONGEST_S,
    MARGIN_S,
    RATE,
    SHORTEST_S,
    USUAL_S,
    CorpusClip,
    as_cell,
)
from models.programs.corpus.texts import SourceText
from processors.alignment.pocketsphinx import LEAD_S
from processors.audio.frames import from_pcm16
from processors.audio.speech_level import FRAME_S, frame_levels, speech_frames
from processors.metrics.recognition.labelled_speech import decode, recogniser, words_of
from processors.metrics.recognition.user_models import UserFunction, recognise_text
from processors.records import TimedWord
from utils.files import read_text, write_text

_BLOCK_S = 300.0  # the level of speech may change during hours
_PAUSE_S = 0.2  # longer than the closures of plosives
_SHORTEST_FRAMES = 10  # of a piece: clicks are shorter
_MARGIN_S = 0.15  # of silence around a piece: words may begin and end softly
_DISCOUNT = 0.7  # of each count, for what the text does not have
# cmn: each piece by itself. Of LJ Speech, 450 of 495 words are right with these weights of the
# language model and of pauses, 436 with the defaults; the second pass, fwdflat, adds a third to the
# time, and bestpath is not worth its time.
_OPTIONS = {"cmn": "batch", "lw": 9.5, "silprob": 0.1, "bestpath": False}
_MODEL, _DICTIONARY = "text.arpa", "text.dict"


class Piece(NamedTuple):
    """A stretch of sound between pauses, in seconds."""

    start_s: float
    end_s: float


def find_pieces(pcm: np.ndarray, pause_s: float = _PAUSE_S) -> list[Piece]:
    """Finds sound between pauses by its level over 50 ms, in 16-bit samples, (S,).

    Levels are relative to speech and noise of each five minutes. Longer pieces than
    `LONGEST_S` are cut where they are softest.
    """
    step = round(_BLOCK_S * RATE)
    blocks = (from_pcm16(pcm[n : n + step]) for n in range(0, len(pcm), step))
    is_loud = np.concatenate([speech_frames(block, RATE)[0] for block in blocks])
    frames = np.flatnonzero(is_loud)
    if not len(frames):
        return []
    gaps = np.flatnonzero(np.diff(frames) > round(pause_s / FRAME_S))
    starts, ends = np.r_[frames[0], frames[gaps + 1]], np.r_[frames[gaps], frames[-1]] + 1
    pieces: list[Piece] = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end - start >= _SHORTEST_FRAMES:
            span = slice(round(start * FRAME_S * RATE), round(end * FRAME_S * RATE))
            pieces += _cut(frame_levels(pcm[span], RATE), start)
    return pieces


def _cut(levels: np.ndarray, start: int) -> list[Piece]:
    """Halves a long piece at the softest frame of its middle half."""
    if len(levels) * FRAME_S <= LONGEST_S:
        return [Piece(start * FRAME_S, (start + len(levels)) * FRAME_S)]
    quarter = len(levels) // 4
    middle = quarter + int(np.argmin(levels[quarter:-quarter]))
    return _cut(levels[:middle], start) + _cut(levels[middle:], start + middle)


def join_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Joins neighbours until clips have their usual length; what stays too short goes."""
    joined = [*pieces[:1]]
    for piece in pieces[1:]:
        start_s, end_s = joined[-1]
        is_near = piece.start_s - end_s < LONGEST_PAUSE_S and piece.end_s - start_s < LONGEST_S
        if is_near and end_s - start_s < USUAL_S:
            joined[-1] = Piece(start_s, piece.end_s)
        else:
            joined.append(piece)
    return [piece for piece in joined if piece.end_s - piece.start_s >= SHORTEST_S]


@dataclass(frozen=True)
class Recogniser:
    """Recognises the pieces of a recording; may be sent to other processes."""

    samples: Path  # `<recording>.npy`: 16 bits at `RATE`, (S,)
    folder: Path  # of the language model, as `write_language_model` wrote it
    language: str
    function: UserFunction | None  # of a wav, its rate and the language; None for pocketsphinx

    def words(self, _key: str, pieces: Sequence[Piece]) -> list[TimedWord]:
        """Returns the words of pieces; those of a user's function are spread evenly."""
        if self.function is None:
            return [word for piece in pieces for word in self._decoded(piece)]
        words = list[TimedWord]()
        for piece in pieces:
            names = words_of(self._text(self.function, piece), self.language).split()
            edges = np.linspace(*piece, len(names) + 1).tolist()
            words += (TimedWord(*word) for word in zip(names, edges[:-1], edges[1:], strict=True))
        return words

    def clips(self, _key: str, pieces: Sequence[Piece]) -> list[CorpusClip]:
        """Returns pieces as clips with the text that the user's function recognises in them."""
        if self.function is None:
            raise ValueError("pocketsphinx recognises only what is in a text")
        clips = []
        for piece in pieces:
            text = self._text(self.function, piece)
            reason = "" if any(map(str.isalnum, text)) else "no words were recognised"
            room = piece.start_s - MARGIN_S, piece.end_s + MARGIN_S
            clips.append(CorpusClip(self.samples.stem, *piece, as_cell(text), 0.0, reason, *room))
        return clips

    def _text(self, function: UserFunction, piece: Piece) -> str:
        wav, name = from_pcm16(self._load(piece)[0]), f"the sound at {piece.start_s:.1f} s"
        return recognise_text(function, wav, RATE, self.language, name)

    def _decoded(self, piece: Piece) -> list[TimedWord]:
        files = {"lm": str(self.folder / _MODEL), "dict": str(self.folder / _DICTIONARY)}
        decoder, (pcm, start_s) = recogniser(**files, **_OPTIONS), self._load(piece)
        is_recognised = decode(decoder, pcm) is not None
        start_s += LEAD_S
        return [
            TimedWord(
                segment.word.partition("(")[0],  # such as "the(2)"
                start_s + segment.start_frame * FRAME_S,
                start_s + (segment.end_frame + 1) * FRAME_S,
            )
            for segment in (decoder.seg() if is_recognised else ())
            if segment.word[0] not in "(<[+"  # not a null word, silence or noise
        ]

    def _load(self, piece: Piece) -> tuple[np.ndarray, float]:
        """Returns the samples of a piece with a margin, (S,), and their start in seconds."""
        pcm = np.load(self.samples, mmap_mode="r")
        start = max(0, round((piece.start_s - _MARGIN_S) * RATE))
        return pcm[start : round((piece.end_s + _MARGIN_S) * RATE)], start / RATE


def write_language_model(folder: Path, source: SourceText) -> None:
    """Writes trigrams and pronunciations of a text in English.

    Words have the pronunciations of the text front end, and those that pocketsphinx knows.
    """
    from pocketsphinx import get_model_path

    names = ["<s>", *(word.name for word in source.words), "</s>"]
    counts = [Counter(zip(*(names[n:] for n in range(size)), strict=False)) for size in (1, 2, 3)]
    followers = [Counter(words[:-1] for words in table) for table in counts[1:]]

    def backoff_weight(words: tuple[str, ...]) -> float:
        return _DISCOUNT * followers[len(words) - 1][words] / counts[len(words) - 1][words]

    def probability(words: tuple[str, ...]) -> float:
        if len(words) == 1:
            return counts[0][words] / len(names)
        context = words[:-1]
        seen, lower = counts[len(words) - 1][words] - _DISCOUNT, probability(words[1:])
        return seen / counts[len(context) - 1][context] + backoff_weight(context) * lower

    lines = ["\\data\\", *(f"ngram {size}={len(counts[size - 1])}" for size in (1, 2, 3))]
    for size, table in enumerate(counts, 1):
        lines += ["", f"\\{size}-grams:"]
        for words in table:
            weight = f" {log10(max(backoff_weight(words), 1e-5)):.4f}" if size < 3 else ""
            lines.append(f"{log10(probability(words)):.4f} {' '.join(words)}{weight}")
    write_text(folder / _MODEL, "\n".join([*lines, "", "\\end\\", ""]))
    phones_of: dict[str, dict[str, None]] = {}  # alternatives in order, by the name of the word
    for word in source.words:
        phones = " ".join(phone.rstrip("012") for phone in word.phones)
        phones_of.setdefault(word.name, {})[phones] = None
    for line in read_text(Path(get_model_path("en-us/cmudict-en-us.dict"))).splitlines():
        entry, _, phones = line.partition(" ")  # such as "the(2) DH IY"
        if (name := entry.partition("(")[0]) in phones_of:
            phones_of[name][phones] = None
    entries = ((name, *entry) for name in phones_of for entry in enumerate(phones_of[name], 1))
    lines = [f"{name}{f'({n})' * (n > 1)} {phones}\n" for name, n, phones in entries]
    write_text(folder / _DICTIONARY, "".join(lines))
