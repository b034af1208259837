import pytest

from config.text import TextConfig
from processors.text.espeak import speak
from processors.text.g2p import is_arpabet, lookup
from processors.text.symbols import (
    ARPABET,
    MARKS,
    PAD,
    PAUSES,
    PUNCTUATION_PAUSES,
    Vocabulary,
    arpabet_vocabulary,
    model_vocabulary,
    nvidia_vocabulary,
    to_arpabet,
    vocabulary_of,
)
from utils.errors import InputError


def test_arpabet_has_24_consonants_and_15_vowels_in_four_stresses():
    assert len(ARPABET) == len(set(ARPABET)) == 24 + 15 * 4
    assert {"AH", "AH0", "AH1", "AH2", "NG"} <= set(ARPABET)


def test_arpabet_vocabulary_pads_with_id_zero_and_holds_every_mark():
    vocabulary = arpabet_vocabulary()
    assert vocabulary.ids([PAD]) == [0]
    assert len(vocabulary) == len(MARKS) + 84
    assert {*PUNCTUATION_PAUSES, "<sil>", "<sp>"} < set(MARKS) < set(vocabulary.symbols)


def test_marks_of_other_texts_are_pauses_and_in_no_vocabulary_of_phones():
    others = set(PAUSES) - set(MARKS)
    assert others == {"<space>", "<->", '<">', "<(>", "<)>", "<:>", "<;>", "<eos>"}
    assert MARKS == ("<pad>", "<sil>", "<sp>", "<,>", "<.>", "<?>", "<!>", "<spn>")
    assert not others & set(arpabet_vocabulary().symbols)


def test_ids_are_places_in_the_list():
    vocabulary = vocabulary_of(["b", "a", "<sil>", "b"])
    assert vocabulary.symbols == (*MARKS, "a", "b")
    assert vocabulary.ids(["b", "a"]) == [len(MARKS) + 1, len(MARKS)]


def test_unknown_phones_are_named():
    with pytest.raises(InputError, match="phones QQ XX are not among the 92 symbols"):
        arpabet_vocabulary().ids(["AA1", "XX", "QQ"])


def test_plain_list_round_trips():
    vocabulary = vocabulary_of("xyz")
    assert Vocabulary(vocabulary.to_plain()) == vocabulary


@pytest.mark.parametrize("symbols", [["a", PAD], [PAD, "a", "a"], []])
def test_malformed_lists_are_refused(symbols):
    with pytest.raises(InputError):
        Vocabulary(symbols)


@pytest.mark.parametrize(
    ("extractor", "symbols"),
    [
        ("lexicon", (*arpabet_vocabulary().symbols, "a", "ø")),
        ("espeak", (*MARKS, "AA1", "a", "ø")),
        ("letters", (*MARKS, "<space>", "AA1", "a", "ø")),
        ("mixed", (*arpabet_vocabulary().symbols, "<space>", "a", "ø")),
        ("nvidia_english", nvidia_vocabulary("nvidia_english").symbols),
    ],
)
def test_a_vocabulary_has_fixed_symbols_first_and_then_those_of_the_data(extractor, symbols):
    text = TextConfig(phone_extractor=extractor)
    assert model_vocabulary(text, {"ø", "a", "AA1", "<sil>"}).symbols == symbols


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
