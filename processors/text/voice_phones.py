"""The phones of a voice: their ids, and the nearest ones to those that it was not trained on.

Phones are compared by articulation, as in ALINE (Kondrak 2000, "A new algorithm for the alignment
of phonetic sequences", NAACL): a segment has features between 0 and 1, and the distance of two
segments is the weighted sum of their differences. Unlike in ALINE, vowels have the heights of
the IPA chart, sibilants are a feature, and stress counts a little: the same vowel with another
stress is nearest. ARPAbet is compared by its IPA equivalents.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, NamedTuple

from config.text import TextConfig, UnknownCharacters
from processors.records import SpokenText, Word
from processors.text import symbols
from processors.text.normalisation.foreign import transliterated
from utils.errors import InputError, listed
from utils.logging import get_logger

_SEVERAL = {"ɝ": "ɜɹ", "ɚ": "əɹ", "ʦ": "ts", "ʣ": "dz", "ʧ": "tʃ", "ʤ": "dʒ"}

# Voiceless and voiced at each place; "." where there is no such sound.
_PLACES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.73, 0.7, 0.6, 0.5, 0.3, 0.1)  # lips to glottis
_MANNERS = (  # degree of closure; whether nasal, lateral, sibilant; the sounds
    (1.0, 0, 0, 0, "pb .. .. td ʈɖ .. .. cɟ kɡ qɢ .ʡ ʔ."),
    (1.0, 1, 0, 0, ".m .ɱ .. .n .ɳ .. .. .ɲ .ŋ .ɴ .. .."),
    (0.8, 0, 0, 1, ".. .. .. sz ʂʐ ʃʒ ɕʑ .. .. .. .. .."),
    (0.8, 0, 0, 0, "ɸβ fv θð .. .. .. .. çʝ xɣ χʁ ħʕ hɦ"),
    (0.8, 0, 1, 0, ".. .. .. ɬɮ .. .. .. .. .. .. .. .."),
    (0.7, 0, 0, 0, ".ʙ .. .. .r .ɽ .. .. .. .. .ʀ .. .."),
    (0.65, 0, 0, 0, ".. .. .. .ɾ .. .. .. .. .. .. .. .."),
    (0.6, 0, 0, 0, ".. .ʋ .. .ɹ .ɻ .. .. .j .ɰ .. .. .."),
    (0.6, 0, 1, 0, ".. .. .. .l .ɭ .. .. .ʎ .ʟ .. .. .."),
)
# Unrounded and rounded at the front, the centre and the back, from close to open.
_HEIGHTS = ("iyɨʉɯu", "ɪʏᵻ..ʊ", "eøɘɵɤo", "..ə...", "ɛœɜɞʌɔ", "æ.ɐ...", "aɶä.ɑɒ")
_SKIP = 25.0  # a segment without counterpart
_SPLIT = 6  # for each phone more than one: it lasts longer
_MARK = 1  # aspiration, tone and other marks that only one of two segments has
_RANKS = {"1": 2, "ˈ": 2, "2": 1, "ˌ": 1}
_UNKNOWN_RANK = 1.9  # of an ARPAbet vowel without a digit: next to that with 1, not equal to it
_NASAL = "\u0303"  # a tilde: the vowel and an n, for a voice without nasal vowels
_RING = "\u0325"  # below a letter: it is voiceless
_STRENGTHS = {
    "<space>": -2, "<->": -1.9, '<">': -1.8, "<sp>": 0, "<(>": 0.8, "<)>": 0.9, "<,>": 1,
    "<:>": 1.2, "<;>": 1.3, "<!>": 2.6, "<.>": 3, "<?>": 3.4, "<sil>": 5,
}  # fmt: skip
_NO_SOUND = frozenset((*symbols.MARKS, *symbols.PAUSES))
_SHOWN = 10  # replacements in a message
_EXPECTED = ("<!>", (symbols.FULL_STOP,))  # few corpora have exclamation marks: no warning


class _Articulation(NamedTuple):
    """Features of a sound of one articulation, and its marks."""

    place: float
    manner: float
    syllabic: float
    voice: float
    nasal: float = 0
    lateral: float = 0
    sibilant: float = 0
    high: float = 0
    back: float = 0
    round: float = 0
    long: float = 0
    stress: float = 0  # of the phone that begins here: 2 primary, 1 secondary
    marks: frozenset[str] = frozenset()


_WEIGHTS = (40, 50, 2, 5, 20, 10, 10, 10, 1, 3, 0.5, 0.1)  # of the features
_Sound = tuple[_Articulation, ...]


class PhoneSet:
    """The phones that a voice can say."""

    def __init__(self, phones: Iterable[str]) -> None:
        self._phones = frozenset(phones)
        sounds = {phone: _sound_of(phone) for phone in sorted(self._phones - _NO_SOUND)}
        self._sounds = {phone: sound for phone, sound in sounds.items() if sound}
        self._cheapest = cache(self._compare)

    def nearest(self, phone: str) -> tuple[str, ...]:
        """Finds the phones of this set that are nearest to a phone or pause, usually one.

        A diphthong or affricate that has no near counterpart becomes the phones of its segments.
        Empty if no phone of the set can be compared with it.
        """
        if phone in self._phones:
            return (phone,)
        if phone in _NO_SOUND:
            pauses = [pause for pause in _STRENGTHS if pause in self._phones]
            if phone not in _STRENGTHS or not pauses:
                return ()
            return (min(pauses, key=lambda pause: abs(_STRENGTHS[pause] - _STRENGTHS[phone])),)
        sound = _sound_of(phone)
        return self._cheapest(sound)[1] if sound and self._sounds else ()

    def _compare(self, sound: _Sound) -> tuple[float, tuple[str, ...]]:
        """Finds the phones that are nearest to a sound, and their distance."""
        distance, phone = min((_distance(sound, s), phone) for phone, s in self._sounds.items())
        best: tuple[float, tuple[str, ...]] = distance, (phone,)
        for end in range(1, len(sound)):
            first, second = self._cheapest(sound[:end]), self._cheapest(sound[end:])
            best = min(best, (first[0] + second[0] + _SPLIT, first[1] + second[1]))
        return best


def is_voiced(phone: str, *, in_letters: bool = False) -> bool:
    """Returns whether a phone has a pitch; pauses, punctuation and voiceless consonants have none.

    Of ARPAbet, also with NVIDIA's prefix, or IPA; others are voiced. So are letters, lower-case
    names of voices `in_letters`: the "s" of "is" has a pitch, that of "this" has none.
    """
    if phone.startswith("<") or not any(char.isalpha() for char in phone):
        return False
    if in_letters and phone == phone.lower():
        return True
    sound = _sound_of(phone)
    return not sound or any(segment.voice and _RING not in segment.marks for segment in sound)


def is_vowel(phone: str) -> bool:
    """Returns whether a phone of ARPAbet or the IPA begins with a vowel."""
    sound = _sound_of(phone)
    return bool(sound) and sound[0].syllabic == 1


def _distance(sound: _Sound, other: _Sound) -> float:
    """Computes the edit distance of the segments."""
    row = [_SKIP * column for column in range(len(other) + 1)]
    for segment in sound:
        above, row = row, [row[0] + _SKIP]
        for column, counterpart in enumerate(other):
            features = zip(_WEIGHTS, segment[:-1], counterpart[:-1], strict=True)
            change = sum(weight * abs(a - b) for weight, a, b in features)
            change += _MARK * len(segment.marks ^ counterpart.marks)
            row.append(min(above[column] + change, above[column + 1] + _SKIP, row[-1] + _SKIP))
    return row[-1]


def _sound_of(phone: str) -> _Sound:
    """Returns the segments of a phone of ARPAbet or the IPA; none if it is neither."""
    phone = phone.removeprefix(symbols.ARPABET_PREFIX)
    stress: float = _RANKS.get(phone[:1], 0)
    bare = phone.rstrip("012")
    if bare in symbols.IPA_OF_ARPABET:
        stress = _UNKNOWN_RANK if bare == phone in symbols.VOWELS else _RANKS.get(phone[-1], 0)
        phone = symbols.IPA_OF_ARPABET[bare]
    for letter, several in _SEVERAL.items():
        phone = phone.replace(letter, several)
    letters = _letters()
    ipa = (char if char in letters else unicodedata.normalize("NFD", char) for char in phone)
    segments: list[_Articulation] = []
    for char in "".join(ipa).lstrip("ˈˌ"):
        if char in letters or (segments and char == _NASAL):
            segments.append(letters["n" if char == _NASAL else char])
        elif segments and char in "ːˑ":  # it changes or marks the one before
            segments[-1] = segments[-1]._replace(long=1 if char == "ː" else 0.5)
        elif segments:
            segments[-1] = segments[-1]._replace(marks=segments[-1].marks | {char})
    return tuple(s._replace(stress=stress) if n == 0 else s for n, s in enumerate(segments))


@cache
def _letters() -> dict[str, _Articulation]:
    """Returns the segment of each letter."""
    letters = {}
    for manner, nasal, lateral, sibilant, chart in _MANNERS:
        for place, pair in zip(_PLACES, chart.split(), strict=True):
            for voice, letter in enumerate(pair):
                letters[letter] = _Articulation(place, manner, 0, voice, nasal, lateral, sibilant)
    for step, row in enumerate(_HEIGHTS):
        for column, letter in enumerate(row):
            back, rounded = column // 2 / 2, column % 2
            letters[letter] = _Articulation(
                0.7 - 0.1 * back, 0.55, 1, 1, high=1 - step / 6, back=back, round=rounded
            )
    del letters["."]
    glides = {"j": ("j", 0, 0), "w": ("ɰ", 1, 1), "ɥ": ("j", 0, 1), "ʍ": ("ɰ", 1, 1)}
    for letter, (like, back, rounded) in glides.items():
        letters[letter] = letters[like]._replace(high=1, back=back, round=rounded)
    letters["ʍ"] = letters["ʍ"]._replace(voice=0)
    return letters | {"g": letters["ɡ"], "ɫ": letters["l"]}


class VoicePhones:
    """Replaces phones that a voice was not trained on by the nearest ones that it was trained on.

    Each replacement is logged once, with its word. Pauses are always replaced, and letters that no
    other sounds like are transliterated or left out, as `unknown_characters` says.
    """

    def __init__(
        self,
        trained: Iterable[str],
        unknown: Literal["replace", "refuse"],
        unknown_characters: UnknownCharacters = "refuse",
    ) -> None:
        self._letters: UnknownCharacters = unknown_characters
        self.names = frozenset(trained)
        self._trained = PhoneSet(self.names)
        self._unknown = unknown
        self._logged: set[str] = set()

    def fit(self, sentences: Iterable[Iterable[SpokenText]]) -> list[list[SpokenText]]:
        """Returns the clauses of the sentences of a text in the phones of this voice."""
        replaced: dict[str, None] = {}
        fitted = [[self._fitted(clause, replaced) for clause in row] for row in sentences]
        if new := [name for name in replaced if name not in self._logged]:
            self._logged.update(new)
            problem = "this voice was not trained on all phones of the text and replaces"
            get_logger(__name__).warning("%s %s", problem, listed(new, _SHOWN))
        return fitted

    def _fitted(self, clause: SpokenText, replaced: dict[str, None]) -> SpokenText:
        """Writes a clause in the phones of this voice; adds what is replaced to `replaced`."""
        if self.names.issuperset(clause.phones):
            return clause
        word_of = {i: word.text for word in clause.words for i in range(word.start, word.end)}
        phones: list[str] = []
        starts = [0]  # of each phone of the clause in `phones`
        for i, phone in enumerate(clause.phones):
            place = f" in '{word_of[i]}'" if i in word_of else ""
            nearest = self._nearest(phone, place)
            if nearest != (phone,) and (phone, nearest) != _EXPECTED:
                replaced[f"{phone}{place} by {' '.join(nearest) or 'nothing'}"] = None
            phones += nearest
            starts.append(len(phones))
        words = (Word(word.text, starts[word.start], starts[word.end]) for word in clause.words)
        return replace(clause, phones=tuple(phones), words=tuple(words))

    def _nearest(self, phone: str, place: str) -> tuple[str, ...]:
        nearest = self._trained.nearest(phone)
        if phone in symbols.PAUSES:
            return nearest or (phone,)
        if phone == symbols.APOSTROPHE or nearest == (phone,):  # the apostrophe has no sound
            return nearest
        problem = f"this voice was not trained on the phone {phone}{place}"
        if not nearest and self._letters != "refuse":
            latin = transliterated(phone).lower() if self._letters == "speak" else ""
            return tuple(near for letter in latin for near in self._trained.nearest(letter))
        if not nearest:
            raise InputError(f"{problem}, and has none like it")
        if self._unknown == "refuse":
            advice = "set inference.unknown_phones to replace, or write the word otherwise"
            raise InputError(f"{problem}; the nearest: {' '.join(nearest)}; {advice}")
        return nearest


class Vocabulary:
    """Maps phone names to ids; the id of a name is its index in `symbols`."""

    def __init__(self, names: Iterable[str]) -> None:
        self.symbols = tuple(names)
        self._ids = {symbol: index for index, symbol in enumerate(self.symbols)}
        if len(self._ids) != len(self.symbols):
            raise InputError("a vocabulary holds a symbol twice")
        if (first := self.symbols[:1]) != (symbols.PAD,):
            raise InputError(f"a vocabulary must start with {symbols.PAD}, found {first}")

    def __len__(self) -> int:
        return len(self.symbols)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.symbols == other.symbols

    def __hash__(self) -> int:
        return hash(self.symbols)

    def ids(self, phones: Sequence[str]) -> list[int]:
        """Returns the id of each phone; an InputError names all unknown ones."""
        if unknown := sorted(set(phones) - self._ids.keys()):
            reason = "it was trained on another phone set, or its corpus does not contain them"
            names = " ".join(unknown)
            fault = f"phones {names} are not among the {len(self)} symbols of this model"
            raise InputError(f"{fault}; {reason}")
        return [self._ids[phone] for phone in phones]


def arpabet_vocabulary() -> Vocabulary:
    """Returns the fixed vocabulary of English voices: marks, then the 84 ARPAbet symbols."""
    return Vocabulary(symbols.MARKS + symbols.ARPABET)


def vocabulary_of(phones: Iterable[str], first: Sequence[str] = symbols.MARKS) -> Vocabulary:
    """Returns the first symbols, then the other phones of `phones` in sorted order."""
    return Vocabulary((*first, *sorted(set(phones) - set(first))))


def nvidia_vocabulary(phone_extractor: str) -> Vocabulary:
    """Returns the symbols of a set of DeepLearningExamples, in NVIDIA's order.

    `english_basic` (148 symbols) is "nvidia_english", `english_basic_lowercase` (123)
    "nvidia_english_lowercase". Names are those of this toolkit: `<pad>` for `_`, `<space>` for a
    space, `<,>` for a comma; ARPAbet has the prefix `@`, since `B` is a capital letter here.
    TensorFlowTTS's symbols for LJ Speech (149) are those of english_basic and `<eos>`:
    "tensorflowtts_english".
    """
    marks_and_letters = map(symbols.mark_name, symbols.SYMBOL_SETS[phone_extractor])
    phones = (f"{symbols.ARPABET_PREFIX}{phone}" for phone in sorted(symbols.ARPABET))
    end = (symbols.END,) if phone_extractor == "tensorflowtts_english" else ()
    return Vocabulary((symbols.PAD, *marks_and_letters, *phones, *end))


def espeak_characters_vocabulary() -> Vocabulary:
    """Returns the 178 symbols of Matcha-TTS by their ids; `<pad>` is also the blank."""
    names = [symbols.PAD, *map(symbols.mark_name, symbols.ESPEAK_CHARACTERS)]
    names[names.index(symbols.APOSTROPHE)] = "<unused>"
    return Vocabulary(names)


def model_vocabulary(text: TextConfig, phones: Iterable[str]) -> Vocabulary:
    """Returns the symbols of the data; with a lexicon also all of ARPAbet, for any word."""
    if text.is_characters:
        return espeak_characters_vocabulary()
    if text.has_nvidia_symbols:
        return nvidia_vocabulary(text.phone_extractor)
    names = {*phones, symbols.WORD_BOUNDARY} if text.in_letters else {*phones}
    has_lexicon = text.phone_extractor not in ("espeak", "letters")
    return vocabulary_of(names, symbols.MARKS + symbols.ARPABET if has_lexicon else symbols.MARKS)
