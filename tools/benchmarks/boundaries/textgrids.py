"""LJ Speech with TextGrids of MFA."""

from collections.abc import Iterator
from pathlib import Path

from config.preprocess import CorpusConfig
from preprocessors.corpora import read_corpus
from preprocessors.manifest import Utterance
from processors.alignment.textgrid import find_textgrid, read_textgrid
from tools.benchmarks.boundaries.clips import Clip, WordOnsets

BAD = {"LJ001-0013", "LJ006-0114"}  # their TextGrids do not fit


def read_utterances(root: Path) -> list[Utterance]:
    """The utterances of a corpus in LJ Speech layout."""
    return read_corpus(root.name, root, CorpusConfig(format="ljspeech")).utterances


def mfa_clips(root: Path) -> tuple[Clip, ...]:
    """LJ Speech with a folder TextGrid; bad ones are only for training."""
    folder = root / "TextGrid"
    return tuple(
        Clip(each, () if each.id in BAD else (*_read_words(find_textgrid(folder, each)),))
        for each in read_utterances(root)
    )


def _read_words(path: Path) -> Iterator[WordOnsets]:
    """The words of a TextGrid with the phones whose middle is in them; at least one."""
    grid = read_textgrid(path)
    for word in grid.words:
        starts_s = tuple(
            phone.start_s
            for phone in grid.phones
            if word.start_s <= (phone.start_s + phone.end_s) / 2 < word.end_s
        )
        if starts_s:
            yield WordOnsets(word.text, starts_s)
