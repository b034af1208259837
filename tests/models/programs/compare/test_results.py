"""Answers of listeners become counts and intervals that textbooks give."""

import pytest

from models.programs.compare.listening_test import Key, read_answers, summary
from utils.errors import InputError

HEAD = "test,listener,trial,answer,seconds"
PAIRS = Key("t1", "preference", ("a", "b"), (("x", "a", "b"), ("y", "b", "a")))
SINGLE = Key("t2", "opinion", ("a", "b"), (("x", "b"), ("x", "a"), ("y", "a")))


def csv_of(tmp_path, *rows, name="r.csv", head=HEAD):
    path = tmp_path / name
    path.write_text("\n".join([head, *rows, ""]))
    return path


def test_the_side_of_an_answer_is_looked_up_in_the_key(tmp_path):
    one = csv_of(tmp_path, "t1,ann,2,1,3.5", "t1,ann,1,2,2.0")
    other = csv_of(tmp_path, 't1,"ben, ""b""",1,0,3', 't1,"ben, ""b""",2,2,1', name="s.csv")
    answers = read_answers([one, other], PAIRS)
    assert answers == {
        ("ann", 2): 1, ("ann", 1): 2, ('ben, "b"', 1): 0, ('ben, "b"', 2): 2,
    }  # fmt: skip
    assert summary(answers, PAIRS).splitlines() == [
        "4 answers of 2 listeners; intervals of 95 %",
        # ann preferred b twice, ben a once; Wilson's interval of 1 of 3
        "a 1, b 2, no preference 1: a preferred in 33.3 % (6.1 to 79.2 %)",
    ]


def test_the_interval_of_a_preference_is_wilsons():
    answers = {(f"l{n}", 1): 1 if n < 81 else 2 for n in range(263)}
    # 81 of 263: Newcombe 1998, table I, method 3
    assert "a preferred in 30.8 % (25.5 to 36.6 %)" in summary(answers, PAIRS)


def test_without_any_preference_there_is_no_share():
    assert summary({("ann", 1): 0}, PAIRS).splitlines()[1:] == ["a 0, b 0, no preference 1"]


def test_the_interval_of_an_opinion_is_students():
    answers = {(f"l{n}", 2): score for n, score in enumerate((3, 4, 4, 5, 4))}
    answers |= {("l0", 1): 2}
    lines = summary(answers, SINGLE).splitlines()
    # mean 4, deviation 0.7071, t of 4 degrees of freedom 2.776
    assert lines[1:] == ["a: 5 opinions, mean 4.00 (3.12 to 4.88)", "b: 1 opinion, mean 2.00"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ["t9,ann,1,1,2"],
            r"r\.csv, line 2: these are results of the test 't9', the key is of 't1'",
        ),
        (["t1,ann,3,1,2"], "line 2: trial '3', answer '1'; expected a trial from 1 to 2"),
        (["t1,ann,1,1,2", "t1,ann,2,4,2"], "line 3: trial '2', answer '4'.* answer of 0, 1, 2"),
        (["t1,ann,1,,2"], "line 2: trial '1', answer ''"),
        (["t1,ann,1,1,2", "t1,ann,1,2,2"], "line 3: 'ann' has answered trial 1 before"),
        (["t1,ann,1,1"], "line 2: found 4 cells, expected 5"),
        (['t1,"ann,1,1,2'], r"r\.csv, line 2: unexpected end of data"),
        ([], r"r\.csv: no answers"),
    ],
)
def test_wrong_results_are_refused_with_their_line(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        read_answers([csv_of(tmp_path, *rows)], PAIRS)


def test_another_table_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"r\.csv, line 1: expected the columns test,listener"):
        read_answers([csv_of(tmp_path, "a|b", head="id|text")], PAIRS)
