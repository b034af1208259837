from dataclasses import replace

import pytest

from models.evaluation.report import tables
from models.evaluation.report.tables import shown_systems, shown_utterance, transcripts_of
from models.evaluation.results import MeanScore
from processors.metrics.records import MetricValue
from tests.models.evaluation.report.evaluations import evaluation_of, item_of, scored_of


@pytest.fixture
def evaluation(tmp_path):
    """Two utterances by a voice; the copy has one of them."""
    items = [item_of(tmp_path, "a", ("voice", "copy")), item_of(tmp_path, "b", ("voice",))]
    scored = {
        "voice": [scored_of("a", 5.0, flags={"clipping": "at 0.1 s"}), scored_of("b", 7.0)],
        "copy": [scored_of("a", 2.0)],
    }
    return evaluation_of(items, scored, references=("copy",))


def utterances_of(evaluation, systems=None):
    systems = shown_systems(evaluation) if systems is None else systems
    return [shown_utterance(item, systems, tables.columns_of(systems)) for item in evaluation.items]


def test_references_come_after_the_systems(evaluation):
    assert tables.voices_of(shown_systems(evaluation)) == [
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


def test_scores_of_recordings_are_values_of_the_recording_and_no_columns(evaluation):
    columns = tables.columns_of(shown_systems(evaluation))
    names = [column.name for column in columns]
    assert names == ["mcd", "pesq", "wer", "wer_difference"]
    assert [column.label for column in columns][-1] == "wer difference"
    a, b = utterances_of(evaluation)
    assert a.values == [[None, None, 0.0, None], [5.0, 2.75, 50.0, 50.0], [2.0, 3.5, 50.0, 50.0]]
    assert b.values[2] is None


def test_flags_say_whose_they_are(evaluation):
    assert [one.flags for one in utterances_of(evaluation)] == [[(1, "clipping", "at 0.1 s")], []]


def test_texts_are_shown_as_written(evaluation):
    item = replace(evaluation.items[0], text="two cats", written="2 cats!")
    systems = shown_systems(evaluation)
    assert shown_utterance(item, systems, []).text == "2 cats!"


def test_transcripts_are_of_the_systems_that_have_the_utterance(evaluation):
    systems = shown_systems(evaluation)
    assert [voice for voice, _ in transcripts_of(evaluation.items[0], systems)] == [0, 1, 2]
    assert [voice for voice, _ in transcripts_of(evaluation.items[1], systems)] == [0, 1]


def test_without_a_recogniser_there_are_no_transcripts(evaluation):
    voice = evaluation.systems[0]
    scored = {id: replace(s, values={"mcd": MetricValue(5.0)}) for id, s in voice.scored.items()}
    assert transcripts_of(evaluation.items[0], [replace(voice, scored=scored)]) == []


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
