from dataclasses import replace

import numpy as np
import pytest

from processors.metrics.checks.words import (
    Fault,
    check_words,
    faults_in,
    faults_of,
)
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from processors.metrics.recognition.user_models import UserModels
from processors.metrics.recognition.word_grammar import RecognisedWord
from processors.metrics.records import NotApplicableError
from tests.processors.spliced import TEXT, Recording

TEXT_HEARD = "she had your dark suit in greasy wash water all year"
WORDS = TEXT_HEARD.split()
SILENCE = np.zeros(1600, dtype=np.float32)


@pytest.fixture(scope="module")
def recording():
    return Recording()


def spoken(wav, rate=22050, text=TEXT) -> LabelledSpeech:
    return LabelledSpeech(wav, rate, text, "en-us")


def test_a_recording_says_its_text(recording):
    assert check_words(spoken(recording.wav), None) is None


def test_skipped_words_are_named_with_their_place(recording):
    note = check_words(spoken(recording.without(2, 4)), None)
    assert note.startswith("skipped at 0.")
    assert note.endswith('s: "block books"')
    note = check_words(spoken(recording.without(12, 14)), spoken(recording.wav))
    assert note == 'skipped at the end: "printed book"'


def test_repeated_words_are_named_with_the_time_of_the_second(recording):
    note = check_words(spoken(recording.twice(7, 8)), None)
    second_s = recording.ends_s[7]
    assert note.startswith("repeated at ")
    assert note.endswith('s: "immediate"')
    assert float(note.split()[2]) == pytest.approx(second_s, abs=0.1)


def test_what_the_recording_does_as_well_is_no_fault(recording):
    cut = spoken(recording.without(2, 4))
    assert check_words(cut, cut) is None
    both = spoken(recording.without(2, 4)[: round(3.2 * 22050)])
    note = check_words(both, cut)
    assert "block" not in note
    assert "skipped at the end" in note


def test_speech_of_another_text_is_flagged(recording):
    text = "Nothing more was heard of the affair, although the lady declared that she had never."
    assert "skipped" in check_words(spoken(recording.wav, text=text), None)


def test_in_silence_no_word_is_found():
    assert check_words(spoken(SILENCE, text="Two words."), None) == "none of its words is found"


def said(places: list[int]) -> list[RecognisedWord]:
    return [(place, 0.5 * number) for number, place in enumerate(places)]


@pytest.mark.parametrize(
    ("places", "faults"),
    [
        (range(11), []),
        ([0, 1, 2, 5, 6, 7, 8, 9, 10], [Fault("skipped", 3, 5, " at 1.50 s")]),
        ([0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9, 10], [Fault("repeated", 3, 5, " at 2.50 s")]),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8], [Fault("skipped", 9, 11, " at the end")]),
        ([2, 3, 4, 5, 6, 7, 8, 9, 10], [Fault("skipped", 0, 2, " at 0.00 s")]),
        ([0, *range(2, 11)], [Fault("skipped", 1, 2, " at 0.50 s")]),  # "had"
        ([0, 1, 2, 3, 4, 6, 7, 8, 9, 10], []),  # "in": two letters
        ([0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10], []),  # "in" again
        ([0, 1, 2, 3, 9, 5, 6, 7, 8, 9, 10], []),  # "suit" sounds like "all"
        ([0, 1, 2, 3, 0, 1, 1, *range(2, 11)], [Fault("repeated", 1, 4, " at 2.00 s")]),
        ([0, 1, 4, 8, 9, 10], [Fault("skipped", 2, 8, " at 1.00 s")]),  # all but a confused word
        ([0, 1, 2, 3, 4, 2, 5, 6, 7, 8, 9, 10], [Fault("repeated", 2, 5, " at 2.50 s")]),
    ],
)  # fmt: skip
def test_jumps_that_undo_each_other_and_few_letters_are_no_faults(places, faults):
    assert faults_of(said(list(places)), WORDS) == faults


@pytest.mark.parametrize(
    ("heard", "faults"),
    [
        (TEXT_HEARD, []),
        ("she had your suit in greasy wash water all year", []),  # one word may be missed
        ("she had your greasy wash water all year", [Fault("skipped", 3, 6)]),
        ("she had your hat in wash water all year", []),  # 5 letters of 16, but 2 words of 4
        ("she had your greece he wash what are all year", []),  # 8 letters of 16
        ("she had your grease wash water all year", [Fault("skipped", 3, 7)]),
        ("she hat or dark shoot in greece we watch water are here", []),
        (TEXT_HEARD.replace("suit", "suit dark suit"), [Fault("repeated", 3, 5)]),
        (TEXT_HEARD + " all year", [Fault("repeated", 9, 11)]),
        (TEXT_HEARD.replace("suit", "suit suit"), []),
        (TEXT_HEARD.replace("suit", "suit and then"), []),
        ("", [Fault("skipped", 0, 11)]),
    ],
)  # fmt: skip
def test_errors_of_the_recogniser_are_no_faults(heard, faults):
    assert faults_in(heard.split(), WORDS) == faults


def hearing(heard: str, **changes) -> LabelledSpeech:
    speech = LabelledSpeech(SILENCE, 16000, "Een kop koffie met melk, graag.", "nl")
    return replace(speech, user_models=UserModels(recogniser=lambda *_: heard), **changes)


def test_in_other_languages_the_users_recogniser_is_believed():
    good, bad = hearing("een kop koffie met melk graag"), hearing("Een kop koffie.")
    assert check_words(good, None) is None
    assert check_words(bad, good) == 'skipped: "met melk graag"'
    assert check_words(bad, bad) is None


def test_recordings_without_transcripts_say_nothing_of_speech(tmp_path):
    (tmp_path / "a.txt").write_text("een kop koffie")
    bad = replace(hearing(""), id="a", user_models=UserModels(transcripts=tmp_path))
    recorded = replace(bad, user_models=UserModels(transcripts=tmp_path / "recorded"))
    assert check_words(bad, recorded) == 'skipped: "met melk graag"'


def test_it_does_not_apply_without_text_or_recogniser():
    with pytest.raises(
        NotApplicableError, match=r"lacks a text .* in English, or in the language of"
    ):
        check_words(LabelledSpeech(SILENCE, 16000, "Een kop koffie.", "nl"), None)
    with pytest.raises(NotApplicableError, match="lacks a text"):
        check_words(LabelledSpeech(SILENCE, 16000, "...", "en"), None)
    with pytest.raises(NotApplicableError, match="lacks a text"):
        check_words(LabelledSpeech(SILENCE, 16000, "Say {T AH0 M EY1 T OW2}.", "en"), None)
