"""What a run of stage 1 is planned from."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from config.preprocess import CorpusConfig, PreprocessConfig, SplitConfig
from preprocessors.manifest import Listing, Utterance
from processors.dataset.store import IndexRow
from processors.extraction.fingerprint import Fingerprint
from processors.extraction.plan import DatasetRun, allowed_faults, choose_dataset, list_corpus
from processors.extraction.run import usable_splits, write_speakers
from processors.extraction.shards import ShardReport
from tests.processors.small_corpus import IDS, config_of, copy_corpus
from utils.errors import InputError
from utils.files import read_json


def test_one_of_several_datasets_must_be_chosen_by_a_known_name(tmp_path):
    assert choose_dataset(config_of(tmp_path, tmp_path), None) == "LJSpeech"
    config = replace(config_of(tmp_path, tmp_path), dataset=("LJSpeech", "VCTK"))
    assert choose_dataset(config, "VCTK") == "VCTK"
    with pytest.raises(InputError, match="several datasets; choose by --dataset: LJSpeech, VCTK"):
        choose_dataset(config, None)
    with pytest.raises(InputError, match="--dataset LibriTTS: the configuration has LJSpeech"):
        choose_dataset(config, "LibriTTS")


def test_a_corpus_is_listed_with_its_folder_and_a_fault_in_the_keys_of_its_split(tmp_path):
    root = copy_corpus(tmp_path / "corpus")
    found, listing = list_corpus(config_of(root, tmp_path), "LJSpeech")
    assert found == root
    assert [utterance.id for utterance in listing.utterances] == IDS
    config = config_of(root, tmp_path, split=SplitConfig(test_ids=("unknown",)))
    with pytest.raises(InputError, match=r"split\.test_ids: 1 ids .* unknown"):
        list_corpus(config, "LJSpeech")


@pytest.mark.parametrize("n", [1, 2])
def test_refused_names_are_listed_where_the_split_fails_for_want_of_utterances(tmp_path, n):
    table = "".join(f"{id}|One.\n" for id in ["../a", "b", "c"][: n + 1])
    (tmp_path / "metadata.csv").write_text(f"{table}d|Two.\n")
    for id in "bd":
        (tmp_path / f"{id}.wav").touch()
    options = {"LJSpeech": CorpusConfig("folder")}
    config = config_of(tmp_path, tmp_path, corpus=options, split=SplitConfig())
    message = r"(?s)none are left to train on.* \d more are rejected:.*\.csv:1: '\.\./a' is not"
    with pytest.raises(InputError, match=message):
        list_corpus(config, "LJSpeech")


NINE = [f"u{number}" for number in range(9)]
HELD = SplitConfig(test_ids=("u0", "u1"), valid_ids=("u2",))


def run_of(folder: Path, speakers: list[str], split: SplitConfig, task: str = "tts") -> DatasetRun:
    """A run over nine utterances of these speakers."""
    pairs = zip(NINE, speakers, strict=True)
    utterances = [Utterance(id, Path(f"{id}.wav"), "Hello.", speaker) for id, speaker in pairs]
    config, listing = PreprocessConfig(split=split), Listing(utterances, [], [])
    made = Fingerprint({}, {}, "", {}, task=task)
    return DatasetRun(config, "mini", folder, listing, {}, made, lambda *_: ShardReport())


def report_of(usable: list[str]) -> ShardReport:
    rows = [IndexRow(id, "", "shard-00000", 9, 9, 1.0, 0, 0) for id in usable]
    return ShardReport(rows=rows, audio_seconds=dict.fromkeys(NINE, 1.0))


@pytest.mark.parametrize(
    ("n_utterances", "ratio", "allowed"),
    [(10000, 0.01, 100), (100, 0.01, 3), (4, 0.01, 2), (1, 0.01, 0), (100, 0.0, 0), (9, 1.0, 9)],
)
def test_small_corpora_may_have_three_faults_but_not_more_than_half(n_utterances, ratio, allowed):
    assert allowed_faults(n_utterances, ratio) == allowed


def test_speakers_without_a_usable_training_utterance_are_left_out_and_named(tmp_path, caplog):
    run = run_of(tmp_path, ["anna", "ben", "cleo", "anna", "cleo", *["anna"] * 4], HELD)
    usable = [id for id in NINE if id != "u4"]
    with caplog.at_level(logging.WARNING):
        splits = usable_splits(run, report_of(usable))
    write_speakers(run, splits)
    assert (splits.test, splits.valid, splits.train) == (["u0"], [], ["u3", "u5", "u6", "u7", "u8"])
    fault = "2 speakers have no usable utterance in the train split and are left out: ben, cleo"
    assert fault in " ".join(caplog.text.split())
    assert [speaker["name"] for speaker in read_json(tmp_path / "speakers.json")] == ["anna"]


def test_a_vocoder_is_tested_on_speakers_that_it_was_not_trained_on_and_no_other_model(tmp_path):
    assert usable_splits(run_of(tmp_path, NINE, SplitConfig()), report_of(NINE)).train == NINE
    run = run_of(tmp_path, NINE, SplitConfig(test=0.3), task="vocoder")
    splits = usable_splits(run, report_of(NINE))
    write_speakers(run, splits)
    assert [len(ids) for ids in splits] == [5, 1, 3, 3]
    assert [speaker["name"] for speaker in read_json(tmp_path / "speakers.json")] == NINE
