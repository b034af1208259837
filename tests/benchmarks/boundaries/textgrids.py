"""LJ Speech with TextGrids of MFA."""

from collections.abc import Sequence
from pathlib import Path

from config.preprocess import CorpusConfig
from preprocessors.corpora import read_corpus
from preprocessors.manifest import Utterance
from processors.alignment.textgrid import USUAL_TIERS, Tiers, find_textgrid, read_textgrid
from processors.alignment.timed import Interval
from tests.benchmarks.boundaries.clips import Clip, WordOnsets

BAD = {"LJ001-0013", "LJ006-0114"}  # their TextGrids do not fit


def read_utterances(root: Path) -> list[Utterance]:
    """The utterances of a corpus in LJ Speech layout."""
    return read_corpus(root.name, root, CorpusConfig(format="ljspeech")).utterances


def mfa_clips(root: Path) -> tuple[Clip, ...]:
    """LJ Speech with a folder TextGrid; bad ones are only for training."""
    return tuple(
        Clip(one, () if one.id in BAD else read_words(find_textgrid(root / "TextGrid", one)))
        for one in read_utterances(root)
    )


def read_words(path: Path, tiers: Tiers = USUAL_TIERS) -> tuple[WordOnsets, ...]:
    """The words of a TextGrid that have phones.

    Args:
        path: The file.
        tiers: Names of its tiers.
    """
    grid = read_textgrid(path, tiers)
    return join(grid.words, grid.phones)


def join(words: Sequence[Interval], phones: Sequence[Interval]) -> tuple[WordOnsets, ...]:
    """Words with the phones whose middle is in them; words without phones are left out."""
    heard = []
    for word in words:
        starts_s = tuple(
            phone.start_s
            for phone in phones
            if word.start_s <= (phone.start_s + phone.end_s) / 2 < word.end_s
        )
        if starts_s:
            heard.append(WordOnsets(word.label, starts_s))
    return tuple(heard)
