import sys
import time

import pytest

from processors.text.normalisation.english import normalise_english
from processors.text.normalisation.foreign import in_latin, name_signs, to_ascii_letters
from processors.text.tokens import clean_characters
from utils.errors import InputError, ScriptError


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("naïve", "nah-eve"), ("Naïveté", "Nah-eve-tay"), ("résumés", "rezuhmays"),
        ("resume", "resume"), ("rosé", "rozay"),
        ("exposé", "exposay"),  # CMUdict has the verb
        ("passé", "passe"),  # and this word as it is said
        ("café", "cafe"), ("fiancées", "fiancees"), ("née", "nay"), ("jalapeño", "hahlapainyo"),
        ("piñata", "pinyata"), ("façade", "facade"), ("über", "oober"), ("Göring", "Goering"),
        ("coöperate", "cooperate"), ("CAFÉ", "CAFE"),
        ("Čapek, Æsop, straße, Zoë", "Capek, Aesop, strasse, Zoe"),
    ],
)  # fmt: skip
def test_a_word_with_accents_is_written_as_english_speakers_say_it(word, written):
    assert to_ascii_letters(word) == written
    # words of a lexicon only lose their accents
    assert to_ascii_letters("résumé rosé", own_words={"resume"}) == "resume rozay"


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("the ratio π", "the ratio pi"), ("2πr²", "two pi r squared"),
        ("Δx and ΔT", "delta x and delta T"), ("sinθ", "sin theta"),
        ("α-helix, µ, Λ, ς", "alpha helix, mu, lambda, sigma"), ("ΦΒΚ", "phi beta kappa"),
        ("5 μm and 10 Ω", "five micrometers and ten ohms"), ("λόγος", "logos"), ("Ωmega", "Omega"),
        ("习近平 in 北京", "Xi Jin Ping in Beijing"), ("Путин, 서울", "Putin, Seoul"),
        ("iPhone手机", "iPhone Shou Ji"), ("∀x ∈ S", "for all x in S"), ("ɡʊd", "gud"),
    ],
)  # fmt: skip
def test_symbols_are_named_and_words_of_other_scripts_transliterated(text, spoken):
    assert normalise_english(text, unknown="speak") == spoken


def test_other_scripts_are_left_out_or_refused_where_that_is_asked_for():
    assert normalise_english("Ωmega, 习 and π", unknown="skip") == "mega, and"
    with pytest.raises(ScriptError, match=r"'π' \(GREEK SMALL LETTER PI\) is not a letter of Eng"):
        normalise_english("the π")
    with pytest.raises(ScriptError, match=r"set inference\.unknown_characters to speak, or skip"):
        normalise_english("习")


def test_without_the_package_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "anyascii", None)
    with pytest.raises(InputError, match="'дача': other scripts need a package: pip install anya"):
        in_latin("дача")


@pytest.mark.parametrize(
    "text", ["a" * 100_000 + " é", "5 μ " * 20_000, "α" * 50_000, "é." * 20_000]
)
def test_the_time_grows_with_the_length(text):
    start = time.process_time()
    to_ascii_letters(text, "speak")
    assert time.process_time() - start < 2  # quadratic: over 10 s


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
        ("xx", "-5", "\u22125"),  # left to espeak
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
