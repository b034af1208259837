"""Statistics against numpy over all values at once."""

import tracemalloc
from dataclasses import asdict, replace

import numpy as np
import pytest

from config.preprocess import PreprocessConfig
from modules.mel import MelConfig
from processors.dataset.statistics import (
    CorpusStats,
    SpeakerStats,
    Stat,
    corpus_stats,
    without_outliers,
)
from processors.dataset.store import FeatureStore
from processors.records import Features
from tests.processors.stores import write_store
from utils.errors import InputError
from utils.files import write_json

ALL_VALUES = PreprocessConfig(pitch_remove_outlier=False, energy_remove_outlier=False)


def features(id, f0, energy, durations, speaker="ann") -> Features:
    mel = np.zeros((80, len(f0)))
    floats = (np.array(values, dtype=np.float32) for values in (mel, f0, energy))
    return Features(id, speaker, tuple("abcdefgh"[: len(durations)]), np.array(durations), *floats)


def store_of(folder, *items: Features) -> FeatureStore:
    return FeatureStore(write_store(folder, MelConfig(), items))


def random_features(id, random, speaker="ann") -> Features:
    f0 = random.uniform(80, 300, 60) * (random.random(60) > 0.4)
    return features(id, f0, random.uniform(1, 90, 60), [10, 0, 30, 20], speaker)


def test_frames_and_phones_of_one_utterance_by_hand(tmp_path):
    # the gap is filled with 150, so the phones are at 100, (150 + 200) / 2; the empty one is none
    store = store_of(tmp_path, features("a", [100, 0, 200], [1, 2, 6], [1, 0, 2]))
    stats = corpus_stats(store, ["a"], ALL_VALUES).speakers["ann"]
    assert stats.f0_frame == Stat(150, 50, 100, 200, 2)
    assert stats.f0_phone == Stat(137.5, 37.5, 100, 175, 2)
    assert stats.energy_frame.mean == pytest.approx(3)
    assert stats.energy_phone == Stat(2.5, 1.5, 1, 4, 2)
    assert stats.seconds == pytest.approx(3 * 256 / 22050)


def test_streaming_equals_numpy_over_all_values(tmp_path):
    random = np.random.default_rng(0)
    items = [random_features(f"u{i}", random) for i in range(20)]
    stats = corpus_stats(store_of(tmp_path, *items), [u.id for u in items], ALL_VALUES)
    energy = np.concatenate([u.energy for u in items]).astype(np.float64)
    f0 = np.concatenate([u.f0[u.f0 > 0] for u in items]).astype(np.float64)
    for stat, values in ((stats.pooled.energy_frame, energy), (stats.pooled.f0_frame, f0)):
        expected = Stat(values.mean(), values.std(), values.min(), values.max(), values.size)
        assert asdict(stat) == pytest.approx(asdict(expected), rel=1e-12)


def test_only_the_ids_asked_for_count_in_any_order(tmp_path):
    random = np.random.default_rng(1)
    store = store_of(tmp_path, *(random_features(id, random) for id in "abc"))
    assert corpus_stats(store, ["c", "a"], ALL_VALUES) == corpus_stats(store, "ac", ALL_VALUES)
    assert corpus_stats(store, "ac", ALL_VALUES) != corpus_stats(store, "abc", ALL_VALUES)


def test_outliers_are_left_out_only_where_configured(tmp_path):
    f0 = [100, 101, 102, 103, 104, 105, 106, 500]
    store = store_of(tmp_path, features("a", f0, [50, 51, 52, 53, 54, 55, 56, 900], [1] * 8))
    pitch_only = PreprocessConfig(pitch_remove_outlier=True, energy_remove_outlier=False)
    stats = corpus_stats(store, ["a"], pitch_only).speakers["ann"]
    assert (stats.f0_frame.max, stats.f0_phone.max) == (106, 106)
    assert (stats.energy_frame.max, stats.energy_phone.max) == (900, 900)
    assert without_outliers(np.full(5, 7.0)).tolist() == [7.0] * 5  # equal values are none
    assert without_outliers(np.empty(0)).size == 0


def test_whispers_count_for_energy_alone_and_who_only_whispers_has_pitch_zero(tmp_path):
    voiced = features("a", [100, 200], [1, 2], [1, 1])
    whisper = features("b", [0, 0], [3, 3], [1, 1])
    store = store_of(tmp_path, voiced, whisper)
    stats = corpus_stats(store, "ab", ALL_VALUES).speakers["ann"]
    assert stats.f0_frame == stats.f0_phone == Stat(150, 50, 100, 200, 2)
    assert stats.energy_frame.count == 4
    stats = corpus_stats(store, "b", ALL_VALUES).speakers["ann"]
    assert stats.f0_frame == Stat(mean=0, std=1, min=0, max=0, count=0)
    assert stats.energy_frame == Stat(mean=3, std=1, min=3, max=3, count=2)


