import struct

import numpy as np
import pytest
import soundfile

from models.evaluation.report.flac import write_flac
from tests.models.evaluation.report.evaluations import tone


def blocks_of(content):
    """Kind and content of each block of metadata, and where the sound begins."""
    place, blocks = 4, []
    while True:
        kind, length = content[place], int.from_bytes(content[place + 1 : place + 4], "big")
        blocks.append((kind & 0x7F, content[place + 4 : place + 4 + length]))
        place += 4 + length
        if kind & 0x80:
            return blocks, place


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
