"""Reads texts for an exported voice: the front end without PyTorch, copied into its folder."""

import json
from pathlib import Path
from typing import NamedTuple

from config.text import TextConfig
from processors.records import Word
from processors.text.reading import TextReader
from processors.text.voice_phones import Vocabulary, VoicePhones

SETTINGS, LEXICON = "frontend.json", "lexicon.txt"


class Clause(NamedTuple):
    """A sentence, or a part of a long one."""

    text: str
    phones: tuple[str, ...]
    phone_ids: list[int]
    words: tuple[Word, ...]  # with the spans of their phones


class Reader:
    """Turns texts into the phone ids of a voice.

    Args:
        folder: With frontend.json.
    """

    def __init__(self, folder: Path) -> None:
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        text = settings["text"]
        if text["lexicon_path"]:
            text["lexicon_path"] = str(folder / text["lexicon_path"])
        unknown = settings["unknown_characters"]
        phones = VoicePhones(settings["trained_phones"], settings["unknown_phones"], unknown)
        p_arpabet = settings["p_arpabet"]
        self._read = TextReader(
            TextConfig(**text), settings["max_phones"], phones, p_arpabet, unknown
        )
        self._vocabulary = Vocabulary(settings["symbols"])

    def __call__(self, text: str, language: str) -> list[list[Clause]]:
        """Reads the clauses of each sentence.

        Args:
            text: Any text; it may contain phones as `{HH AH0 L OW1}`.
            language: Code of espeak-ng, such as "en-us".

        Raises:
            ValueError: If there is no word, or one that cannot be pronounced.
        """
        ids_of = self._vocabulary.ids
        return [
            [Clause(s.text, s.phones, ids_of(s.phones), s.words) for s in sentence]
            for sentence in self._read(text, language)
        ]
