import pytest

from models.checkpoint.importers._settings import renamed, required, section, upper_edge
from utils.errors import InputError

ARGS = {"model": {"hifigan": {"resblock": "1"}}, "train": None}


def test_a_missing_section_is_empty():
    assert section(ARGS, "model", "hifigan") == {"resblock": "1"}
    assert section(ARGS, "model", "nsf") == section(ARGS, "train", "adamw") == {}


def test_all_missing_values_are_named():
    assert required({"a": 1, "b": None, "c": 3}, "x", "b", "a") == {"b": None, "a": 1}
    with pytest.raises(InputError, match=r"^args.json: model: b, c is missing; expected the sett"):
        required({"a": 1}, "args.json: model", "a", "b", "c")


def test_settings_get_our_names_if_they_exist():
    assert renamed({"lr_decay": 0.9, "x": 1}, {"gamma": "lr_decay", "lr": "rate"}) == {"gamma": 0.9}


def test_a_mel_without_an_upper_edge_ends_at_half_of_the_sample_rate():
    assert upper_edge(None, 22050) == 11025
    assert upper_edge(8000, 22050) == 8000
    assert upper_edge(None, "fast") is None  # the error names the sample rate
