import pytest

from processors.text.tokens import clean_characters, is_sign, is_word, split_inline, tokenize
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


def test_control_and_format_characters_are_stripped():
    assert clean_characters("a\x00b\u200b c\u202e\td\n\ue000") == "ab c d"
    assert clean_characters("\ud800lone surrogate") == "lone surrogate"


def test_fractions_do_not_melt_into_the_number_before():
    assert clean_characters("1½ and 2¾") == "1 1/2 and 2 3/4"


def test_powers_do_not_melt_into_their_base():
    assert clean_characters("10⁶, 10⁻³ and m²") == "10^6, 10^-3 and m^2"


def test_a_minus_sign_is_told_from_a_hyphen_and_a_dash():
    assert clean_characters("\u22125, 7\u22122, –3") == "\u2212 5, 7 \u2212 2, \u2212 3"
    assert clean_characters("5–10 – so") == "5–10 – so"


def test_variants_of_a_sign_are_stripped():
    assert clean_characters("❤️ 5️⃣ 👍🏽") == "❤ 5 👍"
