import pytest

from processors.text.ssml.phonemes import phones_of
from processors.text.symbols import ARPABET

IPA = ("t", "ə", "m", "ˈɑː", "oʊ", "tʃ", "n", "ˈuː", "ŋ")


@pytest.mark.parametrize(
    ("pronunciation", "phones"),
    [
        ("təˈmɑːtoʊ", "T AH0 M AA1 T OW0"),
        ("tə.ˈmeɪ.ˌt͡ʃoʊ", "T AH0 M EY1 CH OW2"),
        ("h ə l ˈoʊ", "HH AH0 L OW1"),
    ],
)
def test_ipa_becomes_arpabet_with_stress_at_the_vowel(pronunciation, phones):
    assert " ".join(phones_of(pronunciation, "ipa", in_ipa=False, known=ARPABET)) == phones


def test_ipa_is_split_into_the_phones_of_a_voice():
    phones = phones_of("təˈmɑːtoʊtʃõ", "ipa", in_ipa=True, known=IPA)
    assert phones == ("t", "ə", "m", "ˈɑː", "t", "oʊ", "tʃ", "õ")


def test_arpabet_is_kept_or_becomes_the_nearest_phones_of_a_voice():
    given = "T AH0 M AA1 CH"
    for alphabet in ("arpabet", "x-arpabet"):
        assert phones_of(given, alphabet, in_ipa=False, known=ARPABET) == tuple(given.split())
    assert phones_of(given, "arpabet", in_ipa=True, known=IPA) == ("t", "ə", "m", "ˈɑː", "tʃ")


@pytest.mark.parametrize(
    ("pronunciation", "alphabet", "message"),
    [
        ("T", "sampa", "alphabet 'sampa'; expected ipa or arpabet"),
        ("T QQ", "arpabet", "no phone of ARPAbet: QQ"),
        ("ʘa", "ipa", "no sound of English: ʘ"),
        ("...", "ipa", "no phone"),
    ],
)
def test_other_phones_are_refused(pronunciation, alphabet, message):
    with pytest.raises(ValueError, match=message):
        phones_of(pronunciation, alphabet, in_ipa=False, known=ARPABET)
