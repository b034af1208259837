import io
import struct

import numpy as np
import pytest
import soundfile
from PIL import Image

from models.evaluation.report.media import write_flac, write_mel_picture
from tests.models.evaluation.report.evaluations import tone


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


def blocks_of(content):
    """Kind and content of each block of metadata, and where the sound begins."""
    inputs, blocks = 4, []
    while True:
        kind, length = content[inputs], int.from_bytes(content[inputs + 1 : inputs + 4], "big")
        blocks.append((kind & 0x7F, content[inputs + 4 : inputs + 4 + length]))
        inputs += 4 + length
        if kind & 0x80:
            return blocks, inputs


def test_a_sound_comes_back_as_it_was(tmp_path):
    write_flac(tmp_path / "a.flac", tone(150, 1.0, 22050), 22050)
    wav, sample_rate = soundfile.read(tmp_path / "a.flac")
    assert sample_rate == 22050
    assert wav == pytest.approx(tone(150, 1.0, 22050), abs=1 / 32768)


def test_it_says_that_one_can_seek_to_its_start(tmp_path):
    write_flac(tmp_path / "a.flac", tone(150, 1.0, 22050), 22050)
    content = (tmp_path / "a.flac").read_bytes()
    blocks, start = blocks_of(content)
    assert [kind for kind, _ in blocks] == [0, 3, 4]  # description, places to seek to, comment
    sample, offset, length = struct.unpack(">QQH", blocks[1][1])
    assert (sample, offset) == (0, 0)
    assert length == struct.unpack(">H", blocks[0][1][:2])[0]
    assert content[start : start + 2] == b"\xff\xf8"  # a frame


def test_what_is_too_loud_is_cut_off(tmp_path):
    write_flac(tmp_path / "a.flac", np.array([2.0, -2.0, 0.5]), 8000)
    wav, _ = soundfile.read(tmp_path / "a.flac")
    assert wav == pytest.approx([1, -1, 0.5], abs=1e-4)
