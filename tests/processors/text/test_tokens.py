import pytest

from processors.text.tokens import is_sign, is_word, split_inline, tokenize
from utils.errors import InputError


def tokens(text):
    return [token.text for token in tokenize(text)]


def test_words_and_pauses():
    assert tokens("Well, yes: it's well-known. Really?") == [
        *("Well", "<,>", "yes", "<,>", "it's", "well-known", "<.>", "Really", "<?>")
    ]


def test_of_neighbouring_pauses_the_strongest_stays():
    assert tokens("What?!, he (she) ...") == ["What", "<?>", "he", "<,>", "she", "<.>"]


def test_a_bar_is_a_pause_like_a_dash():
    assert tokens("a | b|c") == ["a", "<,>", "b", "<,>", "c"]


def test_dashes_alone_are_pauses_and_quotes_nothing():
    assert tokens('a - b – c \' d "e"') == ["a", "<,>", "b", "<,>", "c", "d", "e"]


def test_marks_inside_numbers_belong_to_them():
    assert tokens("3,50 € um 12:30, 5.") == ["3,50", "€", "um", "12:30", "<,>", "5", "<.>"]


def test_words_of_other_scripts_keep_their_vowel_signs():
    assert tokens("नमस्ते दुनिया।") == ["नमस्ते", "दुनिया", "<.>"]
    assert tokens("你好、世界。") == ["你好", "<,>", "世界", "<.>"]


def test_inline_phones_are_cut_out():
    assert split_inline("say {T AH0} now") == [(False, "say "), (True, "T AH0"), (False, " now")]


@pytest.mark.parametrize("text", ["{HH", "HH}", "{a {b} c}", "{ }"])
def test_unbalanced_or_empty_braces_are_refused(text):
    with pytest.raises(InputError, match="HH AH0 L OW1"):
        split_inline(text)


def test_signs_are_neither_letters_nor_punctuation():
    assert [char for char in "a5-.,'|/%+€😀" if is_sign(char)] == ["%", "+", "€", "😀"]
    assert [char for char in "a%😀." if is_word(char)] == ["a", "%"]
