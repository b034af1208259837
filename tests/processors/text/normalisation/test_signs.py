import pytest

from processors.text.normalisation.signs import has_name, say_signs, tidy_punctuation


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
