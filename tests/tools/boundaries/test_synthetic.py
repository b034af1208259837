from math import isnan

import numpy as np
import pytest
import soundfile

from processors.text.espeak import is_ipa
from tools.benchmarks.boundaries.espeak_library import PHONE, WORD, Event, Speech
from tools.benchmarks.boundaries.synthetic import LANGUAGES, _words, read_sentences, synthetic_clips


def said(*events, silent=()):
    """Words of 1,000 loud samples, but for the silent stretches."""
    wav = np.ones(1000, np.int16)
    for start, end in silent:
        wav[start:end] = 0
    return list(_words(Speech(wav, 1000, tuple(Event(*event) for event in events))))


@pytest.mark.parametrize(("end", "start"), [(400, 340), (390, 400)])  # or inside the phone before
def test_a_closure_belongs_to_its_stop(end, start):
    (word,) = said((WORD, 0, 0, ""), (PHONE, 0, 0, "a"), (PHONE, 400, 0, "t"), silent=[(340, end)])
    assert word.starts == (0, start)


def test_a_word_begins_with_its_event_and_after_a_silence_of_its_own_with_its_sound():
    second = (WORD, 300, 5, ""), (PHONE, 300, 5, ""), (PHONE, 350, 5, "ˈa")
    words = said((WORD, 0, 0, ""), (PHONE, 20, 0, "s"), *second)
    found = [(word.place, word.phones, word.starts) for word in words]
    assert found == [(0, ("s",), (0,)), (5, ("ˈa",), (350,))]


@pytest.mark.parametrize(("before", "phone"), [("n", "ˈa"), ("ɹ", "ə"), ("ˈa", "l")])
def test_starts_that_events_come_too_late_for_are_not_known(before, phone):
    (word,) = said((WORD, 0, 0, ""), (PHONE, 0, 0, before), (PHONE, 400, 0, phone))
    assert word.starts[0] == 0
    assert isnan(word.starts[1])


def test_a_phone_of_no_length_has_no_known_start():
    (word,) = said((WORD, 0, 0, ""), (PHONE, 0, 0, "a"), (PHONE, 400, 0, "n"), (PHONE, 400, 0, "d"))
    assert word.starts[0] == 0
    assert isnan(word.starts[1])
    assert word.starts[2] == 400


def test_clips_hold_the_phones_that_were_said_with_the_punctuation_of_the_text(tmp_path):
    first, second = synthetic_clips(["Two cats, they say!"], "en-us", tmp_path, ("", "f1"))
    assert first.utterance.text == "{t ˈuː} {k ˈæ t s}, {ð eɪ} {s ˈeɪ}!"
    assert [word.text for word in first.words] == ["t ˈuː", "k ˈæ t s", "ð eɪ", "s ˈeɪ"]
    assert first.utterance.speaker != second.utterance.speaker
    starts_s = [start for word in first.words for start in word.starts_s]
    assert starts_s == sorted(starts_s)
    assert starts_s[-1] < soundfile.info(first.utterance.audio).duration


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_are_said_in_ipa(language, tmp_path):
    sentences = read_sentences(language)
    assert len(set(sentences)) == len(sentences) == 40
    for clip in synthetic_clips(sentences, language, tmp_path):
        phones = [phone for word in clip.words for phone in word.text.split()]
        assert all(map(is_ipa, phones)), clip.utterance.text
