"""Speech that is much faster or slower than people speak.

With a recording, by the duration of the speech without pauses: flagged where it is 1.4 times as
long or as short, and differs by at least 0.3 s (edges of very short sentences are found less
precisely). In 12 sentences that one speaker read twice the durations differ by at most 12 %; in 9
sentences that four speakers read, by 33 %.

Without one, by phones per second of phones, outside 6 to 18: in the alignments of all 13,100
sentences of LJSpeech 99.8 % have 7.1 to 14.8. Without phones, by letters per second of speech,
outside 7.5 to 23: sentences in English, Dutch and German have 9.2 to 19 (99 % of 1,261 recordings
of 18 speakers).

Measured: of speech played 1.6 times as slowly or as fast, at least 99 % are found with a recording.
Without one only gross errors are: 1 in 20 of these slow ones, and 2 in 5 fast ones.
"""

import re

from processors.scoring.checks import Check, NotApplicableError
from processors.scoring.recognition import LabelledSpeech, without_pauses
from processors.text.normalisation import normalise_english

CHECK = Check(
    finds="too fast or too slow",
    needs="a recording, phones with times, or a text in English, Dutch or German",
)
RATIO = 1.4  # to the recording
PHONES_PER_S = (6.0, 18.0)
LETTERS_PER_S = (7.5, 23.0)
_LANGUAGES = ("en", "nl", "de")
_LEAST_DIFFERENCE_S = 0.3
_FEWEST = 20  # phones or letters: a word or two may be drawn out


def check(speech: LabelledSpeech, recorded: LabelledSpeech | None) -> str | None:
    """Looks for a wrong rate; silence has none.

    Args:
        speech: Speech to check.
        recorded: Its recording, where there is one.
    """
    activity = speech.activity
    if activity is None:
        return None
    if recorded is not None and recorded.activity is not None:
        return _against_recording(activity.speaking_s, recorded.activity.speaking_s)
    if phones := without_pauses(speech.phones):
        seconds = sum(phone.end_s - phone.start_s for phone in phones)
        return _outside(len(phones), seconds, "phones", PHONES_PER_S)
    return _outside(_letters(speech), activity.speaking_s, "letters", LETTERS_PER_S)


def _against_recording(speaking_s: float, recorded_s: float) -> str | None:
    ratio = speaking_s / recorded_s
    if abs(speaking_s - recorded_s) < _LEAST_DIFFERENCE_S or 1 / RATIO <= ratio <= RATIO:
        return None
    how = "too slow" if ratio > 1 else "too fast"
    return (
        f"{how}: speaks for {speaking_s:.1f} s without pauses, {ratio:.2f} times as long as "
        f"recorded ({recorded_s:.1f} s)"
    )


def _outside(count: int, seconds: float, of: str, limits: tuple[float, float]) -> str | None:
    if count < _FEWEST or limits[0] * seconds <= count <= limits[1] * seconds:
        return None
    how = "too slow" if count < limits[0] * seconds else "too fast"
    return (
        f"{how}: {count} {of} in {seconds:.1f} s of speech, expected {limits[0]:g} to {limits[1]:g}"
        " a second"
    )


def _letters(speech: LabelledSpeech) -> int:
    """Letters of the text, numbers spelt out.

    Raises:
        NotApplicableError: If there is no text, or its letters do not predict its length.
    """
    language = speech.language.split("-")[0]
    if not speech.text or language not in _LANGUAGES:
        raise NotApplicableError(f"needs {CHECK.needs}")
    text = normalise_english(speech.text) if language == "en" else speech.text
    if re.search(r"\d", text):
        raise NotApplicableError("the text has numbers that are not spelt out")
    return sum(character.isalpha() for character in text)
