"""What follows from all utterances of a dataset together."""

import logging
from pathlib import Path

import pytest

from config.preprocess import PreprocessConfig, SplitConfig
from preprocessors.manifest import Listing, Utterance
from processors.dataset.shard_file import IndexRow
from processors.extraction.fingerprint import Fingerprint
from processors.extraction.finishing import allowed_faults, usable_splits, write_speakers
from processors.extraction.plan import DatasetRun, Product
from processors.extraction.shards import ShardReport
from utils.files import read_json

IDS = [f"u{number}" for number in range(9)]
HELD = SplitConfig(test_ids=("u0", "u1"), valid_ids=("u2",))


def run_of(folder: Path, speakers: list[str], split: SplitConfig, task: str = "tts") -> DatasetRun:
    """A run over nine utterances of these speakers."""
    utterances = [
        Utterance(id, Path(f"{id}.wav"), "Hello.", speaker)
        for id, speaker in zip(IDS, speakers, strict=True)
    ]
    return DatasetRun(
        config=PreprocessConfig(split=split),
        dataset="mini",
        folder=folder,
        listing=Listing(utterances, [], []),
        shards={},
        fingerprint=Fingerprint({}, {}, "", {}, task=task),
        product=Product(),
        work=lambda name, utterances: ShardReport(),
        backend="sequential",
    )


def report_of(usable: list[str]) -> ShardReport:
    rows = [IndexRow(id, "", "shard-00000", 9, 9, 1.0, 0, 0) for id in usable]
    return ShardReport(rows=rows, audio_seconds=dict.fromkeys(IDS, 1.0))


@pytest.mark.parametrize(
    ("n_utterances", "ratio", "allowed"),
    [(10000, 0.01, 100), (100, 0.01, 3), (4, 0.01, 2), (1, 0.01, 0), (100, 0.0, 0), (9, 1.0, 9)],
)
def test_small_corpora_may_have_three_faults_but_not_more_than_half(n_utterances, ratio, allowed):
    assert allowed_faults(n_utterances, ratio) == allowed


def test_speakers_of_one_utterance_each_all_train(tmp_path):
    run = run_of(tmp_path, IDS, SplitConfig())
    assert usable_splits(run, report_of(IDS)).train == IDS


def test_speakers_without_a_usable_training_utterance_are_left_out_and_named(tmp_path, caplog):
    run = run_of(tmp_path, ["anna", "ben", "cleo", "anna", "cleo", *["anna"] * 4], HELD)
    usable = [id for id in IDS if id != "u4"]
    with caplog.at_level(logging.WARNING):
        splits = usable_splits(run, report_of(usable))
    write_speakers(run, splits)
    assert (splits.test, splits.valid, splits.train) == (["u0"], [], ["u3", "u5", "u6", "u7", "u8"])
    assert "2 speakers have no usable utterance in the train split and are left out: ben, cleo" in (
        " ".join(caplog.text.split())
    )
    assert [speaker["name"] for speaker in read_json(tmp_path / "speakers.json")] == ["anna"]


def test_a_vocoder_is_tested_on_speakers_that_it_was_not_trained_on(tmp_path):
    run = run_of(tmp_path, IDS, SplitConfig(test=0.3), task="vocoder")
    splits = usable_splits(run, report_of(IDS))
    write_speakers(run, splits)
    assert [len(ids) for ids in splits] == [5, 1, 3, 3]
    assert [speaker["name"] for speaker in read_json(tmp_path / "speakers.json")] == IDS
