import math

import numpy as np
import pytest
import torch

from modules.mel import MelConfig, MelSpectrogram
from processors.metrics.families import copies
from processors.metrics.families.copies import PESQ_SECONDS, mel_l1, piece_spans, stoi
from processors.metrics.records import Copy
from processors.metrics.registry import METRICS
from tests.processors.metrics.packages import skip_without

MEL = MelConfig()


def noise(n_frames: int, seed: int = 0) -> np.ndarray:
    wav = np.random.default_rng(seed).normal(scale=0.1, size=n_frames * MEL.hop_length)
    return wav.astype(np.float32)


def score(name: str, wav: np.ndarray, wav_hat: np.ndarray, mel: MelConfig = MEL) -> float | None:
    value = METRICS[name].score(Copy(wav, wav_hat, mel))
    return None if value is None else value.value


@pytest.mark.parametrize("gain", [1.0, 0.5, 3.0])
def test_another_level_is_the_distance_of_its_logarithm(gain):
    wav, louder = noise(30), np.float32(gain) * noise(30)
    distance = abs(math.log(gain))
    value = METRICS["mel_l1"].score(Copy(wav, louder, MEL))
    assert value == (pytest.approx(distance, abs=1e-5), 30, "")
    assert score("mstft", wav, louder) == pytest.approx(abs(1 - gain) + distance, abs=1e-3)


def test_it_is_the_mean_over_bands_and_whole_frames():
    wav, wav_hat = noise(30), noise(30, seed=1)
    theirs, ours = MelSpectrogram(MEL)(torch.from_numpy(np.stack([wav, wav_hat]))).numpy()
    expected = np.abs(ours - theirs).mean()
    assert 0.3 < expected < 3
    assert score("mel_l1", wav, wav_hat) == pytest.approx(expected, rel=1e-5)
    longer, longer_hat = (np.append(each, np.ones(255, "f4")) for each in (wav, wav_hat))
    assert score("mel_l1", longer, longer_hat) == score("mel_l1", wav, wav_hat)


def test_pieces_weigh_as_much_as_they_are_long():
    a, b = noise(10), noise(30)
    value = mel_l1([(a, a), (b, np.float32(math.e) * b)], MelSpectrogram(MEL))
    assert value == pytest.approx(0.75, abs=1e-4)


def test_silence_and_what_is_too_short_have_no_score():
    wav = noise(20)
    assert score("mel_l1", wav[:100], wav[:100]) is None
    assert score("mstft", 0 * wav, wav) is None
    assert score("mstft", wav[: 7 * 256], wav[: 7 * 256]) is None
    assert score("mstft", wav, 0 * wav) > 1


RATE = 22050


def bursts(seconds: float, rate: int = RATE) -> np.ndarray:
    """Bursts of noise, four a second: as many stretches of speech."""
    n = round(seconds * rate)
    on = np.arange(n) / rate % 0.5 < 0.25
    return (0.1 * on * np.random.default_rng(0).normal(size=n)).astype(np.float32)


def test_more_noise_scores_less_and_none_the_highest():
    skip_without("pesq")
    wav = bursts(3)
    disturbance = np.random.default_rng(1).normal(size=len(wav)).astype(np.float32)
    scores = [score("pesq", wav, wav + level * disturbance) for level in (0, 1e-4, 1e-2)]
    assert scores[0] == pytest.approx(4.644, abs=1e-3)
    assert scores[0] > scores[1] > scores[2] > 1


def test_silence_nan_and_what_is_too_short_have_no_pesq():
    skip_without("pesq")
    wav = bursts(2)
    for pair in ((0 * wav, wav), (wav, 0 * wav), (wav, wav * np.nan), [bursts(0.1)] * 2):
        assert score("pesq", *pair) is None


def test_long_recordings_are_cut():
    """Uncut, the reference code would end the process."""
    skip_without("pesq")
    wav = bursts(3 * PESQ_SECONDS, 16000)
    worse = wav + np.float32(1e-3)
    worse[PESQ_SECONDS * 16000 :] = 1
    mel = MelConfig(sample_rate=16000)
    assert score("pesq", wav, worse, mel) == pytest.approx(4.64, abs=0.05)


STOI_RATE = 10000  # of the measure itself, so that nothing is resampled


def voice(seconds: float, seed: int = 0) -> np.ndarray:
    """Noise whose level moves about four times a second, as that of speech."""
    n = round(seconds * STOI_RATE)
    level = np.abs(np.sin(2 * np.pi * 2 * np.arange(n) / STOI_RATE)) + 0.05
    return (0.1 * level * np.random.default_rng(seed).normal(size=n)).astype(np.float32)


def test_a_copy_is_perfect_at_any_level_and_other_noise_is_not():
    skip_without("stoi")
    wav = voice(1)
    assert score("stoi", wav, 0.2 * wav) == pytest.approx(1, abs=1e-5)
    assert stoi(wav, voice(1, seed=1), STOI_RATE) < 0.9
    assert stoi(wav, np.zeros_like(wav), STOI_RATE) == pytest.approx(0, abs=1e-5)


def test_silence_and_what_is_too_short_have_no_stoi():
    skip_without("stoi")
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
