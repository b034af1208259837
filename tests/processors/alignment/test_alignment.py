"""How aligners are found by name, and what they may offer."""

import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors import alignment
from processors.alignment.aligner import AlignmentError, find_aligner, make_aligner, naming
from utils.errors import InputError

ALIGNERS = get_args(get_type_hints(PreprocessConfig)["aligner"])
UTTERANCE = Utterance("u1", Path("u1.wav"), "Hi.", "ann")


@pytest.mark.parametrize("aligner", ALIGNERS)
def test_each_aligner_reads_a_file_or_computes_and_only_hmm_is_trained(aligner, tmp_path):
    config = PreprocessConfig(aligner=aligner)
    files = {"textgrid": "TextGrid/u1.TextGrid", "imported": "alignments/u1.json"}
    expected = tmp_path / files[aligner] if aligner in files else None
    definition = find_aligner(config)
    path = definition.files(config, tmp_path)(UTTERANCE) if definition.files else None
    assert path == expected
    assert (definition.plan_training is not None) == (aligner == "hmm")


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("", "does not end with ALIGNER = Aligner"),
        ("ALIGNER = Aligner(make=print, file=print)", "ALIGNER: .* argument 'file'"),
        ("ALIGNER = Aligner(files=print)", "ALIGNER: .* argument: 'make'"),
    ],
)
def test_a_file_that_is_no_aligner_is_refused_with_its_name(end, message, tmp_path, monkeypatch):
    start = "from processors.alignment.aligner import Aligner\n"
    (tmp_path / "broken.py").write_text(start + end)
    monkeypatch.setattr(alignment, "__path__", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "processors.alignment.broken", raising=False)
    config = PreprocessConfig(aligner="broken")
    with pytest.raises(InputError, match=rf"processors/alignment/broken\.py.*{message}"):
        find_aligner(config)


@pytest.mark.parametrize("aligner", ["textgrid", "imported", "hmm"])
def test_an_aligner_without_its_files_is_refused_when_it_is_made(aligner, tmp_path):
    with pytest.raises(InputError, match=str(tmp_path)):
        make_aligner(PreprocessConfig(aligner=aligner), tmp_path, tmp_path)


@pytest.mark.parametrize("message", ["too short", "a/u1.json: too short"])
def test_an_error_is_named_by_its_file_once(message):
    with pytest.raises(AlignmentError) as caught, naming(Path("a/u1.json")):
        raise AlignmentError(message)
    assert str(caught.value) == "a/u1.json: too short"
