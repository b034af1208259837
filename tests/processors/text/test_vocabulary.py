import pytest

from config.text import TextConfig
from processors.text.letters.nvidia import nvidia_vocabulary
from processors.text.symbols import MARKS, arpabet_vocabulary
from processors.text.vocabulary import model_vocabulary


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
