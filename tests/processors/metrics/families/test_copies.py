import math

import numpy as np
import pytest
import torch

from modules.mel import MelConfig, MelSpectrogram
from processors.metrics.families import copies
from processors.metrics.families.copies import PESQ_SECONDS, mel_l1, piece_spans, stoi
from processors.metrics.records import Copy, missing_packages
from processors.metrics.registry import METRICS

MEL = MelConfig()


def noise(n_frames: int, seed: int = 0) -> np.ndarray:
    wav = np.random.default_rng(seed).normal(scale=0.1, size=n_frames * MEL.hop_length)
    return wav.astype(np.float32)


@pytest.mark.parametrize("gain", [1.0, 0.5, 3.0])
def test_another_level_is_the_distance_of_its_logarithm(gain):
    wav = noise(30)
    value, weight, note = METRICS["mel_l1"].score(Copy(wav, np.float32(gain) * wav, MEL))
    assert value == pytest.approx(abs(math.log(gain)), abs=1e-5)
    assert (weight, note) == (30, "")


def test_it_is_the_mean_over_bands_and_frames():
    wav, wav_hat = noise(30), noise(30, seed=1)
    theirs, ours = MelSpectrogram(MEL)(torch.from_numpy(np.stack([wav, wav_hat]))).numpy()
    expected = np.abs(ours - theirs).mean()
    assert 0.3 < expected < 3
    assert METRICS["mel_l1"].score(Copy(wav, wav_hat, MEL)).value == pytest.approx(
        expected, rel=1e-5
    )


def test_samples_after_the_last_whole_frame_do_not_count():
    wav = noise(30)
    longer = np.append(wav, np.ones(255, dtype=np.float32))
    assert METRICS["mel_l1"].score(Copy(longer, 0.5 * longer, MEL)) == METRICS["mel_l1"].score(
        Copy(wav, 0.5 * wav, MEL)
    )


def test_pieces_weigh_as_much_as_they_are_long():
    a, b = noise(10), noise(30)
    value = mel_l1([(a, a), (b, np.float32(math.e) * b)], MelSpectrogram(MEL))
    assert value == pytest.approx(0.75, abs=1e-4)


def test_less_than_a_frame_has_no_score():
    wav = noise(1)[:100]
    assert METRICS["mel_l1"].score(Copy(wav, wav, MEL)) is None


def noise_of(n_samples: int, seed: int = 0) -> np.ndarray:
    wav = np.random.default_rng(seed).normal(scale=0.1, size=n_samples)
    return wav.astype(np.float32)


@pytest.mark.parametrize("gain", [1.0, 0.5, 2.0])
def test_another_level_counts_twice(gain):
    wav = noise_of(20 * 256)
    value = METRICS["mstft"].score(Copy(wav, np.float32(gain) * wav, MEL)).value
    assert value == pytest.approx(abs(1 - gain) + abs(np.log(gain)), abs=1e-3)


def test_silence_and_what_is_shorter_than_a_window_have_no_score():
    wav = noise_of(20 * 256)
    assert METRICS["mstft"].score(Copy(np.zeros_like(wav), wav, MEL)) is None
    assert METRICS["mstft"].score(Copy(wav[: 7 * 256], wav[: 7 * 256], MEL)) is None
    assert METRICS["mstft"].score(Copy(wav, np.zeros_like(wav), MEL)).value > 1


RATE = 22050
needs_pesq = pytest.mark.skipif(
    bool(missing_packages(METRICS["pesq"].packages)), reason="pesq is not installed"
)
needs_stoi = pytest.mark.skipif(
    bool(missing_packages(METRICS["stoi"].packages)), reason="pystoi is not installed"
)


def bursts(seconds: float, rate: int = RATE) -> np.ndarray:
    """Bursts of noise, four a second: as many stretches of speech."""
    n = round(seconds * rate)
    on = np.arange(n) / rate % 0.5 < 0.25
    return (0.1 * on * np.random.default_rng(0).normal(size=n)).astype(np.float32)


