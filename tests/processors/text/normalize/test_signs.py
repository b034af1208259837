import pytest

from processors.text.normalize.signs import say_signs, tidy_punctuation


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
