import pytest

from processors.text.espeak import speak
from processors.text.espeak_arpabet import to_arpabet
from processors.text.g2p import is_arpabet
from processors.text.lexicon import lookup


def test_stress_goes_to_the_vowel():
    assert to_arpabet(["h", "ə", "l", "ˈoʊ"]) == ("HH", "AH0", "L", "OW1")
    assert to_arpabet(["ˌaɪɚ", "n", "ˈɪ"]) == ("AY2", "ER0", "N", "IH1")


def test_a_word_without_stress_gets_one():
    assert to_arpabet(["ð", "ə"]) == ("DH", "AH1")


def test_phones_without_a_counterpart_give_none():
    assert to_arpabet(["ǃ", "a"]) is None
    assert to_arpabet([]) is None


@pytest.mark.parametrize(
    "word", ["bread", "house", "judge", "church", "thing", "measure", "boy", "voice", "yellow"]
)
def test_common_words_agree_with_cmudict(word):
    assert to_arpabet(speak("en-us", [word])[0]) == lookup(word)


def test_all_phones_espeak_says_in_english_are_mapped():
    words = "fire hour tour cure near air square bottle button rhythm father story orange queue"
    for phones in speak("en-us", words.split()):
        spoken = to_arpabet(phones)
        assert spoken is not None
        assert all(map(is_arpabet, spoken))
