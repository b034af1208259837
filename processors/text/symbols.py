"""The names of phones and pauses, and the table from names to ids.

ARPAbet is the phone set of the CMU Pronouncing Dictionary: 39 phones, whose vowels carry a stress
digit (0 none, 1 primary, 2 secondary) or none at all, as in corpora labelled without stress.
Pauses are in angle brackets, so they cannot collide with phones of any language. Letters are in
lower case: `b` is a letter, `B` a phone.
"""

from collections.abc import Iterable, Sequence

from utils.errors import InputError

PAD = "<pad>"  # id 0 in every vocabulary
SILENCE = "<sil>"  # before the first and, in audio, after the last word
SHORT_PAUSE = "<sp>"  # a silence in the audio without punctuation in the text
UNNAMED = "<symbol:"  # starts the names of symbols whose meaning is unknown
NOISE = "<spn>"  # speech that could not be transcribed: not a pause
FULL_STOP = "<.>"  # also the end of a text without punctuation
PUNCTUATION_PAUSES = ("<,>", FULL_STOP, "<?>", "<!>")
MARKS = (PAD, SILENCE, SHORT_PAUSE, *PUNCTUATION_PAUSES, NOISE)  # the first ids of vocabularies
WORD_BOUNDARY = "<space>"  # between words in letters; often 0 s long
APOSTROPHE = "'"  # a letter
# Punctuation that only the symbol sets of NVIDIA distinguish.
OTHER_PUNCTUATION = ("<->", '<">', "<(>", "<)>", "<:>", "<;>")
END = "<eos>"  # the last symbol of a text in TensorFlowTTS
# All that is in a sequence between words.
PAUSES = (SILENCE, SHORT_PAUSE, *PUNCTUATION_PAUSES, WORD_BOUNDARY, *OTHER_PUNCTUATION, END)

VOWELS = (
    "AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW",
)  # fmt: skip
CONSONANTS = (
    "B", "CH", "D", "DH", "F", "G", "HH", "JH", "K", "L", "M", "N", "NG", "P", "R", "S", "SH",
    "T", "TH", "V", "W", "Y", "Z", "ZH",
)  # fmt: skip
STRESSES = ("", "0", "1", "2")
ARPABET = tuple(sorted([vowel + stress for vowel in VOWELS for stress in STRESSES])) + CONSONANTS


class Vocabulary:
    """Maps phone names to ids; the id of a name is its index in `symbols`."""

    def __init__(self, symbols: Iterable[str]) -> None:
        self.symbols = tuple(symbols)
        if len(set(self.symbols)) != len(self.symbols):
            raise InputError("a vocabulary holds a symbol twice")
        if self.symbols[:1] != (PAD,):
            raise InputError(f"a vocabulary must start with {PAD}, found {self.symbols[:1]}")
        self._ids = {symbol: index for index, symbol in enumerate(self.symbols)}

    def __len__(self) -> int:
        return len(self.symbols)

    def __contains__(self, phone: object) -> bool:
        return phone in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.symbols == other.symbols

    def __hash__(self) -> int:
        return hash(self.symbols)

    def __repr__(self) -> str:
        return f"Vocabulary of {len(self)} symbols"

    def ids(self, phones: Sequence[str]) -> list[int]:
        """The id of each phone; an InputError names all unknown ones."""
        unknown = sorted({phone for phone in phones if phone not in self._ids})
        if unknown:
            raise InputError(
                f"phones {' '.join(unknown)} are not among the {len(self)} symbols of this model; "
                "it was trained on another phone set, or its corpus does not contain them"
            )
        return [self._ids[phone] for phone in phones]

    def to_plain(self) -> list[str]:
        """The symbols in the order of their ids, ready for JSON."""
        return list(self.symbols)

    @classmethod
    def from_plain(cls, symbols: Iterable[str]) -> "Vocabulary":
        """Rebuild the vocabulary that `to_plain` wrote."""
        return cls(symbols)


def arpabet_vocabulary() -> Vocabulary:
    """The fixed vocabulary of English voices: marks, then the 84 ARPAbet symbols."""
    return Vocabulary(MARKS + ARPABET)


def vocabulary_of(phones: Iterable[str]) -> Vocabulary:
    """The marks, then the other phones of `phones` in sorted order."""
    return Vocabulary((*MARKS, *sorted(set(phones) - set(MARKS))))
