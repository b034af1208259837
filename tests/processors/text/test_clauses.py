import pytest

from config.text import TextConfig
from processors.text.clauses import ClauseSplitter, Prosody, Run, cut_runs
from utils.errors import InputError


def test_runs_are_cut_where_their_text_is_and_no_character_is_lost():
    runs = [Run("One. Tw"), Run("", mark="m"), Run("o", shown="2"), Run(" \n"), Run("b c", "x")]
    first, second, third = cut_runs(runs, ["One.", "Two b", "c"])
    assert first == [Run("One. ")]
    assert second == [Run("Tw"), Run("", mark="m"), Run("o", "2"), Run(" \n"), Run("b ", "x")]
    assert third == [Run("c", "")]  # it is shown once


def test_a_break_at_a_cut_goes_with_what_follows_and_at_the_end_with_the_last():
    first, second = cut_runs(
        [Run("a"), Run("", break_s=1), Run("b"), Run("", mark="m")], ["a", "b"]
    )
    assert first == [Run("a")]
    assert second == [Run("", break_s=1), Run("b"), Run("", mark="m")]


def test_nested_prosody_multiplies():
    assert Prosody(2, 0.5, 3).times(Prosody(2, 4, 0.5)) == Prosody(4, 2, 1.5)


@pytest.mark.parametrize("languages", [["en-us", "de"], ["en-us", "de", "en-us"]])
def test_a_script_without_phones_is_named_with_the_languages_of_the_voice(languages):
    split = ClauseSplitter(TextConfig(), 60, languages=languages)
    with pytest.raises(
        InputError,
        match=r"^'П' \(CYRILLIC CAPITAL LETTER PE\): the voice has no phones for this script; it"
        " speaks en-us, de$",
    ):
        split("Hello. Привет!", "en-us")
