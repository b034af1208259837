import struct

import numpy as np
import pytest
import soundfile

from processors.audio.containers import check_length
from utils.errors import UtteranceError

RATE = 16000
KINDS = [
    *(("WAV", subtype) for subtype in ("PCM_U8", "PCM_16", "PCM_24", "FLOAT", "ULAW")),
    *(("WAV", subtype) for subtype in ("IMA_ADPCM", "MS_ADPCM", "GSM610", "G721_32")),
    *(("WAVEX", "PCM_16"), ("RF64", "PCM_24"), ("OGG", "VORBIS"), ("OGG", "OPUS")),
]


@pytest.fixture
def recording(tmp_path):
    """Writes three seconds of noise to a file, and gives the file and its content."""

    def write(format="WAV", subtype="PCM_16", samples=3 * RATE):
        path = tmp_path / "clip"
        noise = 0.1 * np.random.default_rng(0).standard_normal(samples)
        soundfile.write(path, noise, RATE, format=format, subtype=subtype)
        return path, path.read_bytes()

    return write


def with_length(content: bytes, length: int) -> bytes:
    """The file with another length of its audio in the header."""
    start = content.index(b"data") + 4
    return content[:start] + struct.pack("<I", length) + content[start + 4 :]


@pytest.mark.parametrize(("format", "subtype"), KINDS)
def test_whole_files_are_accepted_and_cut_ones_refused(recording, format, subtype):
    path, content = recording(format, subtype)
    assert check_length(path)
    for n_bytes in (len(content) - 1, len(content) // 2, len(content) // 3):
        path.write_bytes(content[:n_bytes])
        with pytest.raises(UtteranceError, match=r"cut short: .* \d+.* \d+.*; copy it again"):
            check_length(path)


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x7FFFF000, 0x80000000])
def test_a_header_written_to_a_pipe_gives_no_length(recording, length):
    path, content = recording()
    path.write_bytes(with_length(content, length))
    assert not check_length(path)


def test_chunks_before_the_audio_are_passed(recording):
    path, content = recording()
    path.write_bytes(content[:12] + b"note" + struct.pack("<I", 5) + b"hello\0" + content[12:])
    assert check_length(path)


def test_an_ogg_file_that_ends_between_two_pages_is_refused(recording):
    path, content = recording("OGG", "VORBIS")
    last = content.rindex(b"OggS")
    path.write_bytes(content[:last])
    match = f"page ends at byte {last} and is not marked as the last, the file has {last} bytes"
    with pytest.raises(UtteranceError, match=match):
        check_length(path)
