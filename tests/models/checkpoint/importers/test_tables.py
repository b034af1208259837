from pathlib import Path

import pytest

from models.checkpoint.importers import _tables
from utils.errors import InputError

ARGS = {"model": {"hifigan": {"resblock": "1"}}, "train": None, "fmax": None}
FILE = Path("args.json")
MEL = {"preprocess.sample_rate": 22050, "preprocess.f_max": 8000}

NAMES = _tables.TensorNames(
    {
        "a.{n}.b.{m}.": "{m}.of.{n}.",
        **_tables.below({"{word}_layer.": "{word}."}, {"{n}.": "{n+1}."}),
        "all.": "everything.",
    }
)
PAIRS = [
    ("a.10.b.2.weight", "2.of.10.weight"),
    ("conv_layer.0.bias", "conv.1.bias"),
    ("conv_layer.9.bias", "conv.10.bias"),
    ("all.weight", "everything.weight"),
    *((name, None) for name in ("small.all.weight", "a.x.b.2.weight", "Conv_layer.0.b")),
]


def test_a_dotted_key_of_a_missing_section_has_no_value():
    assert _tables.value_at(ARGS, "model.hifigan.resblock") == "1"
    assert _tables.value_at(ARGS, "model.nsf.resblock") is None
    assert _tables.value_at(ARGS, "train.adamw") is None


def test_settings_get_our_names_if_they_exist():
    table = {"model.resblock": "model.hifigan.resblock", "train.lr": "train.lr", "f_max": "fmax"}
    assert _tables.existing(ARGS, table) == {"model.resblock": "1", "f_max": None}


def test_all_missing_values_are_named():
    table = {"a": "fmax", "b": "model.hifigan.rates", "c": "train.seed"}
    message = r"^args.json: model.hifigan.rates, train.seed is missing; expected the settings"
    with pytest.raises(InputError, match=message):
        _tables.required(ARGS, table, FILE)
    assert _tables.required(ARGS, {"a": "fmax"}, FILE) == {"a": None}


def test_a_tree_has_sections_and_knows_the_file():
    tree = _tables.tree_of("tts", MEL, FILE)
    assert tree.values["preprocess"] == {"sample_rate": 22050, "f_max": 8000}
    assert tree.values["log_dir"] == "ckpts/tts"
    assert tree.origins["preprocess", "sample_rate"] == "args.json"


def test_a_mel_without_an_upper_edge_ends_at_half_of_the_sample_rate():
    def f_max(rate):
        settings = {"preprocess.sample_rate": rate, "preprocess.f_max": None}
        return _tables.tree_of("tts", settings, FILE).values["preprocess"]["f_max"]

    assert f_max(22050) == 11025
    assert f_max("fast") is None  # the error names the sample rate


@pytest.mark.parametrize(("theirs", "own"), PAIRS)
def test_names_go_to_arions_unless_no_row_fits(theirs, own):
    assert NAMES.translated(theirs) == own
