import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from modules.mel import MelSpectrogram
from processors.dataset.datasets import FeatureDataset, MelWavDataset, SegmentDataset, crop
from processors.dataset.sampler import Draw, FrameBudgetSampler
from processors.dataset.store import FeatureStore
from processors.records import WordPhones
from processors.text import letters
from processors.text.voice_phones import Vocabulary, arpabet_vocabulary, vocabulary_of
from tests.models.training.small_tasks import PREPROCESS, make_features, make_processed
from tests.processors.mel_wavs import FRAMES, MEL, make_mel_wav_store
from tests.processors.stores import write_store
from utils.errors import InputError

FLOOR = math.log(1e-5)


@pytest.fixture
def store(tmp_path):
    return make_processed(tmp_path / "one")


def test_items_are_what_the_stores_hold_even_with_equal_ids(store, tmp_path):
    vocabulary = arpabet_vocabulary()
    dataset = FeatureDataset([store], [["utt-003", "utt-001"]], vocabulary, ["zoe", "anna"])
    item, features = dataset[Draw(0, 1)], make_features(1)
    assert item.id == "utt-001"
    assert item.phone_ids.tolist() == vocabulary.ids(features.phones)
    assert item.speaker_id == 1
    assert torch.equal(item.mel, torch.from_numpy(features.mel))
    assert torch.equal(item.f0, torch.from_numpy(features.f0))
    assert dataset.lengths.tolist() == [make_features(3).mel.shape[1], features.mel.shape[1]]
    other = make_processed(tmp_path / "two", speakers=("ben",))
    ids = [["utt-000"], ["utt-000", "utt-001"]]
    dataset = FeatureDataset([store, other], ids, arpabet_vocabulary(), ["anna", "ben"])
    assert [dataset[Draw(0, i)].speaker_id for i in range(3)] == [0, 1, 1]


def test_an_unknown_phone_is_named_and_unknown_speakers_and_utterances_refused_at_once(store):
    dataset = FeatureDataset([store], [["utt-000"]], Vocabulary(["<pad>", "<sil>"]), ["anna"])
    with pytest.raises(InputError, match=r"utt-000: phones .* are not among the 2 symbols"):
        dataset[Draw(0, 0)]
    with pytest.raises(InputError, match="the speaker of utt-000, 'anna', is not among"):
        FeatureDataset([store], [["utt-000"]], arpabet_vocabulary(), ["ben"])
    with pytest.raises(InputError, match="no features of 'nobody'"):
        FeatureDataset([store], [["nobody"]], arpabet_vocabulary(), ["anna"])


def test_a_crop_is_a_run_of_phones_with_its_frames_and_widened_where_it_has_none():
    features = make_features(1)
    part = crop(features, 3, np.random.default_rng(0))
    edges = np.concatenate([[0], np.cumsum(features.durations)])
    runs = [
        (features.phones[i : i + 3], slice(edges[i], edges[i + 3])) for i in range(len(edges) - 3)
    ]
    frames = [frames for phones, frames in runs if phones == part.phones]
    assert len(part.phones) == len(part.durations) == 3
    assert any(
        np.array_equal(part.mel, features.mel[:, span])
        and np.array_equal(part.f0, features.f0[span])
        for span in frames
    )
    features.durations[:] = 0
    features.durations[0] = features.mel.shape[1]
    part = crop(features, 1, np.random.default_rng(5))
    assert part.mel.shape == features.mel.shape
    assert part.durations.sum() == features.mel.shape[1]


def two_epochs(dataset, budget, n_workers):
    """Items of two epochs by id, as a loader with so many processes reads them."""
    sampler = FrameBudgetSampler(dataset.lengths, budget, seed=1)
    options = {"num_workers": n_workers, "persistent_workers": n_workers > 0}
    loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=list, **options)
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        items = (item for batch in loader for item in batch)
        yield {id: [part.tolist() for part in rest if torch.is_tensor(part)] for id, *rest in items}


def test_crops_change_by_epoch_and_are_the_same_in_worker_processes(store):
    ids, names = [list(store.ids)], arpabet_vocabulary()
    dataset = FeatureDataset([store], ids, names, ["anna"], crop_phones=3, seed=1)
    first, second = two_epochs(dataset, 40, 0)
    assert first != second
    assert list(two_epochs(dataset, 40, 1)) == [first, second]


