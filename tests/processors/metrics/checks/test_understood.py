import numpy as np
import pytest

from processors.metrics.checks.understood import check
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from processors.metrics.recognition.user_models import UserModels
from processors.metrics.records import NotApplicableError

TEXT = "He had, of course, never been there before."  # eight words
WAV = np.zeros(1600, dtype=np.float32)


def heard(words: str, text: str = TEXT) -> LabelledSpeech:
    return LabelledSpeech(
        WAV, 16000, text, "nl", user_models=UserModels(recogniser=lambda *_: words)
    )


WELL = heard("he had of course never been there before")
HALF = heard("he had of horse and been near before")
HARDLY = heard("he cat is horses in the mirror yes")
BAD_RECORDING = heard("he had a horse that is in before")


def test_speech_with_hardly_a_recognised_word_is_flagged():
    note = check(HARDLY, WELL)
    assert note == 'word error 88 %, recorded: 0 %: heard as "he cat is horses in the mirror yes"'
    assert check(HARDLY, None) == 'word error 88 %: heard as "he cat is horses in the mirror yes"'
    assert check(heard(""), WELL) == 'word error 100 %, recorded: 0 %: heard as ""'


@pytest.mark.parametrize("recorded", [WELL, HALF, HARDLY, None])
def test_speech_that_is_partly_misread_is_understood(recorded):
    assert check(HALF, recorded) is None


def test_it_does_not_apply_where_the_recording_is_misread_as_well():
    with pytest.raises(NotApplicableError, match="its recording is misread, too: word error 62 %"):
        check(HARDLY, BAD_RECORDING)


@pytest.mark.parametrize(
    "speech",
    [
        heard("a dog", "never been there before"),
        heard("a dog", "He had {HH IY1 Z} of course never been"),
        LabelledSpeech(WAV, 16000, TEXT, "nl"),
    ],
)
def test_it_does_not_apply_to_few_words_phones_and_unknown_languages(speech):
    with pytest.raises(NotApplicableError, match="needs five words"):
        check(speech, WELL)
