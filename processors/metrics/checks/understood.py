"""Unintelligible speech: a recogniser gets hardly any word of the text right.

`processors.metrics.checks.words` finds skipped and repeated words in intelligible speech. This
check flags a word error rate (insertions included) of more than 85 %. A word error rate of the
recording above 60 % shows that the recogniser fails there, so the utterance is not checked; nor are
texts of fewer than five words, where one word decides.

Measured with pocketsphinx: the highest word error rate of 40 recordings of a speaker (Kathleen) is
60 %, of 25 of LJSpeech 82 %; of copies by Griffin-Lim, 80 % of 34 of the first and 50 % of 10 of
the second: none is flagged. Of ten sentences by a hardly trained voice, 2 are (87 % and 89 %; their
recordings have 20 % and 28 %).
"""

from typing import TYPE_CHECKING

from processors.metrics.families.speech import PACKAGES, word_error
from processors.metrics.records import Check, NotApplicableError

if TYPE_CHECKING:
    from processors.metrics.recognition.labelled_speech import LabelledSpeech

MOST_MISREAD = 0.85  # word error rate of speech
MOST_MISREAD_RECORDED = 0.6  # of its recording: above, the recogniser is not reliable
FEWEST = 5  # words of a text


def check(speech: "LabelledSpeech", recorded: "LabelledSpeech | None") -> str | None:
    """Unintelligible speech: a recogniser gets hardly any word of the text right."""
    error = _word_error(speech)
    if error is None:
        raise NotApplicableError(f"needs {CHECK.needs}")
    recorded_error = _word_error(recorded) if recorded is not None else None
    if error <= MOST_MISREAD:
        return None
    compared = ""
    if recorded_error is not None:
        percent = f"{100 * recorded_error:.0f} %"
        if recorded_error > MOST_MISREAD_RECORDED:
            raise NotApplicableError(f"its recording is misread, too: word error {percent}")
        compared = f", recorded: {percent}"
    return f'word error {100 * error:.0f} %{compared}: heard as "{speech.hypothesis or ""}"'


def _word_error(speech: "LabelledSpeech") -> float | None:
    """The word error rate; None where the text is too short, or there is no recogniser."""
    words, hypothesis = speech.words, speech.recognised_words
    if len(words.split()) < FEWEST or "{" in speech.text or hypothesis is None:
        return None
    return word_error(words, hypothesis)


CHECK = Check(
    "understood",
    "not understood",
    check,
    "five words or more, in English or in the language of a recogniser or of transcripts of one's"
    " own",
    packages=PACKAGES,
)