def test_crops_need_durations(tmp_path):
    store = make_processed(tmp_path / "three", timed=False)
    whole = FeatureDataset([store], [["utt-000"]], arpabet_vocabulary(), ["anna"])
    assert whole[Draw(0, 0)].durations is None
    with pytest.raises(InputError, match=r"three holds no durations.*train\.crop_phones to 0"):
        FeatureDataset([store], [["utt-000"]], arpabet_vocabulary(), ["anna"], crop_phones=3)


@pytest.fixture
def recordings(tmp_path):
    return make_mel_wav_store(tmp_path / "recordings")


def segments_of(recordings, **options):
    return SegmentDataset([recordings], [recordings.ids], n_frames=16, log_floor=FLOOR, **options)


def test_all_segments_are_of_one_length(recordings):
    dataset = segments_of(recordings)
    assert dataset.lengths.tolist() == [16] * len(FRAMES)
    for item in range(len(dataset)):
        segment = dataset[Draw(0, item)]
        assert segment.mel.shape == (8, 16)
        assert segment.wav.shape == (16 * 64,)
        assert segment.mel.dtype == segment.wav.dtype == torch.float32


def test_the_mel_of_a_segment_is_that_of_its_wav(recordings):
    mel_of, margin = MelSpectrogram(MEL), 2  # frames that the reflection at the edges reaches
    for epoch in range(3):
        for item in range(2, len(FRAMES)):  # not the shorter ones
            segment = segments_of(recordings)[Draw(epoch, item)]
            mel = mel_of(segment.wav[None])[0]
            inside = slice(margin, -margin)
            torch.testing.assert_close(mel[:, inside], segment.mel[:, inside], atol=2e-4, rtol=0)


def test_a_segment_is_a_part_of_its_recording_at_any_place(recordings):
    dataset, recording = segments_of(recordings), recordings.read("rec-003")
    starts = set()
    parts = [recording.mel[:, first : first + 16] for first in range(25)]
    for epoch in range(200):
        mel = dataset[Draw(epoch, 3)].mel.numpy()
        (start,) = (first for first, part in enumerate(parts) if (part == mel).all())
        starts.add(start)
    assert starts == set(range(25))  # the last frame too


def test_segments_are_a_function_of_seed_epoch_and_id(recordings, tmp_path):
    other = make_mel_wav_store(tmp_path / "two")
    dataset = segments_of(recordings)
    moved = SegmentDataset([other], [["rec-006", "rec-003"]], n_frames=16, log_floor=FLOOR)
    for epoch in range(4):
        assert torch.equal(dataset[Draw(epoch, 6)].wav, moved[Draw(epoch, 0)].wav)
        assert torch.equal(dataset[Draw(epoch, 3)].mel, moved[Draw(epoch, 1)].mel)
    wavs = [dataset[Draw(epoch, 6)].wav for epoch in range(4)]
    wavs += [segments_of(recordings, seed=1)[Draw(0, 6)].wav]
    assert len({tuple(wav.tolist()) for wav in wavs}) > 3


def test_a_recording_of_just_one_segment_is_given_whole_and_a_shorter_one_with_silence(recordings):
    segment = segments_of(recordings)[Draw(0, 1)]
    assert torch.equal(segment.mel, torch.from_numpy(recordings.read("rec-001").mel))
    segment, recording = segments_of(recordings)[Draw(3, 0)], recordings.read("rec-000")
    assert torch.equal(segment.mel[:, :5], torch.from_numpy(recording.mel))
    assert torch.equal(segment.mel[:, 5:], torch.full((8, 11), FLOOR))
    assert segment.wav[: 5 * 64].abs().max() > 0.2
    assert not segment.wav[5 * 64 :].any()


def test_segments_are_the_same_in_worker_processes(recordings):
    here = list(two_epochs(segments_of(recordings), 4 * 16, 0))
    assert here[0] != here[1]
    assert list(two_epochs(segments_of(recordings), 4 * 16, 1)) == here


def test_validation_takes_the_beginning_of_each_recording(recordings):
    dataset = MelWavDataset([recordings], [["rec-003", "rec-006"]], longest_s=0.4)
    assert dataset.lengths.tolist() == [40, 50]  # 0.4 s are 50 frames
    item, recording = dataset[Draw(7, 1)], recordings.read("rec-006")
    assert torch.equal(item.mel, torch.from_numpy(recording.mel[:, :50]))
    assert item.wav.shape == (50 * 64,)


