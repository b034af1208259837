"""Splits texts into sentences, and long ones into clauses, and reads these as phones. No loss."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, pairwise

from config.text import TextConfig, UnknownCharacters, is_english
from processors.records import SpokenText
from processors.text.frontend import Frontends
from processors.text.latex import say_formulas
from processors.text.letters import mix
from processors.text.normalisation.abbreviations import NEVER_FINAL, SELDOM_FINAL
from processors.text.pronunciations import Alphabet, Dictionary, Transcriber
from processors.text.symbols import FULL_STOP, PAUSES, SHORT_PAUSE
from processors.text.voice_phones import VoicePhones
from utils.errors import InputError, control_characters
from utils.logging import get_logger

# A sentence may end after these marks and any closing quotes or brackets. Marks of scripts
# without spaces need none behind them.
_END = re.compile(r"(?:[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』”’）]*|[।॥۔؟]+|\n\s*\n)")
_BLANK_LINE = re.compile(r"\n\s*\n")
_OPEN_BRACE = re.compile(r"\{[^{}\n]{0,200}$")  # phones that are being written
_UNITS = re.compile(r"\S*\{[^{}]*\}\S*|\S+")

# A line that goes on in the next one: from a capital to a small letter, without a mark
_CONTINUED = re.compile(r"^\s*[A-ZÀ-Þ][^\n]*[^\s.!?…,;:]\s*\n\s*[a-zß-ÿ]", re.M)
_LIST_MARK = re.compile(r"\s*(?:[-*+•‣▪◦]|\d{1,2}[.)]|[a-z]\))\s", re.I)
_SENTENCE_MARK = re.compile(r"[.!?…。！？।॥۔؟][\"'”’»)\]]*$")
_NO_MARK = re.compile(r"[^.!?…。！？।॥۔؟,;:、，(\[–—-]$")
_ROUND = str.maketrans("{}", "()")
_CONTEXT = 40  # characters before a sign, in a warning
_SHORT_ITEM = 25  # characters: four or more shorter lines are a list, also in small letters
_GOES_ON = re.compile(  # a line that goes on in the next one, as in a poem
    r",|\b(?:of|that|the|is|and|or|an?|to|in|so|for|with|but|as|was|are|my|your)$|"
    r"^(?:and|or|but|it|is|to|of|that)\b",
    re.M,
)
_NARROWEST = 40  # characters: prose is not wrapped at fewer, and most items of a list are shorter

_CONJUNCTION = re.compile("and|but|n?or|so|because|which|that|when|while|where|who")
COMMA = "<,>"

# As in scripts for speech: [pause:1.5], [break 300ms], [pause]
PAUSE = re.compile(
    r"\[(?:(?i:pause|break)[\s:=]+(\d{1,5}(?:\.\d{0,6})?|\.\d{1,6})\s*(ms|milliseconds|s|sec|seconds?)?"
    r"|pause)\]"
)


def split_sentences(text: str) -> list[str]:
    """Splits a text at the ends of sentences, at blank lines, and between the items of a list.

    Abbreviations ("Mr. Smith", "e.g. this"), initials and decimals do not end a sentence, and
    phones in braces are not split. The sentences hold every visible character of the text.
    """
    text = "\n\n".join(_separate_items(block) for block in _BLANK_LINE.split(text))
    guarded = [match.span() for match in re.finditer(r"\{[^{}]*\}", text)]
    sentences = []
    start = 0
    for end in (match.end() for match in _END.finditer(text)):
        is_guarded = any(low < end < high for low, high in guarded)
        if not is_guarded and _ends_sentence(text[start:end], text[end : end + 64].lstrip()):
            sentences.append(text[start:end])
            start = end
    sentences.append(text[start:])
    return [sentence.strip() for sentence in sentences if sentence.strip()]


class SentenceStream:
    """Finds the sentences of a plain text while it is written.

    They are those of `split_sentences`. One is complete when the next one has begun, after a blank
    line, and at the end of a line with a final mark or too short for wrapped prose.
    """

    def __init__(self) -> None:
        self._text = ""  # of the sentences that may not be complete

    def of(self, parts: Iterable[str]) -> Iterator[str]:
        """Yields the sentences of a text that comes in parts."""
        for part in parts:
            yield from self.add(part)
        yield from self.rest()

    def add(self, part: str) -> list[str]:
        """Returns the sentences that a further part of the text completes."""
        check_text(part)
        self._text += part
        sentences = merge_wordless(split_sentences(self._text))
        if not sentences or not has_word(sentences[-1]) or _OPEN_BRACE.search(self._text):
            return []
        if self._line_ends(sentences[-1]):
            self._text = ""
            return sentences
        if "\n" in self._text.strip() and len(sentences[-1].split()) < 2:
            return []  # whether a line is wrapped depends on the whole next word
        self._text = cut_parts([self._text], sentences)[-1][0][1]
        return sentences[:-1]

    def rest(self) -> list[str]:
        """Returns the sentences that are left at the end of the text."""
        sentences = merge_wordless(split_sentences(self._text))
        self._text = ""
        return [*filter(has_word, sentences)]

    def _line_ends(self, sentence: str) -> bool:
        line, end = self._text.rstrip(), self._text[len(self._text.rstrip()) :]
        if "\n" not in end or _BLANK_LINE.search(end):
            return "\n" in end
        if _SENTENCE_MARK.search(line):
            return _ends_sentence(sentence, "A") and _ends_sentence(sentence, "1")
        return len(line.split("\n")[-1]) < _NARROWEST and bool(_NO_MARK.search(line))


def _separate_items(block: str) -> str:
    """Writes a blank line between lines that are not one sentence, such as the items of a list.

    A line break of wrapped prose is where the next word did not fit in. Any other one after a line
    without a final mark separates, except before a small letter in a text of sentences: its author
    broke a line within one.
    """
    lines = [line.rstrip() for line in block.strip().split("\n")]
    is_list = sum(bool(_LIST_MARK.match(line)) for line in lines) > 1
    is_short = len(lines) > 3 and max(map(len, lines)) < _SHORT_ITEM and not _GOES_ON.search(block)
    is_prose = any(map(_SENTENCE_MARK.search, lines))
    is_prose |= not is_short and bool(_CONTINUED.search(block))
    width = max(*map(len, lines), 0 if is_prose else _NARROWEST)
    text = lines[0]
    for line, following in pairwise(lines):
        word = following.split()[0]
        is_item = is_list and _LIST_MARK.match(following)
        fits = len(line) + 1 + len(word) <= width
        ends = _NO_MARK.search(line) and fits and not (is_prose and word[0].islower())
        text += ("\n\n" if is_item or ends else "\n") + following
    return text


def _ends_sentence(before: str, after: str) -> bool:
    if not before.strip() or not after or before.endswith("\n"):
        return True
    opening = after.lstrip("\"'“‘«([{")
    if opening[:1].islower():
        return bool(re.search(r"[。！？।॥۔؟]", before[-2:]))
    word = re.search(r"([^\s(\[\"“'‘]+?)\.+[\"'”’»)\]]*$", before)
    if word is None:
        return True
    last = word[1].lower()
    if last in SELDOM_FINAL or word[1] == "c":  # circa, but not the letter C
        return not opening[:1].isdigit()
    if last in NEVER_FINAL or re.fullmatch(r"(?:\w\.)+\w", last):  # "Dr", "U.S", "e.g"
        return False
    if re.fullmatch("[a-z]", last) and re.match(r"[A-Z]\.\s?[A-Z][a-z]", opening):
        return False  # one of several initials
    letter = before[word.start(1) :].rstrip(".\"'”’)]")
    if len(letter) != 1 or not letter.isupper():
        return True
    previous = before[: word.start(1)].split()[-1:]  # a name before an initial: "John F.", "J. R."
    name = previous[0].lstrip("\"'“‘([") if previous else "by"
    return not (name[:1].isupper() or name == "by")


def split_long(sentence: str, max_phones: int) -> list[str]:
    """Halves a long sentence, preferably between clauses, until every chunk fits.

    Halving gives chunks of similar length; models read a short remainder badly. A letter counts as
    one phone, a digit as five. Words are halved if they are too long; inline phones are not.
    """
    return [" ".join(units) for units in _halve(_UNITS.findall(sentence), max_phones)]


def _halve(units: Sequence[str], max_phones: int) -> list[Sequence[str]]:
    sizes = [_phones_of(unit) for unit in units]
    total = sum(sizes)
    if total <= max_phones:
        return [units] if units else []
    if len(units) == 1:
        (word,) = units
        middle = len(word) // 2
        if "{" in word or middle == 0:
            return [units]
        return _halve([word[:middle]], max_phones) + _halve([word[middle:]], max_phones)
    off_centre = (abs(position - total / 2) / total for position in accumulate(sizes))
    costs = [off + cut_cost(*pair) for off, pair in zip(off_centre, pairwise(units), strict=False)]
    cut = costs.index(min(costs)) + 1
    return _halve(units[:cut], max_phones) + _halve(units[cut:], max_phones)


def _phones_of(unit: str) -> int:
    """Estimates the number of phones of a word, at least one."""
    n_letters = sum(5 if char.isdigit() else char.isalpha() for char in unit)
    return max(len(unit.split()) if unit.startswith("{") else n_letters, 1)


def cut_cost(word: str, following: str) -> float:
    """Computes the cost of a cut between two words, from 0 after a clause to 0.25.

    Costs are shares of the length of the chunk.
    """
    if re.search(r"[.!?;:…—–]['\"”’)\]]*$", word):
        return 0.0
    if re.search(r"[,)\]、，]['\"”’]*$", word):
        return 0.05
    return 0.15 if _CONJUNCTION.fullmatch(following.lower()) else 0.25


def cut_parts(parts: Iterable[str], pieces: Sequence[str]) -> list[list[tuple[int, str]]]:
    """Cuts the parts of a text where the text is cut; empty parts at a cut go with what follows.

    Args:
        pieces: The text in pieces with the characters of the parts in order; spaces may differ.

    Returns:
        The index and text of each part, or of what is left of it, for each piece.
    """
    waiting = deque(enumerate(parts))
    rows: list[list[tuple[int, str]]] = []
    for piece in pieces:
        n_left = sum(not char.isspace() for char in piece)
        rows.append([])
        while waiting and n_left > 0:
            index, part = waiting.popleft()
            end = 0
            while end < len(part) and (n_left > 0 or part[end].isspace()):
                n_left -= not part[end].isspace()
                end += 1
            rows[-1].append((index, part[:end]))
            if end < len(part):
                waiting.appendleft((index, part[end:]))
    if rows:
        rows[-1] += waiting
    return rows


class TextReader:
    """Reads texts of several languages in the phones of a voice; keeps a front end for each.

    Args:
        max_phones: Longer sentences are split at clauses.
        p_arpabet: Probability of ARPAbet for words that can be in letters or in phones.
        unknown: What to do with letters of other scripts in English.
    """

    def __init__(
        self,
        config: TextConfig,
        max_phones: int,
        phones: VoicePhones,
        p_arpabet: float = 0.0,
        unknown: UnknownCharacters = "speak",
    ) -> None:
        self.phones = phones
        self._config = config
        self._max_phones = max_phones
        self._p_arpabet = p_arpabet
        self._unknown = unknown
        self._frontends = Frontends(config, unknown)
        self._unspoken: set[str] = set()  # signs and letters that were named in the log
        self._dictionary: Dictionary | None = None

    def __call__(self, text: str, language: str) -> list[list[SpokenText]]:
        """Reads the sentences of a text, each as one or more clauses; none if all is left out.

        Raises:
            InputError: If the text has no word, or one that cannot be pronounced.
        """
        sentences = merge_wordless(split_sentences(text))
        if not sentences:  # the text has blanks at most
            raise InputError("there is no word in the text")
        clauses = [self.clauses([sentence], language) for sentence in sentences]
        return self.phones.fit([sentence for sentence in clauses if sentence])

    def load(self, language: str) -> None:
        """Builds the front end of a language before its first text; reads the user's lexicon."""
        self._frontends[language]

    def using(self, dictionary: Dictionary | None, language: str) -> "TextReader":
        """Returns this reader with a dictionary, whose entries come before those it has."""
        if dictionary is None:
            return self
        dictionary.check(self._transcriber(language))
        reader = copy(self)
        reader._dictionary = dictionary.merged(self._dictionary)
        return reader

    def clauses(self, parts: Sequence[str], language: str) -> list[SpokenText]:
        """Reads a sentence, in one or several parts, in phones that the voice may lack.

        The log names, once each, the signs that are left out; of a sentence of such signs alone
        there is no clause.
        """
        text = "".join(parts)
        said = "".join(self._with_dictionary(parts, language))
        unspoken = self._frontends[language].unspoken(said)
        if has_word(text) and not any(c.isalnum() and c not in unspoken for c in said):
            self._warn(unspoken, text)
            return []
        spoken = self._spoken(text, parts, language)
        self._warn(spoken.unspoken, text)
        if len(spoken.phones) <= self._max_phones:
            return [spoken]
        chunks = merge_wordless(split_long(text, self._max_phones))
        rows = ([part for _, part in row] for row in cut_parts(parts, chunks))
        return self.link([self._spoken(*row, language) for row in zip(chunks, rows, strict=True)])

    def _warn(self, unspoken: Sequence[str], text: str) -> None:
        """Names signs in the log that it has not named before, and the place of the first."""
        if new := [sign for sign in unspoken if sign not in self._unspoken]:
            self._unspoken.update(new)
            context = text[max(text.find(new[0]) - _CONTEXT, 0) :][: 2 * _CONTEXT]
            shown = " ".join(new)
            get_logger(__name__).warning("signs that are not spoken: %s in %r", shown, context)

    def link(self, clauses: Sequence[SpokenText]) -> list[SpokenText]:
        """Makes all clauses of a sentence but the last end in a pause instead of a full stop."""
        pause = SHORT_PAUSE if self._config.pauses == "sp" else COMMA
        linked = [*clauses]
        for i, clause in enumerate(clauses[:-1]):
            if clause.phones[-1] == FULL_STOP:
                linked[i] = replace(clause, phones=(*clause.phones[:-1], COMMA))
            elif clause.phones[-1] not in PAUSES:  # the front end ends it without one
                linked[i] = replace(clause, phones=(*clause.phones, pause))
        return linked

    def _spoken(self, text: str, parts: Sequence[str], language: str) -> SpokenText:
        spoken = self._frontends[language](*self._with_dictionary(parts, language))
        spoken = replace(spoken, text=text)
        return mix(spoken, self._p_arpabet) if spoken.word_phones else spoken

    def _with_dictionary(self, parts: Sequence[str], language: str) -> Sequence[str]:
        if self._unknown != "refuse":
            if re.search(r"[$\\]", "".join(parts)) and is_english(language):
                parts = [say_formulas(part) for part in parts]
            holds_phones = self._frontends[language].holds_phones
            parts = [_round_brackets(part, holds_phones) for part in parts]
        if self._dictionary is None:
            return parts
        voice = self._transcriber(language)
        return [self._dictionary.spoken(part, voice) for part in parts]

    def _transcriber(self, language: str) -> Transcriber:
        alphabet: Alphabet = "ipa" if self._config.has_espeak else "arpabet"
        if self._config.phone_extractor == "letters":
            alphabet = "letters"
        return Transcriber(alphabet, is_english(language), self.phones.names)


