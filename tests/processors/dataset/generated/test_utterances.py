import numpy as np
import pytest

from modules.mel import MelConfig
from processors.dataset.generated.utterances import N_LJSPEECH, ljspeech_lengths, split_evenly
from utils.errors import InputError

HOURS = 3600 * 22050 / 256  # frames


def test_all_lengths_are_those_of_ljspeech():
    frames, phones = ljspeech_lengths(N_LJSPEECH, MelConfig())
    assert (len(frames), int(frames.min()), int(frames.max())) == (13092, 95, 869)
    assert frames.sum() / HOURS == pytest.approx(23.9, abs=0.1)
    assert (phones <= frames).all()


def test_a_few_lengths_are_spread_over_all():
    few, all_of_them = (ljspeech_lengths(n, MelConfig()).frames for n in (9, N_LJSPEECH))
    assert few[[0, 4, 8]].tolist() == [95, int(np.median(all_of_them)), 869]


def test_frames_of_another_hop_have_the_same_seconds():
    ours = ljspeech_lengths(50, MelConfig(sample_rate=24000, n_fft=2048, hop_length=300))
    assert (
        np.abs(ours.frames / 80 - ljspeech_lengths(50, MelConfig()).frames * 256 / 22050).max()
        < 0.01
    )


def test_more_utterances_than_ljspeech_has_are_refused():
    with pytest.raises(InputError, match="13093 generated utterances: expected 1 to 13092"):
        ljspeech_lengths(N_LJSPEECH + 1, MelConfig())


def test_both_parts_of_a_split_have_short_and_long_utterances():
    ids = [f"{number:03d}" for number in range(200)]
    split = split_evenly(ids)
    assert split.valid == ["025", "075", "125", "175"]
    assert sorted(split.train + split.valid) == ids
    with pytest.raises(InputError, match="expected 2, to train and to validate"):
        split_evenly(ids[:1])
