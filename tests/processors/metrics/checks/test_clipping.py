import numpy as np
import pytest

from processors.metrics.checks.clipping import check, flat_tops
from tests.processors.metrics.checks.signals import RATE, speech, voice


def tone(hz: float, height: float, n_samples: int = RATE) -> np.ndarray:
    wav = height * np.sin(2 * np.pi * hz * np.arange(n_samples) / RATE)
    return (np.round(wav * 32768) / 32768).astype(np.float32)


@pytest.mark.parametrize("height", [1.0, 0.3])
def test_clipped_samples_are_counted(height):
    wav = np.clip(tone(441, 1.2, 500), -1, 1) * np.float32(height)  # 50 samples a period
    tops = flat_tops(wav)

    assert len(tops) == 20
    assert {top.samples for top in tops} <= {10, 11}
    assert tops[0].start == pytest.approx(np.arcsin(1 / 1.2) / (2 * np.pi) * 50, abs=1)
    n_samples = sum(top.samples for top in tops)
    assert check(speech(wav), None).startswith(
        f"{n_samples} clipped samples in 20 flat tops at {height:.2f} of full scale; the longest, "
    )


def test_what_is_beyond_full_scale_is_clipped():
    assert "at 1.00 of full scale, recorded: 0;" in check(speech(voice(1, 0.9)), speech(voice(1)))


@pytest.mark.parametrize("hz", [50, 90, 140, 220, 350])
@pytest.mark.parametrize("height", [0.01, 0.1, 0.5, 1.0])
def test_round_tops_pass(hz, height):
    assert check(speech(tone(hz + 0.37, height)), None) is None


def test_two_short_flat_tops_pass_and_a_long_one_does_not():
    wav = voice(1)
    top = float(wav.max())
    wav[5000:5003] = top + 0.1
    wav[9000:9003] = top + 0.1
    assert check(speech(wav), None) is None

    wav[12000:12023] = top + 0.1
    assert "the longest, 23 samples, at 0.54 s" in check(speech(wav), None)
