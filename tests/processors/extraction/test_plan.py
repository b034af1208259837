"""What a run of stage 1 is planned from."""

from dataclasses import replace

import pytest

from config.preprocess import SplitConfig
from processors.extraction.plan import choose_dataset, list_corpus
from tests.processors.small_corpus import IDS, config_of, copy_corpus
from utils.errors import InputError


def test_the_only_dataset_needs_no_name(tmp_path):
    assert choose_dataset(config_of(tmp_path, tmp_path), None) == "LJSpeech"


def test_one_of_several_datasets_must_be_chosen_by_a_known_name(tmp_path):
    config = replace(config_of(tmp_path, tmp_path), dataset=("LJSpeech", "VCTK"))
    assert choose_dataset(config, "VCTK") == "VCTK"
    with pytest.raises(InputError, match="several datasets; choose by --dataset: LJSpeech, VCTK"):
        choose_dataset(config, None)
    with pytest.raises(InputError, match="--dataset LibriTTS: the configuration has LJSpeech"):
        choose_dataset(config, "LibriTTS")


def test_a_corpus_is_listed_with_its_folder(tmp_path):
    root = copy_corpus(tmp_path / "corpus")
    found, listing = list_corpus(config_of(root, tmp_path), "LJSpeech")
    assert found == root
    assert [utterance.id for utterance in listing.utterances] == IDS


def test_a_fault_in_the_keys_of_the_split_shows_with_the_list(tmp_path):
    root = copy_corpus(tmp_path / "corpus")
    config = config_of(root, tmp_path, split=SplitConfig(test_ids=("unknown",)))
    with pytest.raises(InputError, match=r"split\.test_ids: 1 ids .* unknown"):
        list_corpus(config, "LJSpeech")