def test_speakers_are_apart_and_pooled_together(tmp_path):
    random = np.random.default_rng(2)
    ann, bob = random_features("a", random, "ann"), random_features("b", random, "bob")
    stats = corpus_stats(store_of(tmp_path, ann, bob), "ab", ALL_VALUES)
    assert set(stats.speakers) == {"ann", "bob"}
    both = np.concatenate([ann.energy, bob.energy]).astype(np.float64)
    assert stats.pooled.energy_frame.mean == pytest.approx(both.mean(), rel=1e-12)
    assert stats.pooled.energy_frame.std == pytest.approx(both.std(), rel=1e-12)


def test_merging_datasets_equals_one_dataset(tmp_path):
    random = np.random.default_rng(3)
    items = [random_features(id, random, "ann" if id != "c" else "bob") for id in "abc"]
    whole = corpus_stats(store_of(tmp_path / "all", *items), "abc", ALL_VALUES)
    parts = [corpus_stats(store_of(tmp_path / u.id, u), u.id, ALL_VALUES) for u in items]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert set(merged.speakers) == {"ann", "bob"}
    for name in ("f0_frame", "f0_phone", "energy_frame", "energy_phone"):
        found, expected = (getattr(both.speakers["ann"], name) for both in (merged, whole))
        assert asdict(found) == pytest.approx(asdict(expected), rel=1e-12)


def test_merging_with_a_constant_keeps_its_spread_at_zero():
    constant, other = Stat(3, 1, 3, 3, 2), Stat(5, 1, 4, 6, 2)
    values = np.array([3.0, 3.0, 4.0, 6.0])
    merged = constant.merge(other)
    assert (merged.mean, merged.std) == pytest.approx((values.mean(), values.std()))
    assert Stat(0, 1, 0, 0, 0).merge(other) == other.merge(Stat(0, 1, 0, 0, 0)) == other


def test_json_gives_the_same_statistics_back_and_a_deviation_of_0_is_refused(tmp_path):
    path, stat = tmp_path / "stats.json", Stat(0.1, 0.2, -1 / 3, 7e9, 12)
    stats = CorpusStats({"ann": SpeakerStats(stat, stat, stat, stat, 3.5)})
    write_json(path, stats.to_plain())
    assert CorpusStats.read(path) == stats
    flat = CorpusStats({"ann": SpeakerStats(replace(stat, std=0.0), stat, stat, stat, 3.5)})
    write_json(path, flat.to_plain())
    with pytest.raises(InputError, match=r"speakers\.ann\.f0_frame\.std is 0, expected above 0"):
        CorpusStats.read(path)


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ([], "speakers is null, expected a section"),
        ({}, "speakers is null, expected a section"),
        ({"speakers": 3}, "speakers is 3, expected a section"),
        ({"speakers": {"ann": {}}}, "mean"),
        ({"speakers": {"ann": {"f0_frame": {"mean": "200"}}}}, 'f0_frame.mean is "200", expected'),
    ],
)
def test_other_json_is_refused(plain, message, tmp_path):
    write_json(tmp_path / "stats.json", plain)
    with pytest.raises(InputError, match=rf"stats\.json: .*{message}"):
        CorpusStats.read(tmp_path / "stats.json")


def test_memory_does_not_grow_with_the_number_of_utterances(tmp_path):
    random = np.random.default_rng(4)
    items = [random_features(f"u{i}", random) for i in range(200)]
    store = store_of(tmp_path, *items)
    corpus_stats(store, ["u0"], ALL_VALUES)
    tracemalloc.start()
    corpus_stats(store, [u.id for u in items], ALL_VALUES)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000  # bytes; all values together are 200 * 60 * 2 * 8


def test_without_durations_phones_have_the_statistics_of_frames(tmp_path):
    item = replace(features("a", [100, 0, 200], [1, 2, 6], [1, 1, 1]), durations=None)
    stats = corpus_stats(store_of(tmp_path, item), ["a"], ALL_VALUES).speakers["ann"]
    assert stats.f0_phone == stats.f0_frame == Stat(150, 50, 100, 200, 2)
    assert stats.energy_phone == stats.energy_frame
