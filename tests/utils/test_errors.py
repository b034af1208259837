"""Texts of errors."""

import pickle

from utils.errors import ScriptError, control_characters, counted


def test_a_noun_is_in_the_singular_after_1():
    assert [counted(n, "texts") for n in range(3)] == ["0 texts", "1 text", "2 texts"]


def test_an_error_of_a_script_comes_whole_from_another_process():
    error = pickle.loads(pickle.dumps(ScriptError("no letter", "write it in words")))
    assert (str(error), error.fault) == ("no letter; write it in words", "no letter")


def test_a_text_that_an_error_quotes_is_one_line():
    assert control_characters("One\ttwo.\na\0b\n\nThree.\n") == r"One two. a\x00b Three."
    assert control_characters("One\ttwo.\n") == ""
