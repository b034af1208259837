import pytest

from processors.text.tokens import clean_characters, is_sign, kind_of, split_inline, tokenize
from utils.errors import InputError


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Well, yes: it's well-known. Really?", "Well <,> yes <,> it's well-known <.> Really <?>"),
        ("What?!, he (she) ...", "What <?> he <,> she <.>"),  # the strongest pause stays
        ("a | b|c", "a <,> b <,> c"),
        ('a - b – c \' d "e"', "a <,> b <,> c d e"),
        ("3,50 € um 12:30, 5.", "3,50 € um 12:30 <,> 5 <.>"),
        ("नमस्ते दुनिया।", "नमस्ते दुनिया <.>"),  # with its vowel signs
        ("你好、世界。", "你好 <,> 世界 <.>"),
    ],
)
def test_text_is_split_into_words_and_pauses(text, tokens):
    assert [token.text for token in tokenize(text)] == tokens.split()


def test_inline_phones_are_cut_out():
    assert split_inline("say {T AH0} now") == [(False, "say "), (True, "T AH0"), (False, " now")]


@pytest.mark.parametrize("text", ["{HH", "HH}", "{a {b} c}", "{ }"])
def test_unbalanced_or_empty_braces_are_refused(text):
    with pytest.raises(InputError, match="HH AH0 L OW1"):
        split_inline(text)


def test_signs_are_neither_letters_nor_punctuation():
    assert [char for char in "a5-.,'|/%+€😀" if is_sign(char)] == ["%", "+", "€", "😀"]
    assert [char for char in "a%😀." if kind_of(char) == "word"] == ["a", "%"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\x00b\u200b c\u202e\td\n\ue000", "ab c d"), ("\ud800lone surrogate", "lone surrogate"),
        ("1½ and 2¾", "1 1/2 and 2 3/4"), ("10⁶, 10⁻³ and m²", "10^6, 10^-3 and m^2"),
        ("\u22125, 7\u22122, –3", "\u2212 5, 7 \u2212 2, \u2212 3"),  # minus, not hyphen or dash
        ("5–10 – so", "5–10 – so"), ("❤️ 5️⃣ 👍🏽", "❤ 5 👍"),
    ],
)  # fmt: skip
def test_characters_have_one_form(text, clean):
    assert clean_characters(text) == clean
