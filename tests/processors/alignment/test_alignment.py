"""How aligners are found by name, and what they may offer."""

from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment import AlignmentError, alignment_file, make_aligner, naming, plan_training
from utils.errors import InputError

ALIGNERS = get_args(get_type_hints(PreprocessConfig)["aligner"])
UTTERANCE = Utterance("u1", Path("u1.wav"), "Hi.", "ann")


@pytest.mark.parametrize("aligner", ALIGNERS)
def test_each_aligner_reads_a_file_or_computes_and_only_hmm_is_trained(aligner, tmp_path):
    config = PreprocessConfig(aligner=aligner)
    files = {"textgrid": "TextGrid/u1.TextGrid", "imported": "alignments/u1.json"}
    expected = tmp_path / files[aligner] if aligner in files else None
    assert alignment_file(UTTERANCE, config, tmp_path) == expected
    training = plan_training(config, [], tmp_path)
    assert (training is not None) == (aligner == "hmm")


@pytest.mark.parametrize("aligner", ["textgrid", "imported", "hmm"])
def test_an_aligner_without_its_files_is_refused_when_it_is_made(aligner, tmp_path):
    with pytest.raises(InputError, match=str(tmp_path)):
        make_aligner(PreprocessConfig(aligner=aligner), tmp_path, tmp_path)


@pytest.mark.parametrize("message", ["too short", "a/u1.json: too short"])
def test_an_error_is_named_by_its_file_once(message):
    with pytest.raises(AlignmentError) as caught, naming(Path("a/u1.json")):
        raise AlignmentError(message)
    assert str(caught.value) == "a/u1.json: too short"
