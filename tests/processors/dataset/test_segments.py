import math
from functools import partial

import pytest
import torch
from torch.utils.data import DataLoader

from modules.mel import MelSpectrogram
from processors.dataset.sampler import Draw, FrameBudgetSampler
from processors.dataset.segments import RecordingDataset, SegmentDataset
from tests.processors.recordings import FRAMES, MEL, make_recorded
from utils.errors import InputError

FLOOR = math.log(1e-5)


@pytest.fixture
def store(tmp_path):
    return make_recorded(tmp_path / "one")


def segments_of(store, n_frames=16, seed=0):
    return SegmentDataset([store], [store.ids], n_frames=n_frames, log_floor=FLOOR, seed=seed)


def test_all_segments_are_of_one_length(store):
    dataset = segments_of(store)
    assert dataset.lengths.tolist() == [16] * len(FRAMES)
    for item in range(len(dataset)):
        segment = dataset[Draw(0, item)]
        assert segment.mel.shape == (8, 16)
        assert segment.wav.shape == (16 * 64,)
        assert segment.mel.dtype == segment.wav.dtype == torch.float32


def test_the_mel_of_a_segment_is_that_of_its_wav(store):
    mel_of, margin = MelSpectrogram(MEL), 2  # frames that the reflection at the edges reaches
    for epoch in range(3):
        for item in range(2, len(FRAMES)):  # not the shorter ones
            segment = segments_of(store)[Draw(epoch, item)]
            mel = mel_of(segment.wav[None])[0]
            inside = slice(margin, -margin)
            torch.testing.assert_close(mel[:, inside], segment.mel[:, inside], atol=2e-4, rtol=0)


def test_a_segment_is_a_part_of_its_recording_at_any_place(store):
    dataset, recording = segments_of(store), store.read("rec-003")
    starts = set()
    for epoch in range(200):
        mel = dataset[Draw(epoch, 3)].mel
        (start,) = (
            first
            for first in range(25)
            if (recording.mel[:, first : first + 16] == mel.numpy()).all()
        )
        starts.add(start)
    assert starts == set(range(25))  # the last frame too


def test_segments_are_a_function_of_seed_epoch_and_id(store, tmp_path):
    other = make_recorded(tmp_path / "two")
    dataset = segments_of(store)
    moved = SegmentDataset([other], [["rec-006", "rec-003"]], n_frames=16, log_floor=FLOOR)
    for epoch in range(4):
        assert torch.equal(dataset[Draw(epoch, 6)].wav, moved[Draw(epoch, 0)].wav)
        assert torch.equal(dataset[Draw(epoch, 3)].mel, moved[Draw(epoch, 1)].mel)
    wavs = [dataset[Draw(epoch, 6)].wav for epoch in range(4)]
    wavs += [segments_of(store, seed=1)[Draw(0, 6)].wav]
    assert len({tuple(wav.tolist()) for wav in wavs}) > 3


def test_a_shorter_recording_is_followed_by_silence(store):
    segment, recording = segments_of(store)[Draw(3, 0)], store.read("rec-000")
    assert torch.equal(segment.mel[:, :5], torch.from_numpy(recording.mel))
    assert torch.equal(segment.mel[:, 5:], torch.full((8, 11), FLOOR))
    assert segment.wav[: 5 * 64].abs().max() > 0.2
    assert not segment.wav[5 * 64 :].any()


def test_a_recording_of_just_one_segment_is_given_whole(store):
    segment = segments_of(store)[Draw(0, 1)]
    assert torch.equal(segment.mel, torch.from_numpy(store.read("rec-001").mel))


def segments_by_id(store, n_workers, epochs):
    sampler = FrameBudgetSampler(segments_of(store).lengths, 4 * 16, seed=1)
    loader = DataLoader(
        segments_of(store),
        batch_sampler=sampler,
        collate_fn=list,
        num_workers=n_workers,
        persistent_workers=n_workers > 0,
    )
    for epoch in epochs:
        sampler.set_epoch(epoch)
        yield {item.id: item.wav.tolist() for batch in loader for item in batch}


def test_segments_are_the_same_in_worker_processes(store):
    here = list(segments_by_id(store, 0, (0, 1)))
    assert here[0] != here[1]
    assert list(segments_by_id(store, 1, (0, 1))) == here


def test_validation_takes_the_beginning_of_each_recording(store):
    dataset = RecordingDataset([store], [["rec-003", "rec-006"]], longest_s=0.4)
    assert dataset.lengths.tolist() == [40, 50]  # 0.4 s are 50 frames
    item, recording = dataset[Draw(7, 1)], store.read("rec-006")
    assert torch.equal(item.mel, torch.from_numpy(recording.mel[:, :50]))
    assert item.wav.shape == (50 * 64,)


@pytest.mark.parametrize(
    "make",
    [
        partial(SegmentDataset, n_frames=4, log_floor=FLOOR),
        partial(RecordingDataset, longest_s=1.0),
    ],
)
def test_a_missing_recording_is_refused_at_once(make, store):
    with pytest.raises(InputError, match="no features of 'nobody'"):
        make([store], [["nobody"]])


def test_long_recordings_can_give_several_segments_of_an_epoch(store):
    seconds = store.seconds
    rate = 2.5 / float(seconds.min())  # segments per second
    dataset = SegmentDataset([store], [store.ids], n_frames=16, log_floor=FLOOR, per_second=[rate])
    counts = [dataset.ids.count(id) for id in store.ids]
    assert counts == [max(1, round(rate * float(s))) for s in seconds]
    assert max(counts) > 2
    longest = [item for item, id in enumerate(dataset.ids) if id == store.ids[-1]]
    wavs = {tuple(dataset[Draw(0, item)].wav.tolist()) for item in longest}
    assert len(wavs) > len(longest) // 2  # drawn one by one
