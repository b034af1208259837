import numpy as np
import pytest
import torch

from modules.mel import MelConfig, MelSpectrogram
from processors.audio.frames import SpanError, cut_span, from_pcm16, mel_of, to_pcm16
from tests.processors.mel_wavs import MEL

WAV = np.arange(1000, dtype=np.float32)  # hops of 64 samples


def test_a_span_is_cut_out_and_reflected_at_both_ends():
    np.testing.assert_array_equal(cut_span(WAV, 100, 5, MEL), WAV[100:420])
    before, after = cut_span(WAV, -2, 5, MEL), cut_span(WAV, 700, 5, MEL)
    assert before[:4].tolist() == [2, 1, 0, 1]
    assert after[298:302].tolist() == [998, 999, 998, 997]
    assert len(before) == len(after) == 320


@pytest.mark.parametrize("start", [-128, 1000 - 320 + 128, 5000])
def test_a_span_far_beyond_the_recording_is_refused(start):
    with pytest.raises(SpanError, match="run stage 1 of the acoustic model again"):
        cut_span(WAV, start, 5, MEL)


@pytest.mark.parametrize("padding", ["centre", "hifigan"])
def test_a_mel_in_pieces_is_the_mel_of_the_whole(padding):
    mel = MelSpectrogram(MelConfig(padding=padding))
    wav = np.random.default_rng(0).uniform(-0.5, 0.5, 200 * 256).astype(np.float32)
    whole = mel(torch.from_numpy(wav)[None])[0].numpy()
    for piece in (1, 64, 199, 200):
        np.testing.assert_allclose(mel_of(wav, mel, piece), whole, atol=1e-5)


def test_sixteen_bits_come_back_bit_by_bit_and_full_scale_does_not_wrap_around():
    steps = np.arange(-32768, 32768).astype(np.int16)
    wav = from_pcm16(steps)
    assert wav.dtype == np.float32
    assert (wav.min(), wav.max()) == (-1, 32767 / 32768)
    np.testing.assert_array_equal(to_pcm16(wav), steps)
    assert to_pcm16(np.array([1.0, -1.0, 0.99999])).tolist() == [32767, -32768, 32767]
    assert to_pcm16(np.array([0.4, 0.6, -0.6]) / 32768).tolist() == [0, 1, -1]
