import io
import struct

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image

from models.evaluation.report.tracks import write_flac, write_mel_picture, write_tracks
from models.plots import colour_limits
from modules.mel import MelSpectrogram
from tests.models.evaluation.report.evaluations import MEL, item_of, tone


def test_the_pictures_of_an_utterance_have_the_same_colours(tmp_path):
    item = item_of(tmp_path, "a", wav=0.5 * tone(150))
    (recording, voice) = write_tracks("00000", [item], tmp_path, MEL)
    spectrogram = MelSpectrogram(MEL)
    sounds = [tone(140.0, 0.5), 0.5 * tone(150)]
    mels = [spectrogram(torch.from_numpy(wav)[None])[0].numpy() for wav in sounds]
    low, high = colour_limits(mels)
    for track, mel in zip((recording, voice), mels, strict=True):
        pixels = np.asarray(Image.open(tmp_path / track.picture)).astype(float)[::-1]
        expected = 63 * ((mel - low) / (high - low)).clip(0, 1)
        assert abs(pixels - expected).max() < 0.6  # rounding, and 16 bits of the file


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