def _round_brackets(text: str, holds_phones: Callable[[str], bool]) -> str:
    """Replaces braces that hold no phones, as in "Dear {name}", by round brackets."""

    def plain(match: re.Match[str]) -> str:
        holds = match[1] and holds_phones(match[1].partition("|")[0])
        return match[0] if holds else match[0].translate(_ROUND)

    return re.sub(r"\{([^{}]*)\}|[{}]", plain, text)


def check_text(text: str) -> None:
    """Raises InputError if this is no text, was not UTF-8, or holds control characters."""
    if not isinstance(text, str):
        raise InputError(f"the text is {repr(text)[:80]}; expected a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        fault = f"the text is not UTF-8 at character {error.start}"
        raise InputError(f"{fault}; is the terminal set to UTF-8?") from error
    if not text.isprintable() and (shown := control_characters(text)):
        raise InputError(f"the text holds control characters: {shown}; remove them")


def merge_wordless(pieces: Sequence[str]) -> list[str]:
    """Joins pieces of a text without a letter or digit ("...", "-") to their neighbours.

    Alone they cannot be synthesised, but they may contain a sign that is read as a word.
    """
    joined: list[str] = []
    for piece in pieces:
        if joined and not (has_word(piece) and has_word(joined[-1])):
            joined[-1] = f"{joined[-1]} {piece}"
        else:
            joined.append(piece)
    return joined


def has_word(piece: str) -> bool:
    """Returns whether a piece of text holds a letter or a digit, apart from `[pause:1.5]`."""
    return any(character.isalnum() for character in PAUSE.sub("", piece))
