import pytest

from processors.text.g2p import is_arpabet, lookup
from processors.text.symbols import MARKS, PAUSES, to_arpabet
from processors.text.voice_phones import arpabet_vocabulary
from tests.processors.text.test_espeak import speak


def test_marks_of_other_texts_are_pauses_and_in_no_vocabulary_of_phones():
    others = set(PAUSES) - set(MARKS)
    assert others == {
        *("<space>", "<->", '<">', "<(>", "<)>", "<:>", "<;>", "<eos>"),
        *("<¡>", "<¿>", "<—>", "<…>", "<«>", "<»>", "<“>", "<”>"),
    }
    assert MARKS == ("<pad>", "<sil>", "<sp>", "<,>", "<.>", "<?>", "<!>", "<spn>")
    assert not others & set(arpabet_vocabulary().symbols)


@pytest.mark.parametrize(
    ("ipa", "arpabet"),
    [
        ("h ə l ˈoʊ", "HH AH0 L OW1"), ("ˌaɪɚ n ˈɪ", "AY2 ER0 N IH1"), ("ð ə", "DH AH1"),
        ("ǃ a", None), ("", None),
    ],
)  # fmt: skip
def test_phones_of_espeak_become_arpabet_with_a_stress(ipa, arpabet):
    assert to_arpabet(ipa.split()) == (arpabet and tuple(arpabet.split()))


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
