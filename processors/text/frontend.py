"""From written text to phones, words and pauses."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from config.text import TextConfig
from processors.records import SpokenText, Word, WordPhones
from processors.text.g2p import LexiconPhonemizer, Pronunciation, is_arpabet, read_lexicon
from processors.text.letters import LetterPhonemizer, normalise_symbols, read_symbols, split_words
from processors.text.normalisation.characters import clean_characters, has_name, name_signs
from processors.text.normalisation.english import is_english, normalise_english
from processors.text.symbols import (
    ARPABET_PREFIX,
    END,
    FULL_STOP,
    SHORT_PAUSE,
    SILENCE,
    WORD_BOUNDARY,
)
from processors.text.tokens import (
    Token,
    TokenizedText,
    is_sign,
    is_word,
    merge_pauses,
    split_inline,
    tokenize,
)
from utils.errors import InputError

_SETS = {"espeak": "a phone of IPA", "letters": "a letter"}  # what may be in braces
_WORD = "word"  # placeholder for inline phones when the text after them is normalised


class PhoneSequence:
    """Grows from left to right; SpokenText describes its form."""

    def __init__(self, config: TextConfig) -> None:
        self._keeps_marks = config.has_nvidia_symbols
        self._ends_in_eos = config.ends_in_eos
        self._classes = config.pauses == "classes"
        self._bounded = config.in_letters and not self._keeps_marks
        self.phones: list[str] = []
        self.words: list[Word] = []
        self.word_phones: list[WordPhones] = []
        self.unknown: list[str] = []
        if self._classes and not self._keeps_marks:
            self.phones.append(SILENCE)

    def add_word(self, text: str, said: Pronunciation) -> None:
        """Appends a word, and the boundary before it."""
        if self._bounded and self._ends_in_word:
            self.phones.append(WORD_BOUNDARY)
        start, end = len(self.phones), len(self.phones) + len(said.phones)
        if said.instead:
            self.word_phones.append(WordPhones(len(self.words), start, end, said.instead))
        self.words.append(Word(text, start, end))
        self.phones += said.phones
        if not said.in_lexicon:
            self.unknown.append(text)

    def add_pause(self, name: str) -> None:
        """Appends a pause or mark by its name; punctuation before the first word makes none."""
        if self._keeps_marks:
            self.phones.append(name)
        elif self.words:
            self.phones.append(name if self._classes else SHORT_PAUSE)

    def finish(self) -> None:
        """Makes the sequence end as it must: with the class of the final punctuation, if any."""
        if self._keeps_marks:
            self.phones += [END] * self._ends_in_eos
            return
        if self._classes and self._ends_in_word:
            self.phones.append(FULL_STOP)
        if self.phones[-1] == SHORT_PAUSE:
            self.phones.pop()

    @property
    def _ends_in_word(self) -> bool:
        return bool(self.words) and self.words[-1].end == len(self.phones)


class Phonemizer(Protocol):
    """Words to phones: ARPAbet, IPA or letters."""

    user_lexicon: dict[str, tuple[str, ...]]

    def __call__(self, words: Sequence[str]) -> list[Pronunciation]:
        """The pronunciation of each word of a clause."""

    def known_phone(self, symbol: str) -> bool:
        """Whether a symbol belongs to the phone set."""

    def reads(self, sign: str) -> bool:
        """Whether a sign can be given as a word."""


class TextFrontend:
    """Turns text into a SpokenText; the same text always gives the same phones.

    The normaliser `english` applies to English only: in other languages only characters are
    cleaned, a few signs become words, and espeak-ng reads the numbers and the other signs.
    """

    def __init__(self, config: TextConfig, language: str) -> None:
        self.config = config
        self.language = language
        self._phonemize = _make_phonemizer(config, language)
        self._normalise: Callable[[str], str] = self._name_signs
        self._says: Callable[[str], bool] = self._reads
        if config.normalizer == "english" and is_english(language):
            own_words = frozenset(self._phonemize.user_lexicon)
            normalise = normalise_symbols if config.has_nvidia_symbols else normalise_english
            self._normalise = partial(normalise, own_words=own_words)
            self._says = has_name

    def __call__(self, *texts: str) -> SpokenText:
        """The phones of a text.

        Phones can be written inline in braces: "say {T AH0 M EY1 T OW2} again".

        Args:
            texts: The text, in several parts if the words of each are to be found again.

        Raises:
            InputError: If there is no word, a word has no pronunciation, or an inline phone is not
                in the phone set; the message names it.
        """
        text = "".join(texts)
        normalised, tokens, unspoken, word_ends = self._read(texts)
        if not any(token.kind != "pause" for token in tokens):
            raise InputError(f"there is no word to say in {text[:80]!r}")
        sequence = PhoneSequence(self.config)
        for token, pronunciation in self._pronounced(tokens):
            if token.kind == "pause":
                sequence.add_pause(token.text)
            else:
                sequence.add_word(token.text, pronunciation)
        sequence.finish()
        return SpokenText(
            text,
            normalised,
            tuple(sequence.phones),
            tuple(sequence.words),
            tuple(sequence.unknown),
            unspoken,
            tuple(sequence.word_phones),
            word_ends if len(texts) > 1 else (),
        )

    def _read(self, texts: Sequence[str]) -> TokenizedText:
        normalised = ""
        tokens: list[Token] = []
        word_ends: list[int] = []
        n_words = 0
        for text in _spaces_first(texts):
            n_characters, n_tokens = len(normalised), len(tokens)
            for inline, piece in split_inline(text):
                if inline:
                    self._check_phones(piece)
                    normalised += f" {{{piece}}}"
                    tokens.append(Token("phones", piece))
                else:
                    words = self._after_phones(piece) if tokens else self._normalise(piece)
                    normalised += words
                    tokens += tokenize(words)
            n_words += self._n_words(normalised[n_characters:], tokens[n_tokens:])
            word_ends.append(n_words)
        normalised = " ".join(normalised.split())
        if self.config.has_nvidia_symbols:
            read = read_symbols(normalised, self.config.phone_extractor)
            return read._replace(word_ends=tuple(word_ends))
        if self.config.in_letters:
            tokens = [word for token in tokens for word in split_words(token)]
        unspoken = self._unspoken("".join(texts))
        return TokenizedText(normalised, merge_pauses(tokens), unspoken, tuple(word_ends))

    def _n_words(self, normalised: str, tokens: Sequence[Token]) -> int:
        """Number of words in a part of a text."""
        if self.config.has_nvidia_symbols:
            tokens = read_symbols(normalised, self.config.phone_extractor).tokens
        elif self.config.in_letters:
            tokens = [word for token in tokens for word in split_words(token)]
        return sum(token.kind != "pause" for token in tokens)

    def _name_signs(self, text: str) -> str:
        """Text of another language without the signs that espeak-ng cannot read."""
        named = name_signs(clean_characters(text), self.language)
        return "".join(" " if is_sign(char) and not self._reads(char) else char for char in named)

    def _reads(self, sign: str) -> bool:
        return is_word(sign) and self._phonemize.reads(sign)

    def _unspoken(self, text: str) -> tuple[str, ...]:
        """The signs of a text that are left out, each once."""
        signs = [char for char in dict.fromkeys(text) if not char.isascii() or is_sign(char)]
        if not signs:
            return ()
        plain = "".join(piece for inline, piece in split_inline(text) if not inline)
        named = name_signs(clean_characters(plain), self.language)
        signs = [char for char in dict.fromkeys(named) if is_sign(char)]
        return tuple(char for char in signs if not self._says(char))

    def _after_phones(self, text: str) -> str:
        """Normalises as if after a word: the meaning of punctuation depends on what precedes it."""
        apart = " " if text[0].isalnum() or text[0] in "'’" or is_sign(text[0]) else ""
        return self._normalise(f"{_WORD}{apart}{text}").removeprefix(_WORD)

    def _check_phones(self, inline: str) -> None:
        for phone in inline.split():
            if not self._phonemize.known_phone(phone):
                kind = _SETS.get(self.config.phone_extractor, "a phone of ARPAbet")
                raise InputError(f"'{phone}' in {{{inline}}} is not {kind}")

    def _pronounced(self, tokens: Sequence[Token]) -> Iterator[tuple[Token, Pronunciation]]:
        """Each token with its pronunciation; words between two pauses share their context."""
        clause: list[Token] = []
        for token in [*tokens, Token("pause", "")]:
            if token.kind == "word":
                clause.append(token)
                continue
            if clause:
                pronunciations = self._phonemize([word.text for word in clause])
                yield from zip(clause, pronunciations, strict=True)
                clause = []
            if token.text:
                yield token, Pronunciation(self._named(token), in_lexicon=True)

    def _named(self, token: Token) -> tuple[str, ...]:
        """The names of a pause or of phones in braces."""
        prefixed = token.kind == "phones" and self.config.has_nvidia_symbols
        prefix = ARPABET_PREFIX if prefixed else ""
        return tuple(f"{prefix}{name}" for name in token.text.split())


class Frontends(dict[str, TextFrontend]):
    """Text front ends of one configuration by language, each built at its first use."""

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self._config = config

    def __missing__(self, language: str) -> TextFrontend:
        self[language] = TextFrontend(self._config, language)
        return self[language]


def _spaces_first(texts: Sequence[str]) -> Iterator[str]:
    """Moves the spaces at the end of a part to the next: what follows a space is read otherwise."""
    space = ""
    for text in texts[:-1]:
        bare = text.rstrip()
        yield space + bare if bare else ""
        space = text[len(bare) :] or ("" if bare else space)
    yield space + texts[-1]


def _make_phonemizer(config: TextConfig, language: str) -> Phonemizer:
    # One backend's packages are not needed for the other.
    if config.phone_extractor == "espeak":
        from processors.text.espeak import EspeakPhonemizer, is_ipa

        ipa = read_lexicon(Path(config.lexicon_path), is_ipa) if config.lexicon_path else {}
        return EspeakPhonemizer(language, ipa)
    if config.phone_extractor == "letters":
        return LetterPhonemizer()
    if not is_english(language):
        others = "letters" if config.is_mixed else "espeak"
        raise InputError(
            f"the lexicon is English, the language of the text is '{language}'; "
            f"set preprocess.text.phone_extractor to {others}"
        )
    arpabet = read_lexicon(Path(config.lexicon_path), is_arpabet) if config.lexicon_path else {}
    if config.is_mixed:
        prefix = ARPABET_PREFIX if config.has_nvidia_symbols else ""
        return LetterPhonemizer(arpabet, with_phones=True, prefix=prefix)
    return LexiconPhonemizer(arpabet)
