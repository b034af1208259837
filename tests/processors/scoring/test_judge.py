import math

import numpy as np
import pytest
import soundfile

from processors.scoring.judge import read_sound
from utils.errors import InputError


def test_a_sound_is_the_mean_of_its_channels(tmp_path):
    channels = np.array([[0.5, 0.25], [-0.5, 0.0]])
    soundfile.write(tmp_path / "a.wav", channels, 8000, subtype="FLOAT")
    wav, sample_rate = read_sound(tmp_path / "a.wav")
    assert wav.tolist() == [0.375, -0.25]
    assert (wav.dtype, sample_rate) == (np.float32, 8000)


def test_a_file_that_is_no_sound_is_named(tmp_path):
    (tmp_path / "text.wav").write_text("hello")
    with pytest.raises(InputError, match=r"text\.wav: not readable as audio"):
        read_sound(tmp_path / "text.wav")
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), 8000)
    with pytest.raises(InputError, match=r"empty\.wav: holds no sample"):
        read_sound(tmp_path / "empty.wav")
    soundfile.write(tmp_path / "nan.wav", np.array([0.1, math.nan]), 8000, subtype="FLOAT")
    with pytest.raises(InputError, match=r"nan\.wav: holds NaN .*again, or repair the file"):
        read_sound(tmp_path / "nan.wav")
