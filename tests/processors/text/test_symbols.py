import pytest

from processors.text.g2p import is_arpabet, lookup
from processors.text.symbols import ARPABET, MARKS, PAUSES, to_arpabet
from processors.text.voice_phones import (
    arpabet_vocabulary,
)
from tests.processors.text.test_espeak import speak


def test_arpabet_has_24_consonants_and_15_vowels_in_four_stresses():
    assert len(ARPABET) == len(set(ARPABET)) == 24 + 15 * 4
    assert {"AH", "AH0", "AH1", "AH2", "NG"} <= set(ARPABET)


def test_marks_of_other_texts_are_pauses_and_in_no_vocabulary_of_phones():
    others = set(PAUSES) - set(MARKS)
    assert others == {
        *("<space>", "<->", '<">', "<(>", "<)>", "<:>", "<;>", "<eos>"),
        *("<¡>", "<¿>", "<—>", "<…>", "<«>", "<»>", "<“>", "<”>"),
    }
    assert MARKS == ("<pad>", "<sil>", "<sp>", "<,>", "<.>", "<?>", "<!>", "<spn>")
    assert not others & set(arpabet_vocabulary().symbols)


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
