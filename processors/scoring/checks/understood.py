"""Speech that is not understood: a recogniser hears hardly any of the words of the text.

Skipped and repeated words (`processors.scoring.checks.words`) are looked for in speech that can be
followed; this one finds speech that cannot. It is flagged where more than 85 % of its words are
misread (the word error, insertions included). A recording that is misread by more than 60 % says
that it is the recogniser who fails there: then the utterance is not judged. Texts of less than
five words are not, either: one word more or less decides there.

Measured with pocketsphinx: of 40 recordings of a speaker (Kathleen) at most 60 % are misread, of 25
of LJSpeech 82 %; of copies by Griffin-Lim, 34 of the first at most 80 % and 10 of the second 50 %:
none is flagged. Of ten sentences by a voice that is hardly trained, 2 are (87 % and 89 %, of their
recordings 20 % and 28 %).
"""

from processors.scoring.checks import Check, NotApplicableError
from processors.scoring.metrics.wer import METRIC as WORD_ERROR
from processors.scoring.metrics.wer import word_error
from processors.scoring.recognition import LabelledSpeech, words_of

CHECK = Check(
    finds="not understood",
    needs="five words or more, in English or in the language of a recogniser or of transcripts of "
    "one's own",
    packages=WORD_ERROR.packages,
)
MOST_MISREAD = 0.85  # word error of speech
MOST_MISREAD_RECORDED = 0.6  # of its recording: with more, the recogniser is not to be believed
FEWEST = 5  # words of a text


def check(speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
    """Looks for speech that a recogniser does not understand."""
    ours = _misread(speech)
    if ours is None:
        raise NotApplicableError(f"needs {CHECK.needs}")
    theirs = _misread(recorded) if recorded is not None else None
    if ours <= MOST_MISREAD:
        return None
    if theirs is not None and theirs > MOST_MISREAD_RECORDED:
        raise NotApplicableError(f"its recording is misread, too: word error {100 * theirs:.0f} %")
    beside = f", recorded: {100 * theirs:.0f} %" if theirs is not None else ""
    return f'word error {100 * ours:.0f} %{beside}: heard as "{speech.hypothesis or ""}"'


def _misread(speech: LabelledSpeech) -> float | None:
    """Its word error; None where the text is too short, or nobody listens."""
    words = words_of(speech.text, speech.language)
    if len(words.split()) < FEWEST or "{" in speech.text or speech.hypothesis is None:
        return None
    return word_error(words, words_of(speech.hypothesis, speech.language))
