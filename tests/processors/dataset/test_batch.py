import math

import pytest
import torch

from processors.dataset.batch import TtsItem, VocoderItem, collate, collate_vocoder, on_device
from processors.dataset.sampler import Shape
from utils.errors import InputError

FLOOR = math.log(1e-5)


def item(id="a", durations=(2, 0, 1), phones=3, frames=3, **changes):
    timed = None if durations is None else torch.tensor(durations)
    mel, ones = torch.ones(2, frames) * frames, torch.ones(frames)
    made = TtsItem(id, torch.arange(1, phones + 1), 4, timed, mel, 100 * ones, 2 * ones)
    return made._replace(**changes)


def test_shorter_items_are_padded_with_silence():
    mel = torch.randn(2, 3)
    batch = collate([item(mel=mel), item("b", durations=(1,), phones=1, frames=1)], FLOOR)
    assert batch.ids == ("a", "b")
    assert batch.phone_ids.tolist() == [[1, 2, 3], [1, 0, 0]]
    assert batch.phone_lengths.tolist() == [3, 1]
    assert batch.speaker_ids.tolist() == [4, 4]
    assert batch.durations.tolist() == [[2, 0, 1], [1, 0, 0]]
    assert torch.equal(batch.mel[0], mel)
    assert batch.mel[1].tolist() == [[1, pytest.approx(FLOOR), pytest.approx(FLOOR)]] * 2
    assert batch.mel_lengths.tolist() == [3, 1]
    assert batch.f0[1].tolist() == [100, 0, 0]
    assert batch.energy[1].tolist() == [2, 0, 0]


def test_utterances_are_padded_to_the_smallest_shape_that_holds_all():
    items = [item(), item("b", durations=(1,), phones=1, frames=1)]
    shapes = Shape(3, 2), Shape(4, 5), Shape(9, 9)
    batch, expected = collate(items, FLOOR, shapes), collate(items, FLOOR)
    assert batch.phone_ids.tolist() == [[1, 2, 3, 0], [1, 0, 0, 0]]
    assert batch.durations.tolist() == [[2, 0, 1, 0], [1, 0, 0, 0]]
    assert batch.mel.shape == (2, 2, 5)
    assert torch.equal(batch.mel[:, :, :3], expected.mel)
    assert batch.mel[:, :, 3:].unique().tolist() == [pytest.approx(FLOOR)]
    assert batch.f0[0].tolist() == [100, 100, 100, 0, 0]
    assert batch.energy[0].tolist() == [2, 2, 2, 0, 0]
    assert torch.equal(batch.mel_lengths, expected.mel_lengths)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"durations": (2, 1, 1)}, "bad: durations sum to 4 frames, the mel has 3; run stage 1"),
        ({"durations": (4, -2, 1)}, "bad: durations sum to 3"),
        ({"durations": (2, 1)}, "bad: 3 phones and 2 durations"),
        ({"f0": torch.ones(4)}, "bad: f0 has 4 frames, the mel has 3"),
        ({"energy": torch.ones(2)}, "bad: energy has 2 frames"),
        ({"mel": torch.full((2, 3), math.nan)}, "bad: mel holds numbers that are not finite"),
        ({"durations": (), "phones": 0, "frames": 0}, "bad: 0 phones and 0 frames"),
        ({"durations": None}, "bad: no durations, where other utterances have them"),
    ],
)
def test_an_utterance_that_contradicts_itself_is_named(fault, message):
    with pytest.raises(InputError, match=message):
        collate([item("good"), item("bad", **fault)], FLOOR)


def recording(id: str, n_frames: int, hop: int = 4) -> VocoderItem:
    return VocoderItem(id, torch.randn(3, n_frames), torch.rand(n_frames * hop))


def test_recordings_are_padded_with_silence():
    items = [recording("a", 2), recording("b", 5)]
    batch = collate_vocoder(items, hop_length=4, log_floor=-11.5)
    assert batch.ids == ("a", "b")
    assert batch.mel_lengths.tolist() == [2, 5]
    assert torch.equal(batch.mel[0, :, :2], items[0].mel)
    assert torch.equal(batch.mel[0, :, 2:], torch.full((3, 3), -11.5))
    assert torch.equal(batch.wav[0], torch.cat([items[0].wav, torch.zeros(12)]))
    assert torch.equal(batch.wav[1], items[1].wav)
    assert batch.mel.is_contiguous()


NAN = VocoderItem("b", torch.full((3, 1), torch.nan), torch.zeros(4))


@pytest.mark.parametrize(
    ("item", "fault"),
    [(recording("b", 5, hop=3), "b: 15 samples and 5 frames; expected 4 samples per frame"),
     (recording("b", 0), "b: 0 samples and 0 frames"), (NAN, "b: mel holds numbers")],
)  # fmt: skip
def test_a_faulty_recording_is_named(item, fault):
    with pytest.raises(InputError, match=fault):
        collate_vocoder([recording("a", 2), item], hop_length=4, log_floor=-11.5)


def test_without_durations_there_are_none_in_the_batch_and_each_phone_needs_a_frame():
    batch = collate([item(durations=None), item("b", None, 1, 1)], FLOOR)
    assert batch.durations is None
    assert batch.phone_ids.tolist() == [[1, 2, 3], [1, 0, 0]]
    assert on_device(batch, torch.device("cpu")).durations is None
    with pytest.raises(InputError, match="bad: 3 phones and 2 frames; there must be a frame"):
        collate([item("bad", None, frames=2)], FLOOR)
