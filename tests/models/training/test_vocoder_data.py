import json
from collections import Counter

import pytest
import torch

from models.base.registry import load_config
from models.training.data import ProcessRank, collect_assets, load_data
from tests.models.training.small_tasks import make_processed, train_config
from tests.processors.recordings import FRAMES, MEL, make_recorded
from utils.config import to_plain
from utils.errors import InputError

CPU = torch.device("cpu")
PREPROCESS = {
    **{"sample_rate": 8000, "n_fft": 256, "win_size": 256, "hop_size": 64, "n_mel": 8},
    **{"fmax": 4000, "mel_padding": "hifigan"},
}
GENERATOR = {
    "resblock": "2",
    "upsample_rates": [8, 8],
    "upsample_kernel_sizes": [16, 16],
    "upsample_initial_channel": 8,
    "resblock_kernel_sizes": [3],
    "resblock_dilation_sizes": [[1, 2]],
}


def config_of(root, *overrides, dataset=("mini",), **train):
    plain = {
        "task": "vocoder",
        "model_type": "HiFiGAN",
        "dataset": list(dataset),
        "dataset_path": dict.fromkeys(dataset, "corpus"),
        "log_dir": str(root / "ckpts"),
        "model": {"generator": GENERATOR},
        "preprocess": PREPROCESS | {"processed_dir": str(root / "data")},
        "train": to_plain(train_config(cut_mel_frame=16, **train)),
    }
    path = root / "exp_config.json"
    path.write_text(json.dumps(plain))
    return load_config(path, overrides)


@pytest.fixture
def root(tmp_path):
    make_recorded(tmp_path / "data" / "mini")
    return tmp_path


def load(config, place=ProcessRank()):  # noqa: B008
    return load_data(config, collect_assets(config), place, CPU)


def test_a_vocoder_needs_the_mel_and_no_text(root):
    assets = collect_assets(config_of(root))
    assert assets.mel == MEL
    assert (assets.vocabulary, assets.stats, assets.lexicon) == (None, None, None)
    assert [speaker.name for speaker in assets.speakers] == ["anna"]


def test_an_epoch_holds_one_segment_of_every_training_recording(root):
    make_recorded(root / "data" / "more", FRAMES[:7])
    data = load(config_of(root, dataset=("mini", "more"), batch_size=4))
    for epoch in range(3):
        data.sampler.set_epoch(epoch)
        batches = list(data.train)
        assert sorted(len(batch.ids) for batch in batches) == [1, 4, 4]
        ids = Counter(id for batch in batches for id in batch.ids)
        numbers = Counter([*range(6), *range(3)])
        assert ids == {f"rec-{number:03d}": n for number, n in numbers.items()}
        for batch in batches:
            assert batch.mel.shape == (len(batch.ids), 8, 16)
            assert batch.wav.shape == (len(batch.ids), 16 * 64)


def test_processes_share_an_epoch(root):
    parts = [load(config_of(root, batch_size=2), ProcessRank(rank, 2)) for rank in range(2)]
    ids = [id for part in parts for batch in part.train for id in batch.ids]
    assert len(parts[0].sampler) == len(parts[1].sampler)
    assert sorted(ids) == [f"rec-{number:03d}" for number in range(6)]


def test_an_interrupted_epoch_goes_on_with_the_same_segments(root):
    whole, rest = load(config_of(root, batch_size=2)), load(config_of(root, batch_size=2))
    whole.sampler.set_epoch(5)
    expected = list(whole.train)
    rest.sampler.set_epoch(5, start=1)
    found = list(rest.train)
    assert [batch.ids for batch in found] == [batch.ids for batch in expected[1:]]
    for ours, theirs in zip(found, expected[1:], strict=True):
        assert torch.equal(ours.wav, theirs.wav)
        assert torch.equal(ours.mel, theirs.mel)
    assert whole.plan == rest.plan


def test_the_plan_changes_with_the_segments(root):
    plan = load(config_of(root)).plan
    assert load(config_of(root, "train.cut_mel_frame=20")).plan != plan
    assert load(config_of(root, "train.batch_size=2")).plan != plan
    assert load(config_of(root, "train.log_steps=7")).plan == plan


def test_whole_recordings_validate_and_are_spoken(root):
    data = load(config_of(root, valid_samples=1))
    batches = list(data.valid)
    assert sorted(id for batch in batches for id in batch.ids) == ["rec-006", "rec-007"]
    assert sorted(int(n) for batch in batches for n in batch.mel_lengths) == [25, 90]
    assert data.samples.ids == ("rec-006",)
    assert data.samples.wav.shape == (1, 90 * 64)


def test_long_recordings_validate_by_their_first_ten_seconds(tmp_path):
    make_recorded(tmp_path / "data" / "mini", (20, 20, 20, 20, 1300, 20, 20))
    data = load(config_of(tmp_path))
    lengths = [int(n) for batch in data.valid for n in batch.mel_lengths]
    assert sorted(lengths) == [20, 1250]


def test_recordings_of_another_mel_are_refused(root):
    with pytest.raises(InputError, match="padding is hifigan, expected centre"):
        collect_assets(config_of(root, "preprocess.mel_padding=centre"))


def test_features_of_an_acoustic_model_are_refused(tmp_path):
    make_processed(tmp_path / "data" / "mini")
    with pytest.raises(InputError, match=r"no audio; run stage 1 of a vocoder"):
        collect_assets(config_of(tmp_path, "preprocess.mel_padding=centre"))


def test_segments_shorter_than_a_window_are_refused(root):
    with pytest.raises(InputError, match=r"cut_mel_frame 3: segments of 192 samples are shorter"):
        load(config_of(root, "train.cut_mel_frame=3"))
