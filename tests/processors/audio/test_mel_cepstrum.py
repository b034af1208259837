import numpy as np
import pytest

from processors.audio.mel_cepstrum import ORDER, mel_alpha, mel_cepstra

K = 513


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


def test_an_axis_that_is_not_bent_gives_the_cepstrum():
    log_power = np.random.default_rng(0).normal(size=(2, K))
    cepstra = np.fft.irfft(log_power)[:, :31]
    cepstra[:, 0] /= 2
    assert mel_cepstra(log_power, 16000, order=30, alpha=0.0) == pytest.approx(cepstra)


def test_a_gain_is_the_first_coefficient_alone():
    louder = np.full((1, K), np.log(4.0))  # twice the magnitude
    expected = np.append(np.log(2), np.zeros(ORDER))[None]
    assert mel_cepstra(louder, 22050) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("rate", "alpha"), [(8000, 0.31), (10000, 0.35), (16000, 0.42), (22050, 0.455)]
)
def test_the_axis_is_bent_as_usual_at_each_rate(rate, alpha):
    """The first three are those of the manual of SPTK."""
    assert mel_alpha(rate) == pytest.approx(alpha, abs=0.011)


def test_no_other_axis_is_nearer_to_the_mel_scale():
    omega = np.linspace(0, np.pi, 400)
    mel = np.log1p(omega / np.pi * 22050 / 2000)

    def distance(alpha: float) -> float:
        return np.mean((bent(omega, alpha) / np.pi - mel / mel[-1]) ** 2)

    best = mel_alpha(22050)
    assert distance(best) < min(distance(best - 0.01), distance(best + 0.01))
