"""Files that end before what their header promises."""

import numpy as np
import pytest
import soundfile

from config.preprocess import PreprocessConfig
from processors.audio.files import AudioError, read_audio

RATE = 22050
WAV = 0.3 * np.sin(np.arange(2 * RATE) * 0.05)
FORMATS = ["WAV", "WAVEX", "AIFF", "RF64", "W64", "AU", "CAF"]


def write(path, container, **options):
    soundfile.write(path, WAV, RATE, format=container, **options)
    return path


@pytest.mark.parametrize("share", [0.3, 0.7, 0.98, 0.998])
@pytest.mark.parametrize("subtype", ["PCM_16", "FLOAT"])
@pytest.mark.parametrize("container", FORMATS)
def test_a_cut_file_is_refused_whatever_its_format(tmp_path, container, subtype, share):
    path = write(tmp_path / "a", container, subtype=subtype)
    assert len(read_audio(path, PreprocessConfig()).wav) == len(WAV)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(AudioError, match=r"a: (cut short: the header promises|not readable)"):
        read_audio(path, PreprocessConfig())


@pytest.mark.parametrize("endian", ["BIG", "LITTLE"])
def test_both_orders_of_bytes_are_compared(tmp_path, endian):
    for container in ("AU", "AIFF", "WAV"):
        path = write(tmp_path / container, container, endian=endian)
        path.write_bytes(path.read_bytes()[:50_000])
        with pytest.raises(AudioError, match="cut short"):
            read_audio(path, PreprocessConfig())


def test_a_header_without_length_is_no_cut_file(tmp_path):
    path = write(tmp_path / "a.au", "AU")
    content = path.read_bytes()
    path.write_bytes(content[:8] + b"\xff" * 4 + content[12:])  # as a program writes to a pipe
    assert len(read_audio(path, PreprocessConfig()).wav) == len(WAV)


def test_what_follows_the_audio_does_not_matter(tmp_path):
    for container in sorted({*FORMATS} - {"W64"}):  # of which libsndfile reads it as audio
        path = write(tmp_path / container, container)
        path.write_bytes(path.read_bytes() + b"ID3 of a program that knows no better")
        assert len(read_audio(path, PreprocessConfig()).wav) == len(WAV), container
