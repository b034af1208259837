import numpy as np

from processors.audio.pcm import from_pcm16, to_pcm16


def test_sixteen_bits_come_back_bit_by_bit():
    steps = np.arange(-32768, 32768).astype(np.int16)
    wav = from_pcm16(steps)
    assert wav.dtype == np.float32
    assert (wav.min(), wav.max()) == (-1, 32767 / 32768)
    np.testing.assert_array_equal(to_pcm16(wav), steps)


def test_full_scale_does_not_wrap_around():
    assert to_pcm16(np.array([1.0, -1.0, 0.99999])).tolist() == [32767, -32768, 32767]


def test_steps_are_rounded_to_the_nearest():
    assert to_pcm16(np.array([0.4, 0.6, -0.6]) / 32768).tolist() == [0, 1, -1]
