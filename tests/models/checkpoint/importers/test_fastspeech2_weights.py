import pytest

from models.checkpoint.importers._symbols import vocabulary_of
from processors.text.symbols import ARPABET, PAUSES

SAMPLES = {
    **{"AA": 64, "AA0": 65, "AE1": 70, "AH0": 73, "B": 88, "CH": 89, "ER2": 99, "IY1": 113},
    **{"NG": 120, "S": 131, "T": 133, "UW": 139, "ZH": 147},
    **{"<sp>": 148, "<spn>": 149, "<sil>": 150},
}


@pytest.mark.parametrize(("phone", "id"), SAMPLES.items())
def test_phones_have_the_ids_of_amphion(phone, id):
    assert vocabulary_of(152).ids([phone]) == [id]


def test_a_sentence_has_the_ids_of_amphion():
    phones = ["HH", "AH0", "L", "OW1", "<sp>", "W", "ER1", "L", "D"]
    assert vocabulary_of(152).ids(phones) == [106, 73, 117, 123, 148, 144, 98, 117, 90]


def test_pinyin_moves_the_silences_and_nothing_else():
    with_pinyin, without = vocabulary_of(361), vocabulary_of(152)
    assert with_pinyin.ids(["<sp>", "<spn>", "<sil>"]) == [357, 358, 359]
    assert with_pinyin.symbols[:148] == without.symbols[:148]


@pytest.mark.parametrize("n_rows", [152, 361])
def test_no_character_or_syllable_can_be_taken_for_a_phone(n_rows):
    vocabulary = vocabulary_of(n_rows)
    assert len(vocabulary) == n_rows
    others = set(vocabulary.symbols) - set(ARPABET)
    assert set(ARPABET) < set(vocabulary.symbols)
    assert all(name.startswith("<") and name.endswith(">") for name in others)
    assert others & set(PAUSES) == {"<sp>", "<sil>"}  # no row is a class of punctuation


@pytest.mark.parametrize("n_rows", [0, 151, 153, 360])
def test_other_tables_are_not_guessed_at(n_rows):
    assert vocabulary_of(n_rows) is None