def pesq(wav: np.ndarray, wav_hat: np.ndarray, rate: int) -> float | None:
    value = METRICS["pesq"].score(Copy(wav, wav_hat, MelConfig(sample_rate=rate)))
    return None if value is None else value.value


@needs_pesq
def test_more_noise_scores_less_and_none_the_highest():
    wav = bursts(3)
    disturbance = np.random.default_rng(1).normal(size=len(wav)).astype(np.float32)
    scores = [pesq(wav, wav + level * disturbance, RATE) for level in (0, 1e-4, 1e-2)]

    assert scores[0] == pytest.approx(4.644, abs=1e-3)
    assert scores[0] > scores[1] > scores[2] > 1


@needs_pesq
@pytest.mark.parametrize("silent", [0, 1])
def test_silence_has_no_score(silent):
    signals = [bursts(2), bursts(2)]
    signals[silent] = np.zeros_like(signals[0])

    assert pesq(*signals, RATE) is None


@needs_pesq
def test_what_is_not_a_number_or_too_short_has_no_score():
    wav = bursts(2)

    assert pesq(wav, np.full_like(wav, np.nan), RATE) is None
    assert pesq(bursts(0.1), bursts(0.1), RATE) is None


@needs_pesq
def test_long_recordings_are_cut():
    """Uncut, the reference code would end the process."""
    wav = bursts(3 * PESQ_SECONDS, 16000)
    worse = wav + np.float32(1e-3)
    worse[PESQ_SECONDS * 16000 :] = 1

    assert pesq(wav, worse, 16000) == pytest.approx(4.64, abs=0.05)


STOI_RATE = 10000  # of the measure itself, so that nothing is resampled


def voice(seconds: float, seed: int = 0) -> np.ndarray:
    """Noise whose level moves about four times a second, as that of speech."""
    n = round(seconds * STOI_RATE)
    level = np.abs(np.sin(2 * np.pi * 2 * np.arange(n) / STOI_RATE)) + 0.05
    return (0.1 * level * np.random.default_rng(seed).normal(size=n)).astype(np.float32)


@needs_stoi
def test_a_copy_is_perfect_at_any_level_and_other_noise_is_not():
    mel = MelConfig()
    wav = voice(1)
    assert METRICS["stoi"].score(Copy(wav, 0.2 * wav, mel)).value == pytest.approx(1, abs=1e-5)
    assert stoi(wav, voice(1, seed=1), STOI_RATE) < 0.9
    assert stoi(wav, np.zeros_like(wav), STOI_RATE) == pytest.approx(0, abs=1e-5)


@needs_stoi
def test_silence_and_what_is_too_short_have_no_score():
    wav = voice(1)
    assert stoi(np.zeros_like(wav), wav, STOI_RATE) is None
    assert stoi(wav[:3999], wav[:3999], STOI_RATE) is None
    click = np.zeros(STOI_RATE, dtype=np.float32)
    click[5000:5500] = 0.5  # all the rest is more than 40 dB below
    assert stoi(click, click, STOI_RATE) is None


def test_pieces_cover_every_frame_once_and_are_not_too_long(monkeypatch):
    monkeypatch.setattr(copies, "_PIECE_FRAMES", 32)
    spans = list(piece_spans(100 * 256 + 17, 256))
    assert [span.start for span in spans[1:]] == [span.stop for span in spans[:-1]]
    assert (spans[0].start, spans[-1].stop) == (0, 100 * 256)
    assert [(span.stop - span.start) / 256 for span in spans] == [25] * 4
    assert list(piece_spans(32 * 256, 256)) == [slice(0, 32 * 256)]
    assert list(piece_spans(255, 256)) == []


def test_a_mean_counts_samples_and_leaves_out_what_has_no_value():
    values = {10: 1.0, 30: 2.0, 60: None}
    parts = [(np.zeros(n), np.zeros(n)) for n in values]
    assert copies._mean_over(parts, lambda wav, _: values[len(wav)]) == (10 * 1 + 30 * 2) / 40
    assert copies._mean_over(parts[2:], lambda wav, _: values[len(wav)]) is None
