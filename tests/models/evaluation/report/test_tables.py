import re
from dataclasses import replace

import pytest

from models.evaluation.report import tables
from models.evaluation.report.tables import difference_rows, flag_rows, format_number, shown_systems
from models.evaluation.results import Comparison, MeanScore
from tests.models.evaluation.report.evaluations import evaluation_of, item_of, scored_of


@pytest.fixture
def evaluation(tmp_path):
    """Two voices and a reference that has one of three utterances."""
    names = ("good", "bad", "copy")
    items = [item_of(tmp_path, id, names if id == "a" else names[:2]) for id in "abc"]
    scored = {
        "good": [scored_of(id, mcd) for id, mcd in zip("abc", (4.0, 5.0, 6.0), strict=True)],
        "bad": [
            scored_of(id, mcd, flags={"clipping": "at 0.1 s"})
            for id, mcd in zip("abc", (4.5, 6.0, 7.5), strict=True)
        ],
        "copy": [scored_of("a", 1.0)],
    }
    return evaluation_of(items, scored, references=("copy",))


def parts_of(evaluation):
    systems = shown_systems(evaluation)
    return tables.columns_of(systems), tables.voices_of(systems), systems


def test_a_row_holds_the_means_of_all_voices(evaluation):
    mcd, _, wer, difference = tables.score_rows(*parts_of(evaluation)[::2])
    assert (mcd.label, mcd.unit, mcd.better) == ("mcd", "dB", "lower")
    recording, good, _, copy = mcd.cells
    assert recording is None
    assert (copy.mean, copy.interval, copy.n) == ("1.00", "", 1)
    assert (good.mean, good.interval, good.n) == ("5.00", "4.00 … 6.00", 3)
    assert wer.cells[0].mean == "0.0"
    assert difference.cells[0] is None


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(-0.04, 1, "0.0"), (-1.26, 1, "−1.3"), (12345.6, 0, "12\u202f346"), (0.0, 2, "0.00")],
)
def test_numbers_are_written_for_people(value, digits, text):
    assert format_number(value, digits) == text


def test_the_better_one_of_two_is_named_where_the_interval_leaves_out_nothing(
    evaluation, monkeypatch
):
    monkeypatch.setattr("models.evaluation.results.FEWEST", 3)
    columns, voices, _ = parts_of(evaluation)
    mcd, pesq, wer, _ = difference_rows(columns, voices, evaluation.comparisons)
    (cell,) = mcd.cells
    assert (cell.mean, cell.n, cell.verdict) == ("−1.0", 3, "good is better")
    assert cell.slot == "system-1"
    assert pesq.cells[0].verdict == "good is better"  # for higher is better there
    assert pesq.cells[0].mean.startswith("+0.2")
    assert (wer.cells[0].mean, wer.cells[0].verdict) == ("0", "no clear difference")


@pytest.mark.parametrize(
    ("score", "verdict"),
    [
        (MeanScore("dB", "lower", 1.0, None, None, 1), "too few utterances"),
        (MeanScore("dB", "lower", 1.0, 0.5, 1.5, 5), "too few utterances"),
        (MeanScore("dB", "", 1.0, 0.5, 1.5, 9), "they differ"),
        (MeanScore("dB", "lower", 1.0, 0.5, 1.5, 9), "bad is better"),
        (MeanScore("dB", "lower", 1.0, 0.0, 1.5, 9), "no clear difference"),
    ],
)
def test_verdicts(evaluation, score, verdict):
    columns, voices, _ = parts_of(evaluation)
    column = next(column for column in columns if column.name == "mcd")
    column = type(column)("mcd", "mcd", "dB", score.better, 1)
    comparison = Comparison("good", "bad", {"mcd": score})
    (row,) = difference_rows([column], voices, [comparison])
    assert row.cells[0].verdict == verdict


def test_flags_are_counted_by_voice_and_named_in_words(evaluation):
    systems = shown_systems(evaluation)
    assert flag_rows(systems) == [("clipping", "clipped samples", [None, 3, None], 0)]


def test_unchecked_utterances_are_counted(evaluation):
    bad = next(one for one in evaluation.systems if one.name == "bad")
    unscored = {"clipping": "no sound"}
    scored = {id: replace(one, unscored=unscored) for id, one in list(bad.scored.items())[:2]}
    systems = [replace(bad, scored={**bad.scored, **scored})]
    assert [row.unchecked for row in flag_rows(systems)] == [2]


def test_scores_and_checks_are_explained_by_their_own_first_lines(evaluation):
    columns, _, systems = parts_of(evaluation)
    meanings = dict(tables.meanings_of(columns, flag_rows(systems)))
    assert meanings["wer"] == "Word error rate of a speech recogniser; lower is better."
    assert meanings["clipped samples"].startswith("Clipped samples: ")
    assert set(meanings) == {"mcd", "pesq", "wer", "clipped samples"}


def test_the_tables_as_text_are_those_of_the_page(evaluation):
    scores, differences, flags = tables.tables_of(evaluation).split("\n\n")
    heads, mcd = scores.splitlines()[:2]
    assert heads.split() == ["metric", "unit", "better", "recording", "good", "bad", "copy"]
    cells = ["mcd", "dB", "lower", "5.00 (4.00 .. 6.00)", "6.00 (4.50 .. 7.50)", "1.00 (n 1)"]
    assert re.split(" {2,}", mcd) == cells
    assert differences.splitlines()[:2] == [
        "good - bad      unit  difference",
        "mcd             dB    -1.0 (-1.5 .. -0.5)   too few utterances",
    ]
    assert flags.splitlines() == ["flagged          bad", "clipped samples  3"]
