import re
from dataclasses import replace

import pytest

from models.evaluation.report import tables
from models.evaluation.report.tables import difference_rows, flag_rows, shown_systems
from models.evaluation.results import Comparison, MeanScore
from processors.metrics.records import MetricValue
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
    assert (mcd.column.label, mcd.column.unit, mcd.column.better) == ("mcd", "dB", "lower")
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
    assert tables.format_number(value, digits) == text


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


@pytest.fixture
def uneven(tmp_path):
    """Two utterances by a voice; the copy has one of them."""
    items = [item_of(tmp_path, "a", ("voice", "copy")), item_of(tmp_path, "b", ("voice",))]
    scored = {
        "voice": [scored_of("a", 5.0, flags={"clipping": "at 0.1 s"}), scored_of("b", 7.0)],
        "copy": [scored_of("a", 2.0)],
    }
    return evaluation_of(items, scored, references=("copy",))


def utterances_of(uneven, systems=None):
    systems = shown_systems(uneven) if systems is None else systems
    return [
        tables.shown_utterance(item, systems, tables.columns_of(systems)) for item in uneven.items
    ]


def test_references_come_after_the_systems(uneven):
    assert tables.voices_of(shown_systems(uneven)) == [
        ("recording", "recorded", True),
        ("voice", "system-1", False),
        ("copy", "copy", True),
    ]


def test_voices_have_six_colours_and_then_the_first_again(tmp_path):
    names = [f"voice {n}" for n in range(7)]
    scored = {name: [scored_of("a", 5.0)] for name in names}
    evaluation = evaluation_of([item_of(tmp_path, "a", tuple(names))], scored)
    slots = [voice.slot for voice in tables.voices_of(shown_systems(evaluation))]
    assert slots[1:] == [*(f"system-{n}" for n in range(1, 7)), "system-1"]


def test_scores_of_recordings_are_values_of_the_recording_and_no_columns(uneven):
    columns = tables.columns_of(shown_systems(uneven))
    names = [column.name for column in columns]
    assert names == ["mcd", "pesq", "wer", "wer_difference"]
    assert [column.label for column in columns][-1] == "wer difference"
    a, b = utterances_of(uneven)
    assert a.values == [[None, None, 0.0, None], [5.0, 2.75, 50.0, 50.0], [2.0, 3.5, 50.0, 50.0]]
    assert b.values[2] is None


def test_flags_say_whose_they_are(uneven):
    assert [one.flags for one in utterances_of(uneven)] == [[(1, "clipping", "at 0.1 s")], []]


def test_texts_are_shown_as_written(uneven):
    item = replace(uneven.items[0], text="two cats", written="2 cats!")
    systems = shown_systems(uneven)
    assert tables.shown_utterance(item, systems, []).text == "2 cats!"


def test_transcripts_are_of_the_systems_that_have_the_utterance(uneven):
    systems = shown_systems(uneven)
    assert [voice for voice, _ in tables.transcripts_of(uneven.items[0], systems)] == [0, 1, 2]
    assert [voice for voice, _ in tables.transcripts_of(uneven.items[1], systems)] == [0, 1]


def test_without_a_recogniser_there_are_no_transcripts(uneven):
    voice = uneven.systems[0]
    scored = {id: replace(s, values={"mcd": MetricValue(5.0)}) for id, s in voice.scored.items()}
    assert tables.transcripts_of(uneven.items[0], [replace(voice, scored=scored)]) == []


def test_the_widest_number_of_a_row_decides_how_many_digits_fit():
    wide = MeanScore("", "lower", 26.7913, 20.9747, 32.2458, 10)
    assert tables.digits_for([wide, MeanScore("", "lower", 0.0421, 0.0418, 0.0424, 100)]) == 2


@pytest.mark.parametrize(
    ("mean", "low", "high", "digits"),
    [
        (6.12, 5.9, 6.4, 1),
        (6.123, 6.05, 6.19, 2),
        (250.0, 200.0, 300.0, 0),
        (0.5, None, None, 3),
        (25.0, None, None, 1),
        (0.0, 0.0, 0.0, 0),
        (1e-9, 0.0, 2e-9, 4),
        (26.7913, 26.79, 26.792, 2),
        (12345.678, 12345.677, 12345.679, 0),
    ],
)
def test_numbers_have_as_many_digits_as_they_are_sure_of(mean, low, high, digits):
    assert tables.digits_for([MeanScore("", "lower", mean, low, high, 20)]) == digits
