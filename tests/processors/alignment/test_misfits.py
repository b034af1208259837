from pathlib import Path

import pytest

from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError
from processors.alignment.misfits import check_fit, list_misfits, report_of
from processors.records import AlignmentScore
from utils.files import read_jsonl


def score(misfit):
    return AlignmentScore(misfit, "in the", 1.2, 1.65, 0.8, "DH", 1.5, "AH0", 0.31)


def utterances(*ids):
    return [Utterance(id, Path("a.wav"), f"Text of {id}.", "ann") for id in ids]


def test_a_recording_beyond_the_bound_is_refused_with_words_and_time():
    check_fit(score(60), max_misfit=0)
    check_fit(score(60), max_misfit=60)
    with pytest.raises(
        AlignmentError, match=r"misfit 60\.5 at 'in the', 1\.20-1\.65 s \(.*max_misfit is 60\)"
    ):
        check_fit(score(60.5), max_misfit=60)


def test_all_scores_are_listed_the_worst_first_with_their_texts(tmp_path):
    scores = {"u1": score(3.0), "u2": score(77.0), "u3": score(3.0)}
    list_misfits(tmp_path, utterances("u1", "u2", "u3"), scores)
    rows = read_jsonl(tmp_path / "alignment_scores.jsonl")
    assert [row["id"] for row in rows] == ["u2", "u1", "u3"]
    assert rows[0]["words"] == "in the"
    assert rows[0]["text"] == "Text of u2."
    assert report_of(scores) == {"u2": "misfit 77.0 at 'in the', 1.20-1.65 s"}


def test_suspicious_recordings_are_warned_of_and_others_are_not(tmp_path, caplog):
    list_misfits(tmp_path, utterances("u1"), {"u1": score(3.0)})
    assert caplog.text == ""
    list_misfits(tmp_path, utterances("u1", "u2"), {"u1": score(3.0), "u2": score(77.0)})
    assert "1 of 2 recordings may differ from their texts" in caplog.text
    assert "u2: misfit 77.0 at 'in the', 1.20-1.65 s" in caplog.text
    assert "u1:" not in caplog.text


def test_an_aligner_that_gives_no_scores_leaves_no_file(tmp_path):
    list_misfits(tmp_path, utterances("u1"), {})
    assert list(tmp_path.iterdir()) == []
