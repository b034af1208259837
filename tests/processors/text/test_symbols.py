import pytest

from processors.text.symbols import (
    ARPABET,
    MARKS,
    PAD,
    PAUSES,
    PUNCTUATION_PAUSES,
    Vocabulary,
    arpabet_vocabulary,
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
    assert Vocabulary.from_plain(vocabulary.to_plain()) == vocabulary


@pytest.mark.parametrize("symbols", [["a", PAD], [PAD, "a", "a"], []])
def test_malformed_lists_are_refused(symbols):
    with pytest.raises(InputError):
        Vocabulary(symbols)
