import math
from functools import partial

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from processors.dataset.batch import collate
from processors.dataset.sampler import Draw, FrameBudgetSampler
from processors.dataset.utterances import FeatureDataset, crop
from processors.text.symbols import Vocabulary, arpabet_vocabulary
from tests.models.training.small_tasks import make_features, make_processed
from utils.errors import InputError


@pytest.fixture
def store(tmp_path):
    return make_processed(tmp_path / "one")


def test_items_are_what_the_store_holds(store):
    vocabulary = arpabet_vocabulary()
    dataset = FeatureDataset([store], [["utt-003", "utt-001"]], vocabulary, ["zoe", "anna"])
    item, features = dataset[Draw(0, 1)], make_features(1)

    assert item.id == "utt-001"
    assert item.phone_ids.tolist() == vocabulary.ids(features.phones)
    assert item.speaker_id == 1
    assert torch.equal(item.mel, torch.from_numpy(features.mel))
    assert torch.equal(item.f0, torch.from_numpy(features.f0))
    assert dataset.lengths.tolist() == [make_features(3).mel.shape[1], features.mel.shape[1]]


def test_two_stores_make_one_dataset_even_with_equal_ids(store, tmp_path):
    other = make_processed(tmp_path / "two", speakers=("ben",))
    ids = [["utt-000"], ["utt-000", "utt-001"]]
    dataset = FeatureDataset([store, other], ids, arpabet_vocabulary(), ["anna", "ben"])

    assert [dataset[Draw(0, i)].speaker_id for i in range(3)] == [0, 1, 1]


def test_an_unknown_phone_is_named_with_its_utterance(store):
    dataset = FeatureDataset([store], [["utt-000"]], Vocabulary(["<pad>", "<sil>"]), ["anna"])

    with pytest.raises(InputError, match=r"utt-000: phones .* are not among the 2 symbols"):
        dataset[Draw(0, 0)]


def test_an_unknown_speaker_is_refused_at_once(store):
    with pytest.raises(InputError, match="utt-000 is spoken by 'anna', who is not among"):
        FeatureDataset([store], [["utt-000"]], arpabet_vocabulary(), ["ben"])


def test_a_missing_utterance_is_refused_at_once(store):
    with pytest.raises(InputError, match="no features of 'nobody'"):
        FeatureDataset([store], [["nobody"]], arpabet_vocabulary(), ["anna"])


def test_a_crop_is_a_run_of_phones_with_its_frames():
    features = make_features(1)
    part = crop(features, 3, np.random.default_rng(0))
    starts = [
        i for i in range(len(features.phones) - 2) if features.phones[i : i + 3] == part.phones
    ]
    edges = np.concatenate([[0], np.cumsum(features.durations)])

    assert len(part.phones) == len(part.durations) == 3
    assert any(
        np.array_equal(part.mel, features.mel[:, edges[i] : edges[i + 3]])
        and np.array_equal(part.f0, features.f0[edges[i] : edges[i + 3]])
        for i in starts
    )


def test_a_crop_without_frames_is_widened():
    features = make_features(1)
    features.durations[:] = 0
    features.durations[0] = features.mel.shape[1]
    part = crop(features, 1, np.random.default_rng(5))

    assert part.mel.shape == features.mel.shape
    assert part.durations.sum() == features.mel.shape[1]


def cropped_batches(store, n_workers, epochs):
    dataset = FeatureDataset(
        [store], [list(store.ids)], arpabet_vocabulary(), ["anna"], crop_phones=3, seed=1
    )
    sampler = FrameBudgetSampler(dataset.lengths, 40, seed=1)
    loader = DataLoader(
        dataset,
        batch_sampler=sampler,
        collate_fn=partial(collate, log_floor=math.log(1e-5)),
        num_workers=n_workers,
        persistent_workers=n_workers > 0,
    )
    for epoch in epochs:
        sampler.set_epoch(epoch)
        yield {
            id: ids.tolist()
            for batch in loader
            for id, ids in zip(batch.ids, batch.phone_ids, strict=True)
        }


def test_crops_change_by_epoch_and_are_the_same_in_worker_processes(store):
    first, second = cropped_batches(store, 0, (0, 1))
    assert first != second
    assert list(cropped_batches(store, 1, (0, 1))) == [first, second]


def test_crops_need_durations(tmp_path):
    store = make_processed(tmp_path / "three", timed=False)
    whole = FeatureDataset([store], [["utt-000"]], arpabet_vocabulary(), ["anna"])
    assert whole[Draw(0, 0)].durations is None
    with pytest.raises(InputError, match=r"three holds no durations.*train\.crop_phones to 0"):
        FeatureDataset([store], [["utt-000"]], arpabet_vocabulary(), ["anna"], crop_phones=3)
