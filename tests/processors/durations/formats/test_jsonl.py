"""JSON lines."""

import json

import pytest

from processors.alignment import AlignmentError
from tests.processors.durations.formats.examples import read


def test_phones_may_stand_in_the_words_of_json_lines(tmp_path):
    phones = [{"start": 0.1, "duration": 0.25, "phone": "k"}]
    row = {"id": "u1", "words": [{"word": "kat", "phones": phones}]}
    (tmp_path / "align.jsonl").write_text(json.dumps(row) + "\n")
    grid = read(tmp_path, "jsonl")
    assert grid.phones == [("k", 0.1, 0.35)]
    assert grid.words == [("kat", 0.1, 0.35)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"phones": [{"phone": "k", "start": 0}]}, "'k' has no start, or no end or duration"),
        ({"phones": [{"start": 0, "end": 1}]}, "has no name: expected phone or label"),
        ({"phones": []}, "no phones; it has id, phones"),
        ({"phones": ["k"]}, "`phones` is not a list of objects"),
    ],
)
def test_json_without_what_is_needed_says_what(tmp_path, row, message):
    (tmp_path / "u1.jsonl").write_text(json.dumps({"id": "u1", **row}) + "\n")
    with pytest.raises(AlignmentError, match=rf"u1.jsonl: u1: .*{message}"):
        read(tmp_path, "jsonl")
