import io

import numpy as np
import pytest
from PIL import Image

from models.evaluation.report.pictures import contrast, write_mel_picture


def test_a_picture_shows_each_band_and_frame_as_a_pixel_with_the_lowest_band_below(tmp_path):
    mel = np.array([[0.0, 1.0, 2.0], [2.0, 9.0, -9.0]])  # (M, T)
    write_mel_picture(tmp_path / "mel.png", mel, low=0.0, high=2.0)
    picture = Image.open(tmp_path / "mel.png")  # another decoder
    assert picture.size == (3, 2)
    indices = np.asarray(picture)
    assert indices.tolist() == [[63, 63, 0], [0, 32, 63]]
    colours = np.asarray(picture.convert("RGB"))
    assert colours[1, 0].tolist() == [0x00, 0x00, 0x04]
    assert colours[1, 2].tolist() == [0xFC, 0xFD, 0xBF]


def test_brightness_grows_with_the_level(tmp_path):
    write_mel_picture(tmp_path / "mel.png", np.arange(64.0)[None], low=0.0, high=63.0)
    content = io.BytesIO((tmp_path / "mel.png").read_bytes())
    red, green, blue = np.asarray(Image.open(content).convert("RGB"), dtype=float)[0].T
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    assert (np.diff(luminance) > 0).all()


@pytest.mark.parametrize(("shape", "high"), [((80,), 1.0), ((80, 0), 1.0), ((80, 5), 0.0)])
def test_what_is_no_mel_is_refused(tmp_path, shape, high):
    with pytest.raises(ValueError, match=r"expected \(M, T\) and low < high"):
        write_mel_picture(tmp_path / "mel.png", np.zeros(shape), 0.0, high)


def test_the_contrast_of_silence_is_not_empty():
    low, high = contrast([np.full((80, 10), -11.5)])
    assert low == -11.5
    assert high == pytest.approx(-10.5)
