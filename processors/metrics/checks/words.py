"""The check of the words: skipped or repeated ones.

In English pocketsphinx follows the text, with a fixed probability of skipping and going back
(`processors.metrics.recognition.word_grammar`). In other languages the output of the user's
recogniser or transcripts is compared with the text: two or more words that are missing in a row, or
recognised twice in a row. Faults that the recording has as well are not flagged.

Measured in English on recordings with words cut out or repeated; the probability was chosen on
other sentences. Of one speaker (Kathleen), 78 sentences for each fault: 86 % of single skipped
words are found and 63 % of repeated ones; of two in a row 99 % and 100 %; of three, all. Of
LJSpeech, 50 sentences cut at the word boundaries of another aligner: 80 % and 70 %, 98 % and 98 %,
all. Unmodified, 2 of 250 recordings of the first are flagged, 1 of 55 of the second, and 2 of 50 of
14 other speakers, mostly for a short reduced word; of 68 copies of the first by Griffin-Lim and by
a poor vocoder, none. It takes 0.03 s of CPU time per second of speech.

Free recognition is weaker. With pocketsphinx in place of the user's recogniser, at a word error
rate of 20 %, 67 % of two skipped words are found and 47 % of two repeated ones, 93 % and 56 % of
three, and none of 30 unmodified recordings is flagged.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from processors.metrics.families.speech import NEEDS
from processors.metrics.records import Check, NotApplicableError
from utils.errors import InputError

if TYPE_CHECKING:
    from processors.metrics.recognition.labelled_speech import LabelledSpeech
    from processors.metrics.recognition.word_grammar import RecognisedWord

SHOWN = 3  # faults, of those found
FEWEST = 2  # words, with free recognition
_LISTED = 6  # words of a fault
_NEAR = 2  # words between jumps that belong together
_FEWEST_LETTERS = 3
_FOUND_LETTERS = 0.5  # of the letters of missing words: with more, they were misread


class Fault(NamedTuple):
    """Words of the text that are skipped or repeated."""

    kind: str  # "skipped" or "repeated"
    start: int  # index of the first word
    end: int  # one past the last
    where: str = ""  # its time, for the message


class _Jump(NamedTuple):
    """A place where the speech does not continue with the next word of the text."""

    after: int  # number of recognised words before it
    expected: int  # index of the next word of the text
    place: int  # index of the word that follows instead
    where: str

    @property
    def n_words(self) -> int:
        """Words skipped; below 0: words repeated."""
        return self.place - self.expected


def check_words(speech: "LabelledSpeech", recorded: "LabelledSpeech | None") -> str | None:
    """Describes words that are skipped or repeated."""
    words = speech.words.split()
    faults = None if "{" in speech.text else _faults(words, speech)  # inline phones are not words
    if faults is None:
        raise NotApplicableError(f"lacks {NEEDS}")
    if faults and recorded is not None:
        others = _faults(words, recorded) or []
        faults = [fault for fault in faults if not any(_alike(fault, other) for other in others)]
    notes = [_note(fault, words) for fault in faults[:SHOWN]]
    if len(faults) > SHOWN:
        notes.append(f"and {len(faults) - SHOWN} more faults: is it another text?")
    return "; ".join(notes) or None


def _faults(words: Sequence[str], speech: "LabelledSpeech") -> list[Fault] | None:
    """Finds skipped or repeated words; None without a text, or a recogniser of its language."""
    # not at the top: they take a tenth of a second
    from processors.metrics.recognition.word_grammar import recognised_words
    from processors.text.normalisation.english import is_english

    if not words:
        return None
    if not is_english(speech.language):
        heard = speech.recognised_words
        return None if heard is None else faults_in(heard.split(), words)
    try:
        recognised = recognised_words(words, speech.wav, speech.sample_rate)
    except InputError as error:
        raise NotApplicableError(str(error)) from error
    return [Fault("skipped", 0, len(words))] if recognised is None else faults_of(recognised, words)


def faults_of(recognised: Sequence["RecognisedWord"], words: Sequence[str]) -> list[Fault]:
    """Finds skipped and repeated words by the grammar.

    Jumps forward and back within two words mean that a word was confused with another one of the
    text; only their sum counts. Words of one or two letters are often reduced, and not faults.
    """
    faults = []
    for near in _near(_jumps(recognised, len(words))):
        in_all = sum(jump.n_words for jump in near)
        if in_all == 0:
            continue
        start, end = sorted(_span(near, in_all))
        if len("".join(words[start:end])) >= _FEWEST_LETTERS:
            kind = "skipped" if in_all > 0 else "repeated"
            faults.append(Fault(kind, start, end, near[0].where))
    return faults


def _span(near: Sequence[_Jump], in_all: int) -> tuple[int, int]:
    """Returns the first and last word of all jumps, or of the longest in their direction."""
    first, last = near[0].expected, near[-1].place
    if (last - first) * in_all > 0:
        return first, last
    longest = max(near, key=lambda jump: jump.n_words * in_all)
    return longest.expected, longest.place


def _jumps(recognised: Sequence["RecognisedWord"], n_words: int) -> Iterator[_Jump]:
    expected = 0
    for after, (place, start_s) in enumerate(recognised):
        if place != expected:
            yield _Jump(after, expected, place, f" at {start_s:.2f} s")
        expected = place + 1
    if expected < n_words:
        yield _Jump(len(recognised), expected, n_words, " at the end")


def _near(jumps: Iterable[_Jump]) -> list[list[_Jump]]:
    """Groups of jumps that follow each other within two words."""
    groups: list[list[_Jump]] = []
    for jump in jumps:
        if groups and jump.after - groups[-1][-1].after <= _NEAR:
            groups[-1].append(jump)
        else:
            groups.append([jump])
    return groups


def faults_in(hypothesis: Sequence[str], words: Sequence[str]) -> list[Fault]:
    """Finds skipped and repeated words by free recognition, whose own errors are no faults."""
    faults = []
    for kind, i, i_end, j, j_end in SequenceMatcher(None, words, hypothesis, False).get_opcodes():
        letters, found_letters = len("".join(words[i:i_end])), len("".join(hypothesis[j:j_end]))
        if (i_end - i) - (j_end - j) >= FEWEST and found_letters < _FOUND_LETTERS * letters:
            faults.append(Fault("skipped", i, i_end))
        n = j_end - j
        if kind == "insert" and n >= FEWEST:
            copies = [k for k in (i - n, i) if k >= 0 and words[k : k + n] == hypothesis[j:j_end]]
            faults += [Fault("repeated", k, k + n) for k in copies[:1]]
    return faults


def _alike(fault: Fault, other: Fault) -> bool:
    """Returns whether two faults are of the same kind and share a word."""
    return fault.kind == other.kind and fault.start < other.end and other.start < fault.end


def _note(fault: Fault, words: Sequence[str]) -> str:
    if fault[:3] == ("skipped", 0, len(words)):
        return "none of its words is found"
    more = " ..." if fault.end - fault.start > _LISTED else ""
    listed = " ".join(words[fault.start : fault.end][:_LISTED])
    return f'{fault.kind}{fault.where}: "{listed}{more}"'


CHECKS = (
    Check(
        name="words",
        score=check_words,
        finds="words skipped or repeated",
        meaning="Words that are skipped or repeated.",
        packages=("pocketsphinx", "soxr"),
    ),
)
