"""Texts of errors."""

import pickle

from utils.errors import ScriptError, counted


def test_a_noun_is_in_the_singular_after_1():
    assert [counted(n, "texts") for n in range(3)] == ["0 texts", "1 text", "2 texts"]


def test_an_error_of_a_script_comes_whole_from_another_process():
    error = pickle.loads(pickle.dumps(ScriptError("no letter", "write it in words")))
    assert (str(error), error.fault) == ("no letter; write it in words", "no letter")
