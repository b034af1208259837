import shutil

import numpy as np
import pytest
import soundfile

from config.text import TextConfig
from preprocessors.manifest import read_splits, read_utterances
from processors.dataset.statistics import CorpusStats
from processors.dataset.store import FeatureStore
from processors.extraction.features import FeatureError
from processors.extraction.fingerprint import check_made_with
from processors.tensorflowtts import layout
from processors.tensorflowtts.importing import checked_durations, import_dump
from tests.processors.tensorflowtts.dumps import IDS, add_durations, dump_config, hashes
from utils.arrays import write_array
from utils.errors import InputError
from utils.files import read_json, read_jsonl, write_json


@pytest.fixture
def dump(original, tmp_path):
    """A copy whose files may be changed."""
    return shutil.copytree(original, tmp_path / "dump")


def imported(dump, processed, durations=None, **keys):
    """Configuration, folder and store of an import."""
    aligner = "learned" if durations is None else "imported"
    config = dump_config(dump, processed, aligner=aligner, **keys)
    import_dump(config, "LJSpeech", dump, durations, n_cpus=1)
    folder = processed / "LJSpeech"
    return config, folder, FeatureStore(folder, config.preprocess.mel)


def file_of(dump, file, id):
    return next(path for s in layout.SPLITS if (path := file.path(dump, s, id)).is_file())


def test_an_exported_dump_comes_back_with_the_same_features(original, tmp_path):
    before = hashes(original)
    config, folder, store = imported(original, tmp_path / "data")
    check_made_with(folder, config.preprocess)
    # the fingerprint has the keys that it always had
    assert read_json(folder / "fingerprint.json")["features"]["preprocess.min_attention"] == 0.5
    assert store.mel == config.preprocess.mel
    assert list(store.ids) == IDS
    for id in IDS:
        features = store.read(id)
        files = (layout.RAW_MEL, layout.F0, layout.ENERGY)
        raw, f0, energy = (np.load(file_of(original, file, id)) for file in files)
        np.testing.assert_allclose(features.mel, raw.T * np.log(10), rtol=3e-7)
        assert np.array_equal(features.f0, f0)
        assert np.array_equal(features.energy, energy)
        assert features.durations is None
        assert features.phones[-1] == "<eos>"
    assert hashes(original) == before
    assert import_dump(config, "LJSpeech", original, None, 1) is None  # nothing to do


def test_splits_texts_and_recordings_come_from_the_dump(original, tmp_path):
    _, folder, _ = imported(original, tmp_path / "data")
    train, valid = (sorted(np.load(original / f"{s}_utt_ids.npy").tolist()) for s in layout.SPLITS)
    assert read_splits(folder)[:3] == (train, valid, [])
    first = next(iter(read_utterances(folder).values()))
    assert (first.id, first.text) == ("LJ001-0002", "in being comparatively modern.")
    wav, rate = soundfile.read(first.audio)
    assert rate == 22050
    stored = np.load(file_of(original, layout.WAV, first.id))
    np.testing.assert_allclose(wav, stored, atol=1 / 32768)


def test_statistics_of_frames_are_those_of_the_dump(original, tmp_path):
    keys = {"pitch_remove_outlier": False, "energy_remove_outlier": False}
    _, folder, _ = imported(original, tmp_path / "data", **keys)
    stats = CorpusStats.read(folder / "stats.json").speakers["LJSpeech"]
    for name, stat in (("f0", stats.f0_frame), ("energy", stats.energy_frame)):
        expected = np.load(original / f"stats_{name}.npy")[:, 0]
        np.testing.assert_allclose([stat.mean, stat.std], expected, rtol=1e-5)


@pytest.mark.parametrize("eos", [True, False], ids=["with eos", "without eos"])
def test_durations_of_another_split_land_by_id(original, tmp_path, eos):
    written = add_durations(original, tmp_path / "foreign", eos=eos)
    before = hashes(tmp_path / "foreign")
    _, _, store = imported(original, tmp_path / "data", tmp_path / "foreign")
    for id, frames in written.items():
        expected = frames.tolist() if eos else [*frames.tolist(), 0]
        assert store.read(id).durations.tolist() == expected
    assert hashes(tmp_path / "foreign") == before


