"""A JSON file per utterance."""

import json

import pytest

from processors.alignment import AlignmentError
from processors.durations.formats import AlignedSpeech, find_writer
from tests.processors.durations.formats.examples import SPEECH, read


def test_json_numbers_beyond_all_times_are_refused(tmp_path):
    phones = [{"phone": "k", "start": 0, "end": 10**400}]
    (tmp_path / "u1.json").write_text(json.dumps({"phones": phones}))
    with pytest.raises(AlignmentError, match=r"k lasts from 0.0 to inf s, which are not times"):
        read(tmp_path, "json")


def test_json_has_the_text_and_times_in_seconds(tmp_path):
    find_writer("json").write(tmp_path, [SPEECH])
    row = json.loads((tmp_path / "u1.json").read_text())
    assert (row["id"], row["text"], row["recording_s"]) == ("u1", 'He said "hm".', 1.0)
    assert row["words"][0] == {"word": '"hm"', "start_s": 0.2, "end_s": 0.3}
    assert row["phones"][1] == {"phone": "HH", "start_s": 0.2, "end_s": 0.3}


def test_json_is_the_same_object_whatever_the_text(tmp_path):
    odd = 'a}, {b: [{"x": 1}, {"y"'
    speech = AlignedSpeech(**{**vars(SPEECH), "text": odd})
    find_writer("json").write(tmp_path, [speech])
    assert json.loads((tmp_path / "u1.json").read_text())["text"] == odd
