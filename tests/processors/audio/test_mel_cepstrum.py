import numpy as np
import pytest

from processors.audio import mel_cepstrum
from processors.audio.mel_cepstrum import N_FFT, ORDER, log_envelopes, mel_alpha, mel_cepstra

RATE = 16000
HOP = 80
TINY = 1e-12
K = 513


def log_envelope(*arguments) -> np.ndarray:
    return np.concatenate(list(log_envelopes(*arguments)))


def pulses(f0: float, seconds: float = 0.5) -> np.ndarray:
    """Pulses of one sample in height 1."""
    wav = np.zeros(round(seconds * RATE))
    wav[np.rint(np.arange(0.01, seconds, 1 / f0) * RATE).astype(int)] = 1
    return wav


def resonance(wav: np.ndarray, pole: complex) -> np.ndarray:
    """Through a filter of two poles, which are conjugates."""
    out = np.zeros_like(wav)
    for n, value in enumerate(wav):
        out[n] = value + 2 * pole.real * out[n - 1] - abs(pole) ** 2 * out[n - 2]
    return out


def middle(envelope: np.ndarray) -> np.ndarray:
    """The mean over frames away from the ends, (K,)."""
    return envelope[len(envelope) // 4 : -len(envelope) // 4].mean(axis=0)


@pytest.mark.parametrize("f0", [80.0, 160.0, 320.0])
def test_the_envelope_of_a_voice_is_its_filter_at_any_pitch(f0):
    pole = 0.95 * np.exp(2j * np.pi * 1000 / RATE)
    wav = resonance(pulses(f0), pole)
    envelope = middle(log_envelope(wav, RATE, np.full(len(wav) // HOP, f0), HOP, TINY))
    z = np.exp(-2j * np.pi * np.arange(N_FFT // 2 + 1) / N_FFT)
    power = np.abs(1 / (1 - pole * z) / (1 - pole.conjugate() * z)) ** 2 * f0 / RATE
    error_db = 10 / np.log(10) * (envelope - np.log(power))
    assert np.median(np.abs(error_db)) < 0.3
    assert np.abs(error_db).max() < 3


def test_noise_has_its_variance_in_every_bin():
    noise = np.random.default_rng(0).normal(scale=0.1, size=5 * RATE)
    envelope = log_envelope(noise, RATE, np.zeros(len(noise) // HOP), HOP, TINY)
    assert np.log(np.exp(envelope).mean(axis=0)) == pytest.approx(np.log(0.01), abs=0.5)


def test_a_floor_is_the_power_of_noise_and_the_shortest_sounds_have_an_envelope():
    for n_samples in (1, 2, 100):
        envelope = log_envelope(np.ones(n_samples), RATE, np.array([0.0, 70.0]), HOP, 1e-6)
        assert np.isfinite(envelope).all()
    envelope = log_envelope(np.zeros(2000), RATE, np.zeros(25), HOP, 1e-6)
    assert envelope.shape == (25, N_FFT // 2 + 1)
    assert envelope == pytest.approx(np.log(1e-6))


def test_a_gain_adds_its_logarithm_and_an_offset_nothing():
    wav = resonance(pulses(120), 0.9 + 0.2j)
    f0 = np.full(100, 120.0)
    envelope = log_envelope(wav, RATE, f0, HOP, TINY)
    inside = slice(10, 90)  # at the ends it is as if the offset began there
    louder = log_envelope(2 * wav + 0.3, RATE, f0, HOP, TINY)
    assert louder[inside] == pytest.approx(envelope[inside] + np.log(4), abs=1e-6)


def test_frames_are_the_same_however_many_are_analysed_at_once():
    wav = np.random.default_rng(0).normal(size=300 * HOP)
    f0 = np.where(np.arange(300) % 7 < 3, 0, 100 + np.arange(300) / 3)
    whole = log_envelope(wav, RATE, f0, HOP, TINY)
    part = log_envelope(wav[200 * HOP :], RATE, f0[200:], HOP, TINY)
    assert part[10:-10] == pytest.approx(whole[210:-10], abs=1e-6)


def test_it_has_the_values_that_world_computed_once():
    """By pyworld 0.3.5, cheaptrick with an FFT of 1024."""
    wav = resonance(pulses(120), 0.95 * np.exp(2j * np.pi * 1000 / RATE))
    f0 = np.where(np.arange(50) < 25, 120.0, 0.0)
    found = log_envelope(wav, RATE, f0, HOP, TINY)[:, [0, 2, 10, 64, 200, 512]]
    voiced = [-1.0655, -1.0653, -1.0616, 1.5915, -5.1514, -7.5068]
    unvoiced = [-0.6314, -0.6315, -0.6348, -1.0187, -5.4826, -7.8516]
    assert found[[20, 40]] == pytest.approx(np.array([voiced, unvoiced]), abs=1e-3)


def bent(omega: np.ndarray, alpha: float) -> np.ndarray:
    """The phase of a first-order all-pass filter, by its definition."""
    z = np.exp(-1j * omega)
    return -np.unwrap(np.angle((z - alpha) / (1 - alpha * z)))


@pytest.mark.parametrize("rate", [8000, 16000, 22050])
def test_mel_cepstra_are_found_in_the_spectrum_that_they_describe(rate):
    cepstra = np.random.default_rng(0).normal(size=(3, ORDER + 1)) / (1 + np.arange(ORDER + 1))
    axis = bent(np.linspace(0, np.pi, K), mel_alpha(rate))  # (K,)
    log_magnitude = cepstra @ np.cos(np.arange(ORDER + 1)[:, None] * axis)  # (3, K)
    assert mel_cepstra(2 * log_magnitude, rate) == pytest.approx(cepstra, abs=1e-3)


def test_a_gain_is_the_first_coefficient_alone_and_an_axis_not_bent_gives_the_cepstrum(monkeypatch):
    louder = np.full((1, K), np.log(4.0))  # twice the magnitude
    expected = np.append(np.log(2), np.zeros(ORDER))[None]
    assert mel_cepstra(louder, 22050) == pytest.approx(expected, abs=1e-9)
    log_power = np.random.default_rng(0).normal(size=(2, K))
    cepstra = np.fft.irfft(log_power)[:, : ORDER + 1]
    cepstra[:, 0] /= 2
    monkeypatch.setattr(mel_cepstrum, "mel_alpha", lambda _rate: 0.0)
    assert mel_cepstra(log_power, 16000) == pytest.approx(cepstra)


@pytest.mark.parametrize(
    ("rate", "alpha"), [(8000, 0.31), (10000, 0.35), (16000, 0.42), (22050, 0.455)]
)
def test_the_axis_is_bent_as_usual_at_each_rate(rate, alpha):
    """The first three are those of the manual of SPTK."""
    assert mel_alpha(rate) == pytest.approx(alpha, abs=0.011)