def test_the_durations_in_a_dump_are_found(dump, tmp_path):
    for id, frames in add_durations(dump, tmp_path / "foreign").items():
        split = "train" if id in np.load(dump / "train_utt_ids.npy") else "valid"
        write_array(layout.DURATIONS.path(dump, split, id), frames)
    config = dump_config(dump, tmp_path / "data", aligner="imported")
    import_dump(config, "LJSpeech", dump, None, 1)
    assert FeatureStore(tmp_path / "data/LJSpeech").timed


def test_what_does_not_fit_is_left_out_and_named(dump, tmp_path):
    folder = tmp_path / "foreign"
    written = add_durations(dump, folder)
    kept = np.load(dump / "train_utt_ids.npy")[0]
    bad, negative, wrong, gone = (id for id in IDS if id != kept)
    paths = {path.name.removesuffix("-durations.npy"): path for path in folder.rglob("*.npy")}
    write_array(paths[bad], written[bad] + 1)
    turned = written[negative].copy()
    turned[-1], turned[0] = -1, turned[0] + turned[-1] + 1
    write_array(paths[negative], turned)
    write_array(file_of(dump, layout.F0, wrong), np.zeros(3, "f4"))
    file_of(dump, layout.RAW_MEL, gone).unlink()
    _, data, store = imported(dump, tmp_path / "data", folder, max_bad_ratio=0.9)
    assert list(store.ids) == [kept]
    reasons = {row["id"]: row["reason"] for row in read_jsonl(data / "rejected.jsonl")}
    assert "durations that sum to" in reasons[bad]
    assert "at least -1; expected whole" in reasons[negative]
    assert "(3,)" in reasons[wrong]
    assert "No such file" in reasons[gone]


def test_ids_of_no_symbol_are_named(dump, tmp_path):
    numbers = {IDS[0]: 0, IDS[1]: 1000}
    for id, number in numbers.items():
        path = file_of(dump, layout.IDS, id)
        write_array(path, np.full_like(np.load(path), number))
    _, data, _ = imported(dump, tmp_path / "data", max_bad_ratio=0.9)
    rejected = {row["id"]: row["reason"] for row in read_jsonl(data / "rejected.jsonl")}
    for id, number in numbers.items():
        assert f"ids from {number} to {number}, expected 1 to" in rejected[id]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, 4], "sum to 7 frames, for 3 tokens and a mel of 6"),
        ([1, 2, 3, 0, 0], "5 durations that sum to 6 frames, for 3 tokens"),
        ([-1, 2, 5], "at least -1; expected"),
        ([[1, 2, 3]], r"durations of shape \(1, 3\)"),
        ([1.5, 1.5, 3], "whole numbers"),
    ],
)
def test_impossible_durations_are_refused(values, message):
    with pytest.raises(FeatureError, match=message):
        checked_durations(np.array(values), n_tokens=3, n_frames=6)


def test_a_missing_eos_lasts_no_frame():
    assert checked_durations(np.array([4, 2]), n_tokens=3, n_frames=6).tolist() == [4, 2, 0]


def test_a_configuration_that_does_not_fit_the_dump_is_refused(original, tmp_path):
    with pytest.raises(InputError, match=r"mel is not that of the dump.*f_min 0.0 and 80.0"):
        imported(original, tmp_path / "data", f_min=0.0)
    with pytest.raises(InputError, match="a dump tensorflowtts_english and 0"):
        imported(original, tmp_path / "data", text=TextConfig())
    for aligner, dump, durations, message in (
        ("imported", original, None, "no durations of its utterances; give their folder"),
        ("learned", original, original, r"not read with preprocess\.aligner 'learned'"),
        ("learned", original / "nowhere", None, "nowhere: no such folder"),
    ):
        config = dump_config(original, tmp_path / "data", aligner=aligner)
        with pytest.raises(InputError, match=message):
            import_dump(config, "LJSpeech", dump, durations)
    assert not (tmp_path / "data").exists()


def test_a_dump_without_mel_definition_has_the_usual_one_and_only_its_symbols(dump, tmp_path):
    (dump / layout.MEL_DEFINITION).unlink()
    config, _, store = imported(dump, tmp_path / "data")
    assert store.mel == config.preprocess.mel
    with pytest.raises(InputError, match="mel is not that of the dump"):
        imported(dump, tmp_path / "other", f_max=8000.0)
    write_json(dump / layout.MAPPER, {"symbol_to_id": {"pad": 0}})
    with pytest.raises(InputError, match="symbols are not the 149"):
        imported(dump, tmp_path / "other")
