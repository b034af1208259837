import pytest

from config.preprocess import PreprocessConfig
from config.text import TextConfig
from processors.text.frontend import TextFrontend
from processors.text.reading import TextReader
from processors.text.symbols import mark_name
from processors.text.voice_phones import VoicePhones, espeak_characters_vocabulary

CONFIG = TextConfig(phone_extractor="espeak_characters")


def symbols_of(text: str) -> list[str]:
    return [mark_name(char) for char in text]


@pytest.mark.parametrize(
    ("text", "spoken"),  # by phonemizer on the whole text, punctuation preserved
    [
        ("Hello, world.", "həlˈoʊ, wˈɜːld."), ("The end of the road", "ðɪ ˈɛnd ʌvðə ɹˈoʊd"),
        ('"Yes"; no!', '"jˈɛs"; nˈoʊ!'), ("It's a well-known house?", "ɪts ɐ wˈɛlnˈoʊn hˈaʊs?"),
        ("House {h ə l ˈoʊ}", "hˈaʊs həlˈoʊ"),
    ],
)  # fmt: skip
def test_a_text_is_its_characters_with_blanks_between_them(text, spoken):
    phones = TextFrontend(CONFIG, "en-us")(text).phones
    assert list(phones[1::2]) == symbols_of(spoken)
    assert set(phones[::2]) == {"<pad>"}
    assert len(espeak_characters_vocabulary().ids(phones)) == 2 * len(spoken) + 1


def test_words_have_the_spans_of_their_characters():
    read = TextFrontend(CONFIG, "en-us")("Hello, world.")
    for word, spoken in zip(read.words, ("həlˈoʊ", "wˈɜːld"), strict=True):
        assert list(read.phones[word.start : word.end : 2]) == symbols_of(spoken)
        assert read.phones[word.start - 1] == read.phones[word.end] == "<pad>"


def test_long_sentences_are_split_between_words():
    phones = VoicePhones(espeak_characters_vocabulary().symbols, "refuse")
    (clauses,) = TextReader(CONFIG, 20, phones)("One two three, four five six seven.", "en-us")
    assert len(clauses) > 1
    assert all(clause.phones[0] == clause.phones[-1] == "<pad>" for clause in clauses)


@pytest.mark.parametrize(
    ("aligner", "message"),
    [("hmm", "marks are not the pauses"), ("pocketsphinx", "gives the times of phones")],
)
def test_aligners_of_phones_are_refused(aligner, message):
    with pytest.raises(ValueError, match=message):
        PreprocessConfig(aligner=aligner, text=CONFIG)
