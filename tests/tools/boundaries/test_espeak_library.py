import numpy as np
import pytest

from tools.benchmarks.boundaries.espeak_library import PHONE, WORD, speak
from utils.errors import InputError


def test_events_name_words_and_phones_in_order():
    speech = speak("Two big cats.", "en-us")
    assert speech.sample_rate == 22050
    words = [event.place for event in speech.events if event.kind == WORD]
    assert words == [0, 4, 8]
    phones = [event.name for event in speech.events if event.kind == PHONE and event.name]
    assert phones == ["t", "ˈuː", "b", "ˈɪ", "ɡ", "k", "ˈæ", "t", "s"]
    samples = [event.sample for event in speech.events]
    assert samples == sorted(samples)
    assert 0 <= samples[0] <= samples[-1] <= len(speech.wav)


def test_places_count_characters_and_not_bytes():
    speech = speak("Äpfel über Öfen", "de")
    assert [event.place for event in speech.events if event.kind == WORD] == [0, 6, 11]


def test_a_second_text_begins_again_at_sample_0():
    speak("A long sentence comes first, and then another.", "en-us")
    speech = speak("Cat.", "en-us")
    assert speech.events[0].sample == 0
    assert len(speech.wav) < 1.5 * speech.sample_rate


def test_the_event_of_a_voiceless_stop_ends_a_silence():
    speech = speak("Aka.", "es")
    (stop,) = [event.sample for event in speech.events if event.name == "k"]
    assert not speech.wav[stop - 200 : stop].any()
    assert np.abs(speech.wav[stop : stop + 400]).max() > 100


def test_an_unknown_voice_is_named():
    with pytest.raises(InputError, match="no voice 'xx-yy'"):
        speak("a", "xx-yy")
