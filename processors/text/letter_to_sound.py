"""Letter-to-sound conversion of English words by the network in letter_network.py."""

import unicodedata

from processors.text.letter_network import Network, phones_of

LETTERS = "'abcdefghijklmnopqrstuvwxyz"
_VOWELS = frozenset("aeiouy")


def pronounce(word: str, network: Network | None = None) -> tuple[str, ...] | None:
    """ARPAbet of a word; None without a vowel, or with characters other than letters and "'".

    Accents and case are ignored. Without a network, by the bundled one.
    """
    decomposed = unicodedata.normalize("NFD", word.lower())
    letters = "".join(sign for sign in decomposed if not unicodedata.combining(sign))
    if not set(letters) <= set(LETTERS) or not _VOWELS & set(letters):
        return None
    return tuple(phones_of([LETTERS.index(letter) for letter in letters], network)) or None