def test_a_missing_recording_is_refused_at_once(recordings):
    with pytest.raises(InputError, match="no features of 'nobody'"):
        SegmentDataset([recordings], [["nobody"]], n_frames=4, log_floor=FLOOR)
    with pytest.raises(InputError, match="no features of 'nobody'"):
        MelWavDataset([recordings], [["nobody"]], longest_s=1.0)


def test_long_recordings_can_give_several_segments_of_an_epoch(recordings):
    seconds = recordings.seconds
    rate = 2.5 / float(seconds.min())  # segments per second
    dataset = segments_of(recordings, per_second=[rate])
    counts = [dataset.ids.count(id) for id in recordings.ids]
    assert counts == [max(1, round(rate * float(s))) for s in seconds]
    assert max(counts) > 2
    longest = [item for item, id in enumerate(dataset.ids) if id == recordings.ids[-1]]
    wavs = {tuple(dataset[Draw(0, item)].wav.tolist()) for item in longest}
    assert len(wavs) > len(longest) // 2  # drawn one by one


LETTERS = ("<sil>", *"ahouse", "<space>", *"dog", "<space>", *"zzz", "<.>")
WORDS = (WordPhones(0, 1, 7, ("AA1", "B")), WordPhones(1, 8, 11, ("D", "S", "T", "S")))
MIXED = vocabulary_of([*LETTERS, "AA1", "B", "D", "S", "T"])


@pytest.fixture
def mixed_store(tmp_path):
    """Twelve utterances of three words, of which the first two have phones."""
    changes = {"phones": LETTERS, "durations": None, "word_phones": WORDS}
    items = [replace(make_features(i), **changes) for i in range(12)]
    return FeatureStore(write_store(tmp_path, PREPROCESS.mel, items))


def mixed_dataset(store, p_arpabet, seed=3):
    ids = [list(store.ids)]
    return FeatureDataset([store], ids, MIXED, ["anna"], p_arpabet=p_arpabet, seed=seed)


@pytest.mark.parametrize(
    ("p_arpabet", "phones"),
    [(0.0, " ".join(LETTERS)), (1.0, "<sil> AA1 B <space> D S T S <space> z z z <.>")],
)
def test_words_are_in_letters_or_in_phones(mixed_store, p_arpabet, phones):
    dataset = mixed_dataset(mixed_store, p_arpabet)
    assert dataset[Draw(0, 5)].phone_ids.tolist() == MIXED.ids(phones.split())
    assert dataset.features(Draw(0, 5)).phones == tuple(phones.split())


def test_the_most_phones_of_an_item_are_those_of_its_longest_mixture(mixed_store):
    # "house" has two phones for six letters, "dog" four for three
    assert mixed_dataset(mixed_store, 0.5).phone_counts().tolist() == [len(LETTERS) + 1] * 12


def sequences(items):
    return {item.id: item.phone_ids.tolist() for item in items}


def test_mixtures_change_with_epoch_and_seed_and_follow_the_draw(mixed_store):
    dataset = mixed_dataset(mixed_store, 0.5)
    epochs = [sequences(dataset[Draw(epoch, i)] for i in range(12)) for epoch in range(2)]
    other_seed = mixed_dataset(mixed_store, 0.5, seed=4)
    assert epochs[0] != epochs[1]
    assert epochs[0] != sequences(other_seed[Draw(0, i)] for i in range(12))
    chosen = letters.draw(WORDS, 0.5, 3, 1, "utt-007")
    assert epochs[1]["utt-007"] == MIXED.ids(letters.substitute(LETTERS, chosen))


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_mixtures_do_not_depend_on_workers_or_on_the_order_of_epochs(mixed_store):
    dataset = mixed_dataset(mixed_store, 0.5)
    draws = [Draw(epoch, item) for epoch in (0, 1) for item in range(12)]
    expected = [dataset[draw].phone_ids.tolist() for draw in reversed(draws)][::-1]
    batches = [draws[start : start + 4] for start in range(0, len(draws), 4)]
    loader = DataLoader(dataset, batch_sampler=batches, num_workers=2, collate_fn=list)
    assert [item.phone_ids.tolist() for batch in loader for item in batch] == expected
