import pytest

from processors.text.markup import values
from processors.text.markup.values import MEANINGS, say_as
from processors.text.pronunciations import phones_of
from processors.text.symbols import ARPABET
from utils.errors import InputError


@pytest.mark.parametrize(
    ("attribute", "factor", "expected"),
    [
        ("rate", "duration", {"50%": 2, "+25%": 0.8, "-20%": 1.25, "slow": 4 / 3, "default": 1}),
        ("pitch", "pitch", {"+12st": 2, "-12st": 0.5, "+10%": 1.1, "-.5%": 0.995, "x-low": 0.75}),
        ("volume", "gain", {"+6.0206dB": 2, "-20dB": 0.1, "silent": 0, "soft": 0.5012, "0dB": 1}),
    ],
)
def test_values_of_prosody_become_factors(attribute, factor, expected):
    factors = {text: getattr(values.prosody(attribute, text), factor) for text in expected}
    assert factors == pytest.approx(expected, abs=1e-4)


def test_breaks_are_in_seconds():
    expected = {"1.5s": 1.5, "300ms": 0.3, "0s": 0, ".5s": 0.5}
    assert {text: values.break_s("time", text) for text in expected} == expected
    expected = {"none": 0, "medium": 0.5, "x-strong": 1}
    assert {text: values.break_s("strength", text) for text in expected} == expected


@pytest.mark.parametrize(
    ("attribute", "text", "expected"),
    [
        ("rate", "0%", "'0%'; expected x-slow, slow, .*80%"), ("rate", "-100%", "-100%"),
        ("rate", "-150%", "'-150%'; expected x-slow, .*80%"),
        ("pitch", "-150%", "'-150%'; expected x-low"), ("rate", "quick", "quick"),
        ("pitch", "200Hz", r"'200Hz'; expected x-low, .*\+10% or -2st"),
        ("pitch", "110%", "a change"), ("volume", "+21dB", "-60dB to .20dB"),
        ("volume", "nan", "expected silent"), ("level", "huge", "expected strong, moderate"),
        ("strength", "long", "expected none, x-weak"), ("time", "11s", "up to 10s"),
        ("time", "-1s", "a time"), ("time", "1", "a time"),
    ],
)  # fmt: skip
def test_other_values_are_refused_with_what_is_expected(attribute, text, expected):
    read = values.break_s if attribute in ("time", "strength") else values.prosody
    with pytest.raises(InputError, match=expected):
        read(attribute, text)


@pytest.mark.parametrize(
    ("kind", "text", "format", "words"),
    [
        ("characters", "A1-b", "", "Ay one dash B"), ("characters", "xA", "", "X A"),
        ("digits", "0 12-3", "", "Zero one two three"),
        ("telephone", "+1 (555) 010-99", "", "Plus one, five five five, zero one zero, nine nine"),
        ("cardinal", "1,234", "", "One thousand two hundred thirty-four"),
        ("cardinal", "-007.5", "", "Minus seven point five"),
        ("ordinal", "22", "", "Twenty-second"), ("ordinal", "1st", "", "First"),
        ("time", "2:30pm", "", "Two thirty P M"),
        ("currency", "$42.01", "", "Forty-two dollars and one cent"),
        ("date", "2024-01-05", "", "January fifth, twenty twenty-four"),
        ("date", "5/1/2024", "dmy", "January fifth, twenty twenty-four"),
        ("date", "5/1/2024", "mdy", "May first, twenty twenty-four"),
        ("date", "12/1905", "my", "December, nineteen oh five"),
        ("date", "1999", "y", "Nineteen ninety-nine"),
    ],
)  # fmt: skip
def test_english_is_put_into_words(kind, text, format, words):
    spoken = say_as(kind, text, format, in_english=True)
    assert " ".join(spoken.split()) == words


@pytest.mark.parametrize(
    ("kind", "text", "spoken"),
    [
        ("characters", "aß", "A S S"), ("digits", "12", "1 2"),
        ("telephone", "030-12", "0 3 0, 1 2"), ("cardinal", "1,234", "1234"),
    ],
)  # fmt: skip
def test_other_languages_get_figures_that_espeak_reads(kind, text, spoken):
    assert say_as(kind, text, "", in_english=False) == spoken


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(((kind, "hello", ""), f"'hello' is no {kind}") for kind in MEANINGS[1:]),
        (("name", "Bo", ""), "'name'; expected characters, digits"),
        (("time", "2:30", "hms12"), "time has no format"),
        (("date", "5/13/2024", "dmy"), "'5/13/2024' is no date dmy"),
        (("date", "5/1", "dmy"), "is no date dmy"),
        (("date", "5/1", "dd"), "is no date dd"),
    ],
)
def test_other_texts_and_unknown_kinds_and_formats_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        say_as(*arguments, in_english=True)
    with pytest.raises(InputError, match="ordinal is for English only"):
        say_as("ordinal", "1", "", in_english=False)


IPA = ("t", "ə", "m", "ˈɑː", "oʊ", "tʃ", "n", "ˈuː", "ŋ")


@pytest.mark.parametrize(
    ("pronunciation", "alphabet", "voice", "phones"),
    [
        ("təˈmɑːtoʊ", "ipa", ARPABET, "T AH0 M AA1 T OW0"),  # with stress at the vowel
        ("tə.ˈmeɪ.ˌt͡ʃoʊ", "ipa", ARPABET, "T AH0 M EY1 CH OW2"),
        ("h ə l ˈoʊ", "ipa", ARPABET, "HH AH0 L OW1"),
        ("təˈmɑːtoʊtʃõ", "ipa", IPA, "t ə m ˈɑː t oʊ tʃ õ"),
        ("T AH0 M AA1 CH", "arpabet", ARPABET, "T AH0 M AA1 CH"),
        ("T AH0 M AA1 CH", "x-arpabet", ARPABET, "T AH0 M AA1 CH"),
        ("T AH0 M AA1 CH", "arpabet", IPA, "t ə m ˈɑː tʃ"),  # the nearest
    ],
)
def test_pronunciations_are_written_in_the_phones_of_a_voice(
    pronunciation, alphabet, voice, phones
):
    said = phones_of(pronunciation, alphabet, in_ipa=voice is IPA, known=voice)
    assert " ".join(said) == phones


@pytest.mark.parametrize(
    ("pronunciation", "alphabet", "message"),
    [
        ("T", "sampa", "alphabet: 'sampa'; expected ipa, arpabet"),
        ("T QQ", "arpabet", "no phone of ARPAbet: QQ"),
        ("ʘa", "ipa", "no sound of English: ʘ"),
        ("...", "ipa", "no phone"),
    ],
)
def test_other_phones_are_refused(pronunciation, alphabet, message):
    with pytest.raises(InputError, match=message):
        phones_of(pronunciation, alphabet, in_ipa=False, known=ARPABET)
