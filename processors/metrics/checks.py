"""Checks of clipped samples, of silence that is too long, and of skipped or repeated words.

docs/evaluation.md#checks has what was measured with these limits.

**clipping**: peaks of the waveform that are cut off flat, at full scale, or below it where the
signal was attenuated after clipping. A peak is flat where two or more samples in a row lie within
1.5 steps of 16 bits of the highest (or lowest) sample, and the waveform rises to it more steeply
than to a round peak, which low and quiet voices have. Samples beyond full scale count as flat,
since players clip them. Flagged from three flat peaks on, or one of 1 ms: fewer are inaudible.

**silence** that is too long: before, after or inside the speech, or nothing but silence. It is more
than 20 dB below the speech (`processors.audio.speech_level.speech_activity`). With a recording,
silence at an edge may be 0.5 s longer than there, and a pause 0.5 s longer than its longest one;
without, 0.3 s at the edges and 0.7 s inside are assumed. Silence of less than 0.5 s at an edge, and
of 0.8 s inside, is never flagged.

**words** that are skipped or repeated: in English pocketsphinx follows the text, with a fixed
probability of skipping and going back (`processors.metrics.recognition.labelled_speech`). In other
languages the output of the user's recogniser or transcripts is compared with the text: two or more
words that are missing in a row, or recognised twice in a row. Faults that the recording has as well
are not flagged.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from config.text import is_english
from processors.audio.speech_level import Pause, SpeechActivity
from processors.metrics.families.speech import NEEDS
from processors.metrics.records import Check, NotApplicableError
from utils.errors import InputError

if TYPE_CHECKING:
    from processors.metrics.recognition.labelled_speech import LabelledSpeech, RecognisedWord

# clipping
N_TOPS = 3
LONG_S = 1e-3  # of a peak that is flagged by itself
_TOLERANCE = 1.5 / 32768
_SHORTEST = 2  # samples
_STEEPER = 1.5  # than the steepest round peak
_QUIETEST = 100 / 32768  # quieter peaks are flat for lack of finer steps
# silence
MARGIN_S = 0.5  # by which silence may be longer than recorded
EDGE_S = 0.5  # never flagged
PAUSE_S = 0.8
_USUAL_EDGE_S = 0.3  # assumed without a recording
_USUAL_PAUSE_S = 0.7
# words
SHOWN = 3  # faults, of those found
FEWEST = 2  # words, with free recognition
_LISTED = 6  # words of a fault
_NEAR = 2  # words between jumps that belong together
_FEWEST_LETTERS = 3
_FOUND_LETTERS = 0.5  # of the letters of missing words: with more, they were misread


class FlatTop(NamedTuple):
    """A peak of the waveform that is cut off."""

    start: int  # sample
    samples: int
    height: float  # relative to full scale


def check_clipping(speech: "LabelledSpeech", recorded: "LabelledSpeech | None") -> str | None:
    """Describes clipped samples: peaks of the waveform that are cut off flat."""
    tops = flat_tops(speech.wav)
    longest = max(tops, key=lambda top: top.samples, default=None)
    if longest is None:
        return None
    if len(tops) < N_TOPS and longest.samples < LONG_S * speech.sample_rate:
        return None
    compared = f", recorded: {_clipped(flat_tops(recorded.wav))}" if recorded is not None else ""
    return (
        f"{_clipped(tops)} clipped samples in {len(tops)} flat tops at {longest.height:.2f} of "
        f"full scale{compared}; the longest, {longest.samples} samples, at "
        f"{longest.start / speech.sample_rate:.2f} s"
    )


def _clipped(tops: list[FlatTop]) -> int:
    return sum(top.samples for top in tops)


def flat_tops(wav: np.ndarray) -> list[FlatTop]:
    """Returns the flat peaks of a waveform (S,), upper and lower ones."""
    return [*_upper(wav), *_upper(-wav)] if len(wav) else []


def _upper(wav: np.ndarray) -> Iterator[FlatTop]:
    height = min(float(wav.max()), 1.0)
    if height < _QUIETEST:
        return
    is_high = np.zeros(len(wav) + 2, dtype=np.int8)
    is_high[1:-1] = wav >= height - _TOLERANCE
    edges = np.flatnonzero(np.diff(is_high))  # starts and ends in turn
    for start, end in edges.reshape(-1, 2).tolist():
        n = end - start
        if n < _SHORTEST:
            continue
        # from a parabola's peak to the sample next to n samples within tolerance of it
        steepest_round = _TOLERANCE * ((n + 1) / (n - 1)) ** 2
        adjacent = float(min((*wav[max(start - 1, 0) : start], *wav[end : end + 1]), default=0.0))
        if height - adjacent > steepest_round * _STEEPER:
            yield FlatTop(start, n, height)


def check_silence(speech: "LabelledSpeech", recorded: "LabelledSpeech | None") -> str | None:
    """Describes silence that is too long, by the rules of the module."""
    seconds = len(speech.wav) / speech.sample_rate
    activity = speech.activity
    if activity is None:
        return f"nothing but silence, {seconds:.1f} s" if seconds else "no sound: 0 samples"
    before_s = after_s = longest_s = None
    if recorded is not None and recorded.activity is not None:
        before_s = recorded.activity.start_s
        after_s = len(recorded.wav) / recorded.sample_rate - recorded.activity.end_s
        longest_s = _longest(recorded.activity).seconds
    pause = _longest(activity)
    edge, inside = (_USUAL_EDGE_S, EDGE_S), (_USUAL_PAUSE_S, PAUSE_S)
    notes = [
        _silence_note(activity.start_s, before_s, *edge, "before the speech", ""),
        _silence_note(seconds - activity.end_s, after_s, *edge, "after the speech", ""),
        _silence_note(pause.seconds, longest_s, *inside, f"at {pause.start_s:.2f} s", "longest "),
    ]
    return "; ".join(note for note in notes if note) or None


def _silence_note(
    seconds: float, recorded_s: float | None, usual_s: float, never_s: float, where: str, of: str
) -> str:
    """Describes what is wrong with silence; empty where nothing is."""
    if seconds <= max(never_s, (usual_s if recorded_s is None else recorded_s) + MARGIN_S):
        return ""
    compared = "" if recorded_s is None else f", {of}recorded: {recorded_s:.1f} s"
    return f"{seconds:.1f} s of silence {where}{compared}"


def _longest(activity: SpeechActivity) -> Pause:
    return max(activity.pauses, key=lambda pause: pause.seconds, default=Pause(0.0, 0.0))


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
    actual: int  # index of the word that follows instead
    where: str

    @property
    def n_words(self) -> int:
        """Words skipped; below 0: words repeated."""
        return self.actual - self.expected


def check_words(speech: "LabelledSpeech", recorded: "LabelledSpeech | None") -> str | None:
    """Describes words that are skipped or repeated."""
    words = speech.words.split()
    faults = None if "{" in speech.text else _faults(words, speech)  # inline phones are not words
    if faults is None:
        raise NotApplicableError(f"lacks {NEEDS}")
    if faults and recorded is not None:
        recorded_faults = _faults(words, recorded) or []
        faults = [
            fault
            for fault in faults
            if not any(  # of the same kind, and with a word in common
                fault.kind == other.kind and fault.start < other.end and other.start < fault.end
                for other in recorded_faults
            )
        ]
    notes = [_note(fault, words) for fault in faults[:SHOWN]]
    if len(faults) > SHOWN:
        notes.append(f"and {len(faults) - SHOWN} more faults: is it another text?")
    return "; ".join(notes) or None


def _faults(words: Sequence[str], speech: "LabelledSpeech") -> list[Fault] | None:
    """Finds skipped or repeated words; None without a text, or a recogniser of its language."""
    # not at the top: it takes a tenth of a second
    from processors.metrics.recognition.labelled_speech import recognised_words

    if not words:
        return None
    if not is_english(speech.language):
        hypothesis = speech.recognised_words
        return None if hypothesis is None else faults_in(hypothesis.split(), words)
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
    for jumps in _groups_of_jumps(recognised, len(words)):
        n_words = sum(jump.n_words for jump in jumps)
        if n_words == 0:
            continue
        start, end = jumps[0].expected, jumps[-1].actual
        if (end - start) * n_words <= 0:  # the longest jump in their direction, then
            longest = max(jumps, key=lambda jump: jump.n_words * n_words)
            start, end = longest.expected, longest.actual
        start, end = sorted((start, end))
        if len("".join(words[start:end])) >= _FEWEST_LETTERS:
            kind = "skipped" if n_words > 0 else "repeated"
            faults.append(Fault(kind, start, end, jumps[0].where))
    return faults


def _groups_of_jumps(recognised: Sequence["RecognisedWord"], n_words: int) -> list[list[_Jump]]:
    """Groups jumps that follow each other within two words."""
    words = [(index, f" at {start_s:.2f} s") for index, start_s in recognised]
    groups: list[list[_Jump]] = []
    expected = 0
    for after, (index, where) in enumerate([*words, (n_words, " at the end")]):
        if index != expected:
            jump = _Jump(after, expected, index, where)
            if groups and after - groups[-1][-1].after <= _NEAR:
                groups[-1].append(jump)
            else:
                groups.append([jump])
        expected = index + 1
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


def _note(fault: Fault, words: Sequence[str]) -> str:
    if fault[:3] == ("skipped", 0, len(words)):
        return "none of its words is found"
    more = " ..." if fault.end - fault.start > _LISTED else ""
    listed = " ".join(words[fault.start : fault.end][:_LISTED])
    return f'{fault.kind}{fault.where}: "{listed}{more}"'


SOUND_CHECKS = (
    Check("clipping", check_clipping, "clipped samples"),
    Check("silence", check_silence, "too long silence"),
)
_WORDS = "words skipped or repeated"
CHECKS = (*SOUND_CHECKS, Check("words", check_words, _WORDS, ("pocketsphinx", "soxr")))
