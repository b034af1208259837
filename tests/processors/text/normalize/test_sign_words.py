import pytest

from processors.text.normalize import clean_characters
from processors.text.normalize.sign_words import name_signs


@pytest.mark.parametrize(
    ("language", "text", "spoken"),
    [
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


@pytest.mark.parametrize("text", ["5-10 km", "2024-01-05", "Jean-5", "a - b", "well-known", "5 %"])
def test_hyphens_dashes_and_signs_that_espeak_reads_are_left_alone(text):
    assert name_signs(clean_characters(text), "de") == text


def test_a_minus_without_a_word_is_left_to_espeak():
    assert name_signs("-5", "xx") == "\u22125"
