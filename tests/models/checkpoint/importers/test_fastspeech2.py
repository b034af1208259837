from pathlib import Path

import pytest

from models.checkpoint.importers._fastspeech2 import by_id, one_stat
from processors.dataset.statistics import Stat
from utils.errors import InputError

FILE = Path("stats.json")


def test_names_are_in_the_order_of_their_ids():
    assert by_id({"b": 1, "c": 2, "a": 0}, 3, FILE) == ["a", "b", "c"]


@pytest.mark.parametrize("ids", [{"a": 0, "b": 2}, {"a": 0, "b": "1"}, {"a": 0}, ["a", "b"]])
def test_ids_with_gaps_or_of_other_types_are_refused(ids):
    with pytest.raises(InputError, match=r"^stats.json: expected names with the ids 0 to 1, found"):
        by_id(ids, 2, FILE)


def test_statistics_must_be_finite_and_vary():
    assert one_stat(FILE, "pitch", 200, 30.0, (80, 400)) == Stat(200.0, 30.0, 80.0, 400.0)
    for numbers in ((200, 0, (80, 400)), (200, 30, (80, float("inf")))):
        with pytest.raises(InputError, match=r"pitch: .* expected finite numbers and std > 0"):
            one_stat(FILE, "pitch", *numbers)
    with pytest.raises(InputError, match=r"^stats.json: pitch: expected mean, std, min and max"):
        one_stat(FILE, "pitch", 200, None, (80, 400))
