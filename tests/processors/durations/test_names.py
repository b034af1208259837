from pathlib import Path

import pytest

from processors.durations.names import match_names
from processors.durations.sources import SourceEntry
from utils.errors import InputError

IDS = ("LJ001-0001", "LJ001-0002", "p225_001")


def matched(names, pattern=""):
    entries = [SourceEntry(name, Path(f"{name}.npy"), lambda: None) for name in names]
    return match_names(entries, IDS, pattern)


@pytest.mark.parametrize(
    "name",
    [
        "LJ001-0001",
        "LJ001-0001-durations",
        "LJ001-0001_duration",
        "LJSpeech-duration-LJ001-0001",
        "duration-LJ001-0001",
    ],
)
def test_names_as_projects_make_them_are_matched(name):
    assert [*matched([name]).entries] == ["LJ001-0001"]


def test_everything_is_counted_once():
    found = matched(["p225_001", "LJ001-0001-durations", "LJ001-0001", "LJ009-0009", "stats"])
    assert [*found.entries] == ["p225_001"]
    assert found.doubled == ["LJ001-0001"]
    assert found.missing == ["LJ001-0002"]
    assert found.extra == ["LJ009-0009", "stats"]


def test_a_pattern_says_how_names_are_made():
    found = matched(["take1_p225_001.x", "p225_001"], "take1_{id}.x")
    assert [*found.entries] == ["p225_001"]
    assert found.extra == ["p225_001"]
    with pytest.raises(InputError, match=r"--name_pattern 'take1': expected \{id\} in it"):
        matched([], "take1")
