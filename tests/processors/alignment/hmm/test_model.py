import numpy as np
import pytest

from processors.alignment.hmm.model import load_model, read_origin, save_model, unit_of
from processors.alignment.hmm.training import train
from tests.processors.alignment.hmm.synthetic import corpus
from utils.errors import InputError

ORIGIN = {"config": "abc", "utterances": {"u1": "ÄÖ"}}


@pytest.fixture(scope="module")
def model():
    return train([one.example for one in corpus(n=4)])


def test_a_model_comes_back_from_its_file_the_same(model, tmp_path):
    path = tmp_path / "new/aligner.safetensors"
    save_model(path, model, ORIGIN)
    loaded = load_model(path)
    assert loaded.units == model.units
    assert loaded.silence_shares == model.silence_shares
    assert np.array_equal(loaded.stay, model.stay)
    assert np.array_equal(loaded.mixtures.variances, model.mixtures.variances)
    assert np.array_equal(loaded.norms["ann"].mean, model.norms["ann"].mean)
    assert read_origin(path) == ORIGIN


def test_a_damaged_model_is_named_with_the_remedy(model, tmp_path):
    path = tmp_path / "aligner.safetensors"
    save_model(path, model, ORIGIN)
    path.write_bytes(path.read_bytes()[:-100])
    assert read_origin(path) is None
    with pytest.raises(InputError, match=r"aligner\.safetensors: no model .* remove the file"):
        load_model(path)


def test_a_missing_model_has_no_origin(tmp_path):
    assert read_origin(tmp_path / "aligner.safetensors") is None


@pytest.mark.parametrize(
    ("phone", "unit"),
    [("AH0", "AH"), ("AH", "AH"), ("ˈɪ", "ɪ"), ("ɔː", "ɔː"), ("a5", "a"), ("2", "2"), ("S", "S")],
)
def test_marks_of_stress_and_tone_do_not_make_another_unit(phone, unit):
    assert unit_of(phone) == unit
