"""Which utterances a shard holds, and the report on it."""

from collections import Counter
from pathlib import Path

import pytest

from modules.mel import MelConfig
from preprocessors.manifest import Rejection, Utterance
from processors.dataset.store import IndexRow
from processors.extraction.shards import (
    ShardReport,
    Trace,
    extract_or_reject,
    most_common,
    plan_shards,
    read_shard_report,
    write_shard_report,
)
from processors.records import AlignmentScore
from tests.processors.stores import write_shard
from utils.errors import UtteranceError

SCORE = AlignmentScore(1.0, "the", 0.5, 0.7)


def utterance(id: str) -> Utterance:
    return Utterance(id, Path(f"{id}.wav"), "text", "speaker")


def test_one_utterance_more_changes_at_most_two_shards_at_any_size():
    everyone = [utterance(f"LJ{i:04d}") for i in range(120)]
    for n in range(1, 120):
        old, new = plan_shards(everyone[:n], 10), plan_shards(everyone[: n + 1], 10)
        changed = [name for name in old | new if old.get(name) != new.get(name)]
        assert len(changed) <= 3, (n, changed)  # its own, and the two of a split


def test_a_plan_depends_on_ids_alone_and_fills_shards_evenly():
    everyone = [utterance(f"p{i % 7}_{i:05d}") for i in range(2000)]
    plan = plan_shards(everyone, 100)
    assert plan == plan_shards(everyone[::-1], 100)
    assert sorted(u.id for items in plan.values() for u in items) == sorted(u.id for u in everyone)
    assert len(plan) == 20
    assert max(len(items) for items in plan.values()) < 2 * 100


def finished_report() -> ShardReport:
    report = ShardReport(rows=[IndexRow("a", "anna", "shard-00000", 10, 3, 0.1, 77, 0)])
    trace = Trace(audio_seconds=1.5, score=SCORE, notices=("clipped",), phones=("<sil>", "M", "M"))
    report.add_utterance("a", trace)
    report.rejected.append(Rejection("b", "audio", "empty"))
    report.fingerprint = "f00"
    return report


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_a_report_comes_back_from_its_file_with_its_whole_shard_and_fingerprint(tmp_path, suffix):
    shard, report = tmp_path / "shard-00000.safetensors", finished_report()
    write_shard_report(shard, report)
    assert read_shard_report(shard, "f00") is None
    write_shard(shard, [], MelConfig())
    assert read_shard_report(shard, "f00") == report
    assert read_shard_report(shard, "another") is None
    path = shard.with_suffix(suffix)  # which is cut short
    path.write_bytes(path.read_bytes()[:-3])
    assert read_shard_report(shard, "f00") is None


def test_reports_add_up_and_the_most_frequent_come_first_equally_frequent_ones_by_name():
    assert most_common(Counter(["b", "a", "c", "c"])) == [("c", 2), ("a", 1), ("b", 1)]
    total = finished_report()
    total.add(finished_report())
    assert total.phones == {"<sil>": 2, "M": 4}
    assert total.notices == {"clipped": 2}
    assert (len(total.rows), len(total.rejected)) == (2, 2)
    assert total.audio_seconds == {"a": 1.5}


@pytest.mark.parametrize(
    ("part", "error", "expected"),
    [
        ("features", UtteranceError("too short"), ("features", "too short")),
        ("text", KeyError("bug"), ("text", "unexpected KeyError: 'bug'")),
    ],
)
def test_a_fault_of_one_utterance_becomes_a_rejection(part, error, expected):
    def extract(utterance, trace):
        trace.part = part
        raise error

    rejected = []
    assert extract_or_reject(extract, utterance("a"), Trace(), rejected) is None
    assert rejected == [Rejection("a", *expected)]
