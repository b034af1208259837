import struct

import numpy as np
import pytest
import soundfile

from processors.audio.containers import check_length, check_samples
from utils.errors import UtteranceError

RATE = 16000
KINDS = [
    *(("WAV", subtype) for subtype in ("PCM_U8", "PCM_16", "PCM_24", "FLOAT", "ULAW")),
    *(("WAV", subtype) for subtype in ("IMA_ADPCM", "MS_ADPCM", "GSM610", "G721_32")),
    *(("WAVEX", "PCM_16"), ("RF64", "PCM_24"), ("OGG", "VORBIS"), ("OGG", "OPUS")),
]
LIST = b"LIST" + struct.pack("<I", 26) + b"INFOISFT" + struct.pack("<I", 14) + b"Lavf58.29.100\0"


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


@pytest.mark.parametrize(("format", "subtype"), KINDS)
def test_what_follows_the_audio_is_refused_with_its_size(recording, format, subtype):
    path, content = recording(format, subtype)
    path.write_bytes(content + np.random.default_rng(1).bytes(5000))
    with pytest.raises(UtteranceError, match=r"\d+.*, and 500\d .*follow; export the file again"):
        check_length(path)


@pytest.mark.parametrize("length", [3 * RATE, 0])  # 0: it was never closed
def test_a_header_that_promises_less_than_the_audio_is_refused_with_both_lengths(recording, length):
    path, content = recording()
    path.write_bytes(with_length(content, length))
    match = f"promises {length} bytes of audio, and {6 * RATE - length} that it does not count"
    with pytest.raises(UtteranceError, match=match):
        check_length(path)


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x7FFFF000, 0x80000000])
def test_a_header_written_to_a_pipe_gives_no_length(recording, length):
    path, content = recording()
    path.write_bytes(with_length(content, length))
    assert not check_length(path)


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_U8"])
@pytest.mark.parametrize(
    "tail",
    [
        *(LIST, LIST + LIST, b"\0" + LIST, b"\r\n", bytes(20000)),
        LIST + b"id3 " + struct.pack("<I", 9001) + b"\1" * 9001,  # not padded
        b"id3 " + struct.pack("<I", 9001) + b"\1" * 9001 + LIST,  # nor before another chunk
        LIST + bytes(512),
        b"TAG" + b"a title".ljust(125),  # ID3v1
    ],
)
def test_other_chunks_padding_and_tags_may_follow_the_audio(recording, subtype, tail):
    path, content = recording(subtype=subtype, samples=RATE + 1)
    path.write_bytes(content.removesuffix(b"\0") + tail)
    assert check_length(path)


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


def read(path):
    return soundfile.read(path, dtype="float32", always_2d=True)[0], soundfile.info(path).frames


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "PCM_S8"])
def test_a_flac_whose_header_promises_half_of_its_samples_does_not_match_its_checksum(
    recording, subtype
):
    path, content = recording("FLAC", subtype)
    check_samples(path, *read(path))
    path.write_bytes(content[:22] + struct.pack(">I", 3 * RATE // 2) + content[26:])
    samples, n_promised = read(path)
    assert (len(samples), n_promised) == (3 * RATE // 2, 3 * RATE // 2)
    with pytest.raises(UtteranceError, match=r"its 24000 samples are not those .* header gives an"):
        check_samples(path, samples, n_promised)
    path.write_bytes(content[:26] + bytes(16) + content[42:])  # encoders may leave it out
    check_samples(path, *read(path))


def test_an_ogg_file_without_a_page_of_the_middle_holds_too_few_samples(recording):
    path, content = recording("OGG", "OPUS", 20 * RATE)
    pages = content.split(b"OggS")
    path.write_bytes(b"OggS".join([*pages[:4], *pages[6:]]))
    check_length(path)
    with pytest.raises(UtteranceError, match=r"promises 320000 samples, the file holds \d+; copy"):
        check_samples(path, *read(path))


def test_an_mp3_that_was_cut_holds_too_few_samples(recording):
    path, content = recording("MP3", "MPEG_LAYER_III")
    check_samples(path, *read(path))
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(UtteranceError, match=r"promises 48000 samples, the file holds \d+; copy"):
        check_samples(path, *read(path))
