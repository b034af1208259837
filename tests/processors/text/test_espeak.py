import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from processors.text.espeak import EspeakPhonemizer, is_ipa, share_phones
from utils.errors import InputError

SENTENCES = [
    "the quick brown fox jumps over the lazy dog", "she sells sea shells by the sea shore",
    "in the middle of the night 25 owls were awake", "how much wood would a woodchuck chuck",
]  # fmt: skip


def speak(language: str, words: list[str]) -> list[tuple[str, ...]]:
    return [said.phones for said in EspeakPhonemizer(language)(words)]


def test_phones_are_those_of_the_clause_and_words_keep_theirs_where_espeak_joins_or_parts_them():
    spoken = speak("en-us", ["of", "the", "world", "in", "the", "house"])
    expected = "ʌ v|ð ə|w ˈɜː l d|ɪ n|ð ə|h ˈaʊ s"
    assert "|".join(" ".join(phones) for phones in spoken) == expected
    before, number, after = speak("de", ["um", "25", "Uhr"])
    assert (before, "".join(number), after) == (("ʊ", "m"), "fˈʏnfʊnttsvˈantsɪç", ("ˈuː", "ɾ"))
    joined = [phone for word in speak("fr-fr", ["les", "amis"]) for phone in word]
    assert joined == ["l", "e", "z", "a", "m", "ˈi"]  # the liaison z is said in a clause only


@pytest.mark.parametrize("language", ["en-us", "en-gb", "de", "fr-fr", "nl", "es", "it"])
def test_every_word_has_ipa_phones(language):
    words = ["la", "casa", "de", "12", "an", "of", "the", "in", "un", "le", "'x", "well-known"]
    words += ["des", "amis"]
    spoken = speak(language, words)
    assert len(spoken) == len(words)
    assert [phones for phones in spoken if not phones or not all(map(is_ipa, phones))] == []


def test_symbols_of_ipa_are_told_from_others():
    assert all(map(is_ipa, ["a", "ˈoʊ", "tʃ", "ɑ̃", "ˌiː", "i.5", "n̩", "ç", "ᵻ", "ˌä"]))
    assert not any(map(is_ipa, ["", "AH0", "ˈ", "<.>", "5", "%", "a b", "п"]))


def test_signs_without_a_word_in_a_language_are_known():
    assert [sign for sign in "%=√" if EspeakPhonemizer("de").reads(sign)] == ["%", "=", "√"]
    assert [sign for sign in "%=√" if EspeakPhonemizer("ar").reads(sign)] == []


def test_the_users_lexicon_comes_first():
    phonemizer = EspeakPhonemizer("en-us", {"gif": ("dʒ", "ˈɪ", "f")})
    assert phonemizer(["a", "GIF"])[1].phones == ("dʒ", "ˈɪ", "f")


def test_four_threads_give_what_one_gives():
    expected = [speak("en-us", sentence.split()) for sentence in SENTENCES]

    def work(_: int):
        return [speak("en-us", sentence.split()) for _ in range(10) for sentence in SENTENCES]

    with ThreadPoolExecutor(4) as pool:
        for spoken in pool.map(work, range(4)):
            assert spoken == expected * 10


@pytest.mark.parametrize(
    ("language", "nearest"), [("fr", "fr-fr"), ("en", "en-us"), ("german", "de"), ("qq", "sq")]
)
def test_an_unknown_language_names_its_neighbours(language, nearest):
    with pytest.raises(
        InputError, match=rf"no language '{language}'; (nearest:|it has) .*\b{nearest}\b"
    ):
        EspeakPhonemizer(language)


def test_a_missing_package_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(InputError, match=r"pip install 'phonemizer>=3\.4' espeakng-loader"):
        EspeakPhonemizer("sv")


@pytest.mark.parametrize(
    ("words", "groups", "alone", "shared"),
    [
        ("x y", "a|b c", "a|b d", "a|b c"),  # groups that match words one to one are kept
        ("of the cat", "ʌ v ð ə|k ˈæ t", "ˈʌ v|ð ˈə|k ˈæ t", "ʌ v|ð ə|k ˈæ t"),
        ("have been", "h ɐ v b ɪ n", "h ˈæ v|b ˈiː n", "h ɐ v|b ɪ n"),  # reduced vowels
        ("25 owls", "t w ɛ|f aɪ v|aʊ l z", "t w ɛ f aɪ v|aʊ l z", "t w ɛ f aɪ v|aʊ l z"),
        ("25 of the", "t w|f v|ʌ v ð ə", "t w f v|ʌ v|ð ə", "t w f v|ʌ v|ð ə"),
        ("x y z", "a b k t", "a b|h|k t", "a b|h|k t"),  # no word is left without phones
        ("p q", "a b|x|c d", "a b|c d", "a b x|c d"),
        ("p q", "a", "|", "|"),  # words that espeak never says stay empty
        ("p q", "", "a|b", "a|b"),
    ],
)
def test_phones_of_a_clause_are_shared_where_its_words_meet(words, groups, alone, shared):
    given, single, expected = (
        [tuple(group.split()) for group in row.split("|")] for row in (groups, alone, shared)
    )
    assert share_phones(words.split(), [group for group in given if group], single) == expected
