"""From written text to phones, words and pauses: `TextFrontend.__call__` is the whole path."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from config.text import TextConfig, UnknownCharacters, is_english
from processors.records import SpokenText, Word, WordPhones
from processors.text import letters, symbols
from processors.text.espeak import EspeakPhonemizer, is_ipa
from processors.text.g2p import LexiconPhonemizer, Pronunciation, is_arpabet, read_lexicon
from processors.text.normalisation.english import english_in_words, has_name, normalise_english
from processors.text.normalisation.foreign import left_out, name_signs
from processors.text.tokens import (
    Token,
    clean_characters,
    inline_phones,
    is_sign,
    kind_of,
    merge_pauses,
    split_inline,
    tokenize,
)
from utils.errors import InputError

_WORD = "word"  # placeholder for inline phones when the text after them is normalised


class TextFrontend:
    """Turns text into a SpokenText; the same text always gives the same phones.

    The normaliser `english` applies to English only: in other languages only characters are
    cleaned, a few signs become words, and espeak-ng reads the numbers and the other signs.

    Args:
        unknown: What to do with letters of other scripts in English; espeak-ng reads them.
    """

    def __init__(
        self, config: TextConfig, language: str, unknown: UnknownCharacters = "refuse"
    ) -> None:
        self.language = language
        self._unknown: UnknownCharacters = unknown
        self._symbols = config.phone_extractor if config.keeps_punctuation else ""
        self._in_letters, self._ends_in_eos = config.in_letters, config.ends_in_eos
        self._is_characters = config.is_characters
        self._phone_prefix = symbols.ARPABET_PREFIX if config.has_nvidia_symbols else ""
        self._has_classes = config.pauses == "classes" and not self._symbols
        self._is_english = config.normalizer == "english" and is_english(language)
        self._is_phone, self._phone_kind = is_arpabet, "a phone of ARPAbet"
        if config.has_espeak:
            self._is_phone, self._phone_kind = is_ipa, "a phone of IPA"
        elif config.phone_extractor == "letters":
            self._is_phone, self._phone_kind = letters.is_letter, "a letter"
        path = config.lexicon_path
        lexicon = read_lexicon(Path(path), self._is_phone) if path else {}
        self._own_words = frozenset(lexicon)
        self._phonemize: Callable[[Sequence[str]], list[Pronunciation]]  # the words of a clause
        if config.has_espeak:
            self._phonemize = EspeakPhonemizer(language, lexicon, unknown)
        elif config.phone_extractor == "letters":
            self._phonemize = letters.LetterPhonemizer()
        elif not is_english(language):
            raise InputError(
                f"the lexicon is English, the language of the text is '{language}'; set "
                f"preprocess.text.phone_extractor to {'letters' if config.is_mixed else 'espeak'}"
            )
        elif config.is_mixed:
            self._phonemize = letters.LetterPhonemizer(lexicon, self._phone_prefix)
        else:
            self._phonemize = LexiconPhonemizer(lexicon)

    def __call__(self, *texts: str) -> SpokenText:
        """Reads a text as phones.

        Phones can be written inline in braces: "say {T AH0 M EY1 T OW2} again".

        Args:
            texts: The text, in several parts if the words of each are to be found again.

        Raises:
            InputError: If there is no word, a word has no pronunciation, or an inline phone is not
                in the phone set; the message names it.
        """
        text = "".join(texts)
        parts: list[tuple[str, list[Token]]] = []
        for part in _spaces_first(texts):
            parts.append(self._read(part, is_first=not any(tokens for _, tokens in parts)))
        normalised = " ".join("".join(words for words, _ in parts).split())
        tokens = [token for _, tokens in parts for token in tokens]
        normalised, tokens, marks = self._units(normalised, tokens)
        if not any(map(_is_spoken, tokens)):
            raise InputError(f"there is no word to say in {text[:80]!r}")
        units = [self._units(*part)[1] for part in parts] if len(parts) > 1 else []
        word_ends = accumulate(sum(map(_is_spoken, part)) for part in units)
        spoken = self._spoken(text, normalised, tokens)
        return replace(spoken, unspoken=(*self.unspoken(text), *marks), word_ends=tuple(word_ends))

    def _read(self, text: str, *, is_first: bool) -> tuple[str, list[Token]]:
        """Reads a part of a text: the text in words, and its words, pauses and phones."""
        normalised = ""
        tokens: list[Token] = []
        for inline, piece in split_inline(text):
            if inline:
                token = inline_phones(piece)
                if wrong := [name for name in token.text.split() if not self._is_phone(name)]:
                    raise InputError(f"'{wrong[0]}' in {{{token.text}}} is not {self._phone_kind}")
                is_word = token.shown and not self._symbols
                normalised += f" {token.shown}" if is_word else f" {{{piece}}}"
                tokens.append(token)
            else:  # after phones as after a word: punctuation depends on what precedes it
                before = _WORD if tokens or not is_first else ""
                is_apart = piece[0].isalnum() or piece[0] in "'’" or is_sign(piece[0])
                apart = " " if before and is_apart else ""
                words = self._normalise(f"{before}{apart}{piece}").removeprefix(before)
                normalised += words
                tokens += tokenize(words)
        return normalised, tokens

    def _units(self, text: str, tokens: list[Token]) -> tuple[str, list[Token], tuple[str, ...]]:
        """Converts these to words without hyphens, or symbols; returns also marks left out."""
        if self._symbols:
            return letters.read_symbols(text, self._symbols)
        if self._in_letters:
            tokens = [word for token in tokens for word in letters.split_words(token)]
        return text, merge_pauses(tokens), ()

    def _normalise(self, text: str) -> str:
        """Writes text in words; outside English without the signs that espeak-ng cannot read."""
        if self._is_english and self._symbols:
            words = english_in_words(text, self._own_words, self._unknown)
            return " ".join(words.translate(letters.DASHES).lower().split())
        if self._is_english:
            return normalise_english(text, self._own_words, self._unknown)
        named = name_signs(clean_characters(text), self.language)
        return "".join(" " if is_sign(char) and not self._reads(char) else char for char in named)

    def _reads(self, sign: str) -> bool:
        """Tells whether the phonemizer gets a sign; the one of the lexicon refuses it by name."""
        is_word = kind_of(sign) == "word"
        if isinstance(self._phonemize, EspeakPhonemizer):
            return is_word and self._phonemize.reads(sign)
        return is_word and isinstance(self._phonemize, LexiconPhonemizer)

    def unspoken(self, text: str) -> tuple[str, ...]:
        """Returns the signs and letters of a text that are left out, each once."""
        if text.isascii() and not any(map(is_sign, set(text))):
            return ()
        plain = "".join(piece for inline, piece in split_inline(text) if not inline)
        named = dict.fromkeys(name_signs(clean_characters(plain), self.language))
        if not self._is_english:
            return tuple(char for char in named if is_sign(char) and not self._reads(char))
        signs = () if self._symbols else (c for c in named if is_sign(c) and not has_name(c))
        others = (c for c in named if self._unknown != "refuse" and left_out(c, self._unknown))
        return (*signs, *others)

    def holds_phones(self, inline: str) -> bool:
        """Tells whether what is in braces is meant as phones, also if some of them are wrong."""
        phones = inline.split()
        valid = [self._is_phone(phone) for phone in phones]
        look_alike = all(re.fullmatch(r"[A-Z]{1,3}\d?", phone) for phone in phones)
        return any(valid) and (all(valid) or look_alike)

    def _pronounced(self, tokens: Sequence[Token]) -> list[tuple[Token, Pronunciation]]:
        """Pairs tokens with their pronunciations, without spaces in what is said as one word."""
        words: list[Pronunciation] = []
        clause: list[str] = []  # words between pauses share their context
        for token in [*tokens, Token("pause", "")]:
            if token.kind == "word":
                clause.append(token.text)
            elif clause and token.text != symbols.WORD_BOUNDARY:
                goes_on = token.kind == "phones" and isinstance(self._phonemize, LexiconPhonemizer)
                context = [*clause, _WORD] if goes_on else clause  # "A {S K AY1}": the article
                words += self._phonemize(context)[: len(clause)]
                clause = []
        said = iter(words)
        pairs: list[tuple[Token, Pronunciation]] = []
        for token in tokens:
            if token.kind == "phones" and not token.text:
                continue
            names = token.text.split() if token.kind == "phones" else []
            phones = tuple(f"{self._phone_prefix}{name}" for name in names)
            spoken = next(said) if token.kind == "word" else Pronunciation(phones, in_lexicon=True)
            while spoken.is_joined and pairs[-1][0].text == symbols.WORD_BOUNDARY:
                pairs.pop()
            if self._is_characters:
                spoken = spoken._replace(phones=tuple("".join(spoken.phones)))
            pairs.append((token, spoken))
        return pairs

    def _spoken(self, text: str, normalised: str, tokens: Sequence[Token]) -> SpokenText:
        """Joins the phones of words and pauses, in the form that SpokenText describes."""
        phones = [symbols.SILENCE] if self._has_classes else []
        words: list[Word] = []
        choices: list[WordPhones] = []
        unknown: list[str] = []
        for token, said in self._pronounced(tokens):
            follows_word = bool(words) and words[-1].end == len(phones)
            if token.kind == "pause":
                if words or self._symbols:  # punctuation before the first word makes no pause
                    has_marks = self._has_classes or self._symbols
                    phones.append(token.text if has_marks else symbols.SHORT_PAUSE)
                continue
            if follows_word and self._in_letters and not self._symbols:
                phones.append(symbols.WORD_BOUNDARY)
            start, end = len(phones), len(phones) + len(said.phones)
            if said.instead:
                choices.append(WordPhones(len(words), start, end, said.instead))
            words.append(Word(token.shown or token.text, start, end))
            phones += said.phones
            if not said.in_lexicon:
                unknown.append(token.text)
        if self._has_classes and words[-1].end == len(phones):
            phones.append(symbols.FULL_STOP)
        if phones[-1] == symbols.SHORT_PAUSE:
            phones.pop()
        phones += [symbols.END] * self._ends_in_eos
        if self._is_characters:  # with a blank before, after and between all of them
            phones = [symbols.BLANK, *(name for phone in phones for name in (phone, symbols.BLANK))]
            words = [Word(word.text, 2 * word.start + 1, 2 * word.end) for word in words]
        spoken = SpokenText(text, normalised, tuple(phones), tuple(words), tuple(unknown))
        return replace(spoken, word_phones=tuple(choices))


class Frontends(dict[str, TextFrontend]):
    """Text front ends of one configuration by language, each built at its first use."""

    def __init__(self, config: TextConfig, unknown: UnknownCharacters = "refuse") -> None:
        super().__init__()
        self._config = config
        self._unknown: UnknownCharacters = unknown

    def __missing__(self, language: str) -> TextFrontend:
        self[language] = TextFrontend(self._config, language, self._unknown)
        return self[language]


def _is_spoken(token: Token) -> bool:
    """Returns whether a token is a word; "{|hello}" has no phones, and is none."""
    return token.kind != "pause" and bool(token.text)


def _spaces_first(texts: Sequence[str]) -> Iterator[str]:
    """Moves the spaces at the end of a part to the next: what follows a space is read otherwise."""
    space = ""
    for text in texts[:-1]:
        bare = text.rstrip()
        yield space + bare if bare else ""
        space = text[len(bare) :] or ("" if bare else space)
    yield space + texts[-1]
