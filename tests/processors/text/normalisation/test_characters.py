import pickle

import pytest

from processors.text.normalisation.characters import (
    OtherScriptError,
    apply,
    clean_characters,
    has_name,
    name_signs,
    rule,
    say_signs,
    tidy_punctuation,
    to_ascii_letters,
)


def test_rules_are_applied_in_order_and_know_only_ascii_digits():
    rules = (rule(r"a", "b"), rule(r"b(\d)", lambda match: f"<{match[1]}>"))
    assert apply(rules, "a1 b2 a٣") == "<1> <2> b٣"


def test_control_and_format_characters_are_stripped():
    assert clean_characters("a\x00b\u200b c\u202e\td\n\ue000") == "ab c d"
    assert clean_characters("\ud800lone surrogate") == "lone surrogate"


def test_fractions_do_not_melt_into_the_number_before():
    assert clean_characters("1½ and 2¾") == "1 1/2 and 2 3/4"


def test_accents_go_and_ligatures_part():
    assert to_ascii_letters("Čapek, naïve, Æsop, straße") == "Capek, naive, Aesop, strasse"


def test_powers_do_not_melt_into_their_base():
    assert clean_characters("10⁶, 10⁻³ and m²") == "10^6, 10^-3 and m^2"


def test_a_minus_sign_is_told_from_a_hyphen_and_a_dash():
    assert clean_characters("\u22125, 7\u22122, –3") == "\u2212 5, 7 \u2212 2, \u2212 3"
    assert clean_characters("5–10 – so") == "5–10 – so"


def test_variants_of_a_sign_are_stripped():
    assert clean_characters("❤️ 5️⃣ 👍🏽") == "❤ 5 👍"


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("bread & butter", "bread and butter"),
        ('(so) "quoted"...', "so, quoted."),
        ("wait -- what?!", "wait, what?"),
        ("x = 2", "x equals 2"),
    ],
)
def test_signs_are_said_and_marks_are_tidied(text, spoken):
    assert tidy_punctuation(say_signs(text)) == spoken


def test_emoji_and_arrows_have_no_name():
    assert [sign for sign in "%=−~😀→" if not has_name(sign)] == ["😀", "→"]


@pytest.mark.parametrize(
    ("language", "text", "spoken"),
    [
        ("de", "5-10 Grad", "5 bis 10 Grad"),
        ("de", "5 – 10 °C, 1,5-2 m", "5 bis 10 °C, 1,5 bis 2 m"),
        ("fr-fr", "de 1914-1918.", "de 1914 à 1918."),
        ("nl", "3-4 km", "3 tot 4 km"),
        ("de", "-5 Grad", "minus 5 Grad"),
        ("de", "um \u22125 °C", "um minus 5 °C"),
        ("de", "–5 Grad", "minus 5 Grad"),
        ("de", "10^-3 m", "10 hoch minus 3 m"),
        ("de", "10⁻³ m", "10 hoch minus 3 m"),
        ("de", "10⁶", "10 hoch 6"),
        ("fr-fr", "(-0,5 = x)", "( moins 0,5 égale x)"),
        ("es", "1e-5", "1e menos 5"),
        ("ar", "5%", "5 بالمئة"),
        ("ja", "-5°C", "マイナス 5 度 C"),
    ],
)
def test_signs_become_words_of_the_language(language, text, spoken):
    assert name_signs(clean_characters(text), language) == spoken


@pytest.mark.parametrize(
    "text",
    [
        "2:1-3:1",
        "2024-01-05",
        "0711-4567",
        "3-2",
        "Jean-5",
        "B-5-10",
        "A5-7",
        "5-10-15",
        "5-10fach",
        "a - b",
        "well-known",
        "5 %",
    ],
)
def test_hyphens_dashes_and_signs_that_espeak_reads_are_left_alone(text):
    assert name_signs(clean_characters(text), "de") == text


def test_a_minus_without_a_word_is_left_to_espeak():
    assert name_signs("-5", "xx") == "\u22125"


def test_the_error_of_another_script_comes_whole_out_of_a_process():
    error = OtherScriptError("'П' (CYRILLIC CAPITAL LETTER PE)")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.letter) == (str(error), error.letter)
