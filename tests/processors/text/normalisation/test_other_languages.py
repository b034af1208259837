import pytest

from processors.text.normalisation.other_languages import name_signs
from processors.text.tokens import clean_characters


@pytest.mark.parametrize(
    ("language", "text", "spoken"),
    [
        ("de", "5-10 Grad", "5 bis 10 Grad"),
        ("de", "5 – 10 °C, 1,5-2 m", "5 bis 10 °C, 1,5 bis 2 m"),
        ("fr-fr", "de 1914-1918.", "de 1914 à 1918."), ("nl", "3-4 km", "3 tot 4 km"),
        ("de", "-5 Grad", "minus 5 Grad"), ("de", "um \u22125 °C", "um minus 5 °C"),
        ("de", "–5 Grad", "minus 5 Grad"), ("de", "10^-3 m", "10 hoch minus 3 m"),
        ("de", "10⁻³ m", "10 hoch minus 3 m"), ("de", "10⁶", "10 hoch 6"),
        ("fr-fr", "(-0,5 = x)", "( moins 0,5 égale x)"), ("es", "1e-5", "1e menos 5"),
        ("ar", "5%", "5 بالمئة"), ("ja", "-5°C", "マイナス 5 度 C"),
    ],
)  # fmt: skip
def test_signs_become_words_of_the_language(language, text, spoken):
    assert name_signs(clean_characters(text), language) == spoken


@pytest.mark.parametrize(
    "text",
    [
        "2:1-3:1", "2024-01-05", "0711-4567", "3-2", "Jean-5", "B-5-10", "A5-7", "5-10-15",
        "5-10fach", "a - b", "well-known", "5 %",
    ],
)  # fmt: skip
def test_hyphens_dashes_and_signs_that_espeak_reads_are_left_alone(text):
    assert name_signs(clean_characters(text), "de") == text


def test_a_minus_without_a_word_is_left_to_espeak():
    assert name_signs("-5", "xx") == "\u22125"
