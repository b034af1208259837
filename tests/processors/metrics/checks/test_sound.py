import numpy as np
import pytest

from processors.metrics.checks.sound import check_clipping, check_silence, flat_tops
from tests.processors.metrics.checks.signals import RATE, silence, speech, voice


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
    assert check_clipping(speech(wav), None).startswith(
        f"{n_samples} clipped samples in 20 flat tops at {height:.2f} of full scale; the longest, "
    )


def test_what_is_beyond_full_scale_is_clipped():
    assert "at 1.00 of full scale, recorded: 0;" in check_clipping(
        speech(voice(1, 0.9)), speech(voice(1))
    )


@pytest.mark.parametrize("hz", [50, 90, 140, 220, 350])
@pytest.mark.parametrize("height", [0.01, 0.1, 0.5, 1.0])
def test_round_tops_pass(hz, height):
    assert check_clipping(speech(tone(hz + 0.37, height)), None) is None


def test_two_short_flat_tops_pass_and_a_long_one_does_not():
    wav = voice(1)
    top = float(wav.max())
    wav[5000:5003] = top + 0.1
    wav[9000:9003] = top + 0.1
    assert check_clipping(speech(wav), None) is None

    wav[12000:12023] = top + 0.1
    assert "the longest, 23 samples, at 0.54 s" in check_clipping(speech(wav), None)


def test_silence_is_found_where_it_is():
    def spoken(before, inside, after):
        return speech(silence(before), voice(1), silence(inside), voice(1), silence(after))

    recorded = spoken(0.1, 0.2, 0.1)

    assert check_silence(spoken(0.1, 0.6, 0.3), recorded) is None
    assert check_silence(spoken(1.0, 0.2, 0.1), recorded) == (
        "1.0 s of silence before the speech, recorded: 0.1 s"
    )
    assert check_silence(spoken(0.1, 0.2, 1.2), None) == "1.2 s of silence after the speech"
    assert check_silence(spoken(0.1, 1.5, 0.1), recorded) == (
        "1.5 s of silence at 1.08 s, longest recorded: 0.2 s"
    )
    assert check_silence(spoken(1.0, 1.5, 0.1), None).count(";") == 1


def test_silence_that_was_recorded_passes():
    spoken = speech(silence(1.2), voice(1), silence(1.6), voice(1), silence(1.2))

    assert check_silence(spoken, spoken) is None
    assert check_silence(spoken, None) is not None


def test_half_a_second_more_than_recorded_or_usual_passes():
    def spoken(before, inside):
        return speech(silence(before), voice(1), silence(inside), voice(1))

    recorded = spoken(0.6, 1.0)  # the edges of a voice are silent, too

    assert check_silence(spoken(1.0, 1.4), recorded) is None
    assert check_silence(spoken(1.2, 1.4), recorded).startswith("1.2 s of silence before")
    assert check_silence(spoken(1.0, 1.6), recorded).startswith("1.6 s of silence at")
    assert check_silence(spoken(0.7, 1.1), None) is None
    assert check_silence(spoken(0.9, 1.1), None).startswith("0.9 s of silence before")
    assert check_silence(spoken(0.7, 1.3), None).startswith("1.3 s of silence at")


def test_noise_in_a_pause_is_no_sound():
    import numpy as np

    noise = 0.003 * np.random.default_rng(0).normal(size=len(silence(1.5))).astype(np.float32)

    assert check_silence(speech(voice(1), noise, voice(1)), None).startswith(
        "1.5 s of silence at 0.9"
    )


def test_no_sound_at_all_is_found():
    assert check_silence(speech(silence(2)), speech(voice(2))) == "nothing but silence, 2.0 s"
    assert check_silence(speech(silence(0)), None) == "no sound: 0 samples"
