"""A folder of recordings with boundaries from other sources.

    emu_ae/*.TextGrid               by hand; tiers Text and Phoneme; words in .txt, audio in .wav
    praatio/mary.TextGrid           by hand; tiers word and phone
    praatio/bobby_phones.TextGrid   by hand; words in bobby_words.TextGrid
    cstr_hvd_48k/*.lab              HTS labels by state, with .flac; by a machine
    cmu_arctic_slt/*_phone.lab      HTS labels by phone, with .wav; by a machine

Recordings with words get their phones from a lexicon. The others have phones and no words: the
phones are converted to ARPAbet.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from preprocessors.manifest import Utterance
from processors.alignment.textgrid import Tiers, read_textgrid
from tests.benchmarks.boundaries.clips import Clip, WordOnsets
from tests.benchmarks.boundaries.textgrids import join, read_words

_TICKS_PER_S = 1e7
_PHONE = re.compile(r"[~^][^-]+-(.+?)\+")
_WORD = re.compile(r"/E[:/](.*?)/F")  # its place in the phrase
_FIRST_STATE = "[2]"
_SILENCES = {"#", "pau", "sil"}
# Phones of Unilex and festival's CMU set in ARPAbet, unless capitals suffice.
_ARPABET = {
    "@": "AH", "@@": "ER", "@U": "OW", "A": "AA", "D": "DH", "E": "EH", "I": "IH", "N": "NG",
    "O": "AO", "OI": "OY", "Q": "AA", "S": "SH", "T": "TH", "U": "UH", "V": "AH", "Z": "ZH",
    "a": "AE", "aI": "AY", "aU": "AW", "ax": "AH", "dZ": "JH", "eI": "EY", "h": "HH", "i": "IY",
    "j": "Y", "l!": "L", "lw": "L", "tS": "CH", "u": "UW",
}  # fmt: skip


def clips_by_hand(root: Path) -> tuple[Clip, ...]:
    """Recordings with boundaries made by hand."""
    emu = root / "emu_ae"
    tiers = Tiers(phones="Phoneme", words="Text")
    clips = [
        Clip(
            Utterance(path.stem, path.with_suffix(".wav"), _text(path), "emu_ae"),
            read_words(path, tiers),
        )
        for path in sorted(emu.glob("*.TextGrid"))
    ]
    praatio = root / "praatio"
    if (praatio / "mary.TextGrid").exists():
        clips.append(_said("mary", praatio, read_words(praatio / "mary.TextGrid")))
    if (praatio / "bobby_phones.TextGrid").exists():
        words = read_textgrid(praatio / "bobby_words.TextGrid", Tiers(phones="word")).phones
        phones = read_textgrid(praatio / "bobby_phones.TextGrid").phones
        clips.append(_said("bobby", praatio, join(words, phones)))
    return tuple(clips)


def labelled_clips(root: Path) -> tuple[Clip, ...]:
    """Recordings with HTS labels, their phones in ARPAbet."""
    cstr = [
        _labelled(path, path.with_suffix(".flac"), "cstr")
        for path in sorted((root / "cstr_hvd_48k").glob("*.lab"))
    ]
    slt = [
        _labelled(path, path.with_name(path.name.replace("_phone.lab", ".wav")), "slt")
        for path in sorted((root / "cmu_arctic_slt").glob("*_phone.lab"))
    ]
    return (*cstr, *slt)


def _text(path: Path) -> str:
    return path.with_suffix(".txt").read_text(encoding="utf-8").strip()


def _said(name: str, folder: Path, words: tuple[WordOnsets, ...]) -> Clip:
    text = " ".join(word.text for word in words)
    return Clip(Utterance(name, folder / f"{name}.wav", text, name), words)


def _labelled(path: Path, audio: Path, speaker: str) -> Clip:
    words = tuple(read_labels(path))
    text = " ".join("{" + word.text + "}" for word in words)
    return Clip(Utterance(path.stem, audio, text, speaker), words)


class _Label(NamedTuple):
    phone: str
    start_s: float
    word: str  # its position


def read_labels(path: Path) -> Iterator[WordOnsets]:
    """The words of HTS labels with full context, by phone or by state; times in 100 ns."""
    labels = [label for line in path.read_text().splitlines() for label in _read_line(line)]
    for word, phones in groupby(labels, key=lambda label: label.word):
        if word:
            yield _heard(list(phones))


def _read_line(line: str) -> Iterator[_Label]:
    """The phone that begins with a line, if one does."""
    start, _, context = line.split()[:3]
    phone, word = _PHONE.search(context), _WORD.search(context)
    if phone is None or word is None:
        raise ValueError(f"{line[:60]!r}: no HTS label with full context")
    if context.endswith("]") and not context.endswith(_FIRST_STATE):
        return
    name = phone.group(1)
    silent = name in _SILENCES
    yield _Label(name, int(start) / _TICKS_PER_S, "" if silent else word.group(1))


def _heard(phones: Sequence[_Label]) -> WordOnsets:
    names = [_ARPABET.get(one.phone, one.phone.upper()) for one in phones]
    return WordOnsets(" ".join(names), tuple(one.start_s for one in phones))
