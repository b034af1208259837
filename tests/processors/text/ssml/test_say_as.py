import pytest

from processors.text.ssml.say_as import KINDS, say_as


@pytest.mark.parametrize(
    ("kind", "text", "format", "words"),
    [
        ("characters", "A1-b", "", "Ay one dash B"),
        ("characters", "xA", "", "X A"),
        ("digits", "0 12-3", "", "Zero one two three"),
        ("telephone", "+1 (555) 010-99", "", "Plus one, five five five, zero one zero, nine nine"),
        ("cardinal", "1,234", "", "One thousand two hundred thirty-four"),
        ("cardinal", "-007.5", "", "Minus seven point five"),
        ("ordinal", "22", "", "Twenty-second"),
        ("ordinal", "1st", "", "First"),
        ("time", "2:30pm", "", "Two thirty P M"),
        ("currency", "$42.01", "", "Forty-two dollars and one cent"),
        ("date", "2024-01-05", "", "January fifth, twenty twenty-four"),
        ("date", "5/1/2024", "dmy", "January fifth, twenty twenty-four"),
        ("date", "5/1/2024", "mdy", "May first, twenty twenty-four"),
        ("date", "12/1905", "my", "December, nineteen oh five"),
        ("date", "1999", "y", "Nineteen ninety-nine"),
    ],
)
def test_english_is_put_into_words(kind, text, format, words):
    spoken = say_as(kind, text, format, in_english=True)
    assert " ".join(spoken.split()) == words


@pytest.mark.parametrize(
    ("kind", "text", "spoken"),
    [
        ("characters", "aß", "A S S"),
        ("digits", "12", "1 2"),
        ("telephone", "030-12", "0 3 0, 1 2"),
        ("cardinal", "1,234", "1234"),
    ],
)
def test_other_languages_get_figures_that_espeak_reads(kind, text, spoken):
    assert say_as(kind, text, "", in_english=False) == spoken


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "characters"])
def test_a_text_of_another_kind_is_refused(kind):
    with pytest.raises(ValueError, match=f"'hello' is no {kind}"):
        say_as(kind, "hello", "", in_english=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("name", "Bo", ""), "'name'; expected characters, digits"),
        (("time", "2:30", "hms12"), "time has no format"),
        (("date", "5/13/2024", "dmy"), "'5/13/2024' is no date dmy"),
        (("date", "5/1", "dmy"), "is no date dmy"),
        (("date", "5/1", "dd"), "is no date dd"),
    ],
)
def test_unknown_kinds_and_formats_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        say_as(*arguments, in_english=True)
    with pytest.raises(ValueError, match="ordinal is for English only"):
        say_as("ordinal", "1", "", in_english=False)
