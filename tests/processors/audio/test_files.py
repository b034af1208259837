import re
import resource
import struct
from dataclasses import replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import soundfile

from config.preprocess import PreprocessConfig
from processors.audio.files import AudioError, check_length, read_audio, write_wav, write_wav_blocks
from processors.audio.streams import FORMATS, write_audio
from utils.arrays import write_array
from utils.errors import UtteranceError

DEMO = Path(__file__).parents[3] / "egs/_demo/LJSpeech-mini/wavs"
RATE = 22050
CONFIG = PreprocessConfig(sample_rate=RATE)


def tone(seconds=1.0, rate=RATE, level=0.5, hz=220.0):
    return level * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)


@pytest.fixture
def recording(tmp_path):
    """Writes samples to a file and gives its path."""

    def write(samples, rate=RATE, subtype="PCM_16", name="clip.wav"):
        path = tmp_path / name
        soundfile.write(path, samples, rate, subtype=subtype)
        return path

    return write


def test_a_real_clip_is_read_sample_by_sample_and_without_notices():
    wav, notices = read_audio(DEMO / "LJ001-0002.flac", CONFIG)
    samples, _ = soundfile.read(DEMO / "LJ001-0002.flac", dtype="int16")
    assert wav.dtype == np.float32
    assert np.array_equal(wav * 32768, samples)
    assert notices == ()


def test_a_file_that_is_no_recording_is_rejected(tmp_path):
    path = tmp_path / "clip.wav"
    with pytest.raises(AudioError, match=r"clip\.wav: cannot be opened: No such file"):
        read_audio(path, CONFIG)
    path.write_bytes(b"")
    with pytest.raises(AudioError, match=r"clip\.wav: the file is empty \(0 bytes\)"):
        read_audio(path, CONFIG)
    path.write_bytes(b"<html>404 Not Found</html>" * 100)
    with pytest.raises(AudioError, match=r"clip\.wav: not readable as audio \(Format not"):
        read_audio(path, CONFIG)


def with_two(value):
    samples = tone()
    samples[[100, 200]] = value
    return samples


NOT_FINITE = "2 samples are NaN or infinite, the first is number 100"
SILENT = "the recording is silent"


@pytest.mark.parametrize(
    ("samples", "keys", "message"),
    [
        (np.zeros(0), {}, "a header and 0 samples"),
        *((with_two(value), {}, NOT_FINITE) for value in (np.nan, np.inf, -np.inf)),
        (tone(level=4.0, hz=RATE / 4), {}, r"the peak is 4, .* set preprocess\.rescale"),
        (tone(0.05), {}, r"0\.050 s is too short \(preprocess\.min_seconds is 0.3"),
        (tone(0.04), {"min_seconds": 0.0}, r"882 samples are fewer than one analysis window \(102"),
        (np.stack([tone(), -tone()], 1), {}, r"cancel each other .* export one of them as mono"),
        (tone(), {"sample_rate": 16000, "strict_sample_rate": True}, "rate is 22050 Hz, expected"),
        *((np.full(RATE, offset), {}, SILENT) for offset in (0.0, 0.25, 1e-5)),
        (np.zeros((RATE, 2)), {}, SILENT),
    ],
)
def test_samples_that_are_no_speech_are_rejected_with_the_reason(recording, samples, keys, message):
    path = recording(samples, subtype="FLOAT")
    with pytest.raises(AudioError, match=message):
        read_audio(path, replace(CONFIG, **keys))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.wav", "promises 132300 bytes of audio, the file holds 66128"),
        ("a.flac", r"a\.flac: not readable as audio"),
        ("a.mp3", r"cut short: the header promises \d+ samples, the file"),
    ],
)
def test_a_file_cut_to_half_is_rejected(recording, name, message):
    subtype = "MPEG_LAYER_III" if name.endswith("mp3") else "PCM_16"
    noise = 0.1 * np.random.default_rng(0).standard_normal(3 * RATE)
    path = recording(noise, subtype=subtype, name=name)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert name == "a.flac" or soundfile.info(path).frames > 0  # libsndfile says nothing
    with pytest.raises(AudioError, match=message):
        read_audio(path, CONFIG)


@pytest.mark.parametrize(("name", "places"), [("a.wav", (4, 40)), ("a.au", (8,))])
def test_a_file_from_a_program_that_did_not_know_its_length_is_read(recording, name, places):
    path = recording(tone(), name=name)
    content = bytearray(path.read_bytes())
    for place in places:
        content[place : place + 4] = b"\xff" * 4
    path.write_bytes(content)
    wav, notices = read_audio(path, CONFIG)
    assert len(wav) == RATE
    no_length = ("its header gives no length: read to the end of the file",)
    assert notices == no_length * name.endswith("wav")  # of AU, that value is in the standard


def test_flac_without_a_length_is_rejected(recording):
    path = recording(tone(), name="clip.flac")
    content = bytearray(path.read_bytes())
    content[21] &= 0xF0  # 36 bits of STREAMINFO hold the number of samples
    content[22:26] = bytes(4)
    path.write_bytes(content)
    with pytest.raises(AudioError, match="the header gives no length"):
        read_audio(path, CONFIG)


def test_float_wav_beyond_full_scale_is_scaled_down_when_configured(recording):
    loud = tone(level=4.0)
    wav, notices = read_audio(recording(loud, subtype="FLOAT"), PreprocessConfig(rescale=True))
    assert np.allclose(wav, loud / np.abs(loud).max(), atol=1e-6)
    assert notices == ("peak 4 scaled down to 1.0",)


def test_ten_minutes_are_rejected_without_reading_them(recording, monkeypatch):
    path = recording(np.zeros(600 * 8000, np.int16), rate=8000)
    monkeypatch.delattr(soundfile, "read")
    with pytest.raises(AudioError, match=r"600\.0 s is too long \(preprocess\.max_seconds is 30\)"):
        read_audio(path, CONFIG)


def test_stereo_is_averaged_and_clipped_samples_are_counted_each_with_one_notice(recording):
    left, right = tone(hz=200), tone(hz=300)
    wav, notices = read_audio(recording(np.stack([left, right], axis=1)), CONFIG)
    assert np.allclose(wav, (left + right) / 2, atol=1 / 32768)
    assert notices == ("2 channels averaged to mono",)
    wav, notices = read_audio(recording(np.clip(tone(level=2.0), -1, 1)), CONFIG)
    share = np.mean(np.abs(tone(level=2.0)) >= 0.99)
    assert notices == (f"{100 * share:.1f} % of the samples are clipped",)
    assert np.abs(wav).max() <= 1


@pytest.mark.parametrize(
    ("subtype", "step", "level"),
    [
        *(("PCM_U8", 1 / 128, 0.5), ("PCM_24", 1 / 2**23, 0.5), ("PCM_32", 1e-7, 0.5)),
        *(("FLOAT", 1e-7, 0.5), ("DOUBLE", 1e-7, 0.5), ("ULAW", 1 / 50, 0.5)),
        *(("PCM_16", 1 / 32768, level) for level in (0.5, 0.003)),  # also very quiet
    ],
)
def test_every_sample_format_gives_the_same_audio(recording, subtype, step, level):
    wav, notices = read_audio(recording(tone(level=level), subtype=subtype), CONFIG)
    assert np.abs(wav - tone(level=level)).max() <= step
    assert notices == ()


@pytest.mark.parametrize("rate", [8000, 16000, 24000, 44100, 48000])
def test_another_rate_is_resampled_with_a_notice_and_never_leaves_full_scale(recording, rate):
    wav, notices = read_audio(recording(tone(rate=rate), rate=rate), CONFIG)
    assert len(wav) == RATE
    inside = slice(RATE // 10, -RATE // 10)  # filters ring at the edges
    assert np.abs(wav - tone())[inside].max() < 1e-3
    assert notices[0].startswith(f"resampled from {rate} to {RATE} Hz")
    assert ("nothing above" in notices[0]) == (rate < RATE)
    square = np.sign(tone(rate=16000)) * 32767 / 32768
    wav, notices = read_audio(recording(square, rate=16000), CONFIG)
    assert np.abs(wav).max() <= 1
    assert any("level lowered" in notice for notice in notices)


def test_written_audio_is_read_back_bit_by_bit_or_scaled_down_to_full_scale(tmp_path):
    wav, _ = read_audio(DEMO / "LJ001-0002.flac", CONFIG)
    assert write_wav(tmp_path / "deep/er/out.wav", wav, RATE) == 1.0
    info = soundfile.info(tmp_path / "deep/er/out.wav")
    assert (info.samplerate, info.channels, info.subtype) == (RATE, 1, "PCM_16")
    assert np.array_equal(read_audio(tmp_path / "deep/er/out.wav", CONFIG).wav, wav)
    assert write_wav(tmp_path / "out.wav", np.array([2.0, -4.0, 1.0]), RATE) == 0.25
    samples, _ = soundfile.read(tmp_path / "out.wav", dtype="int16")
    assert samples.tolist() == [16384, -32768, 8192]


@pytest.mark.parametrize(
    ("wav", "message"),
    [
        *((np.array([0.0, v]), "not written, the audio holds NaN") for v in (np.nan, np.inf)),
        *((np.zeros(shape), r"expected mono audio of shape \(S,\), f") for shape in (0, (2, 100))),
    ],
)
def test_audio_that_is_not_finite_or_of_another_shape_is_never_written(tmp_path, wav, message):
    with pytest.raises(AudioError, match=rf"out\.wav: {message}"):
        write_wav(tmp_path / "out.wav", wav, RATE)
    assert list(tmp_path.iterdir()) == []


def write_on_a_full_disk(path, faults):
    """Writes with a limit of 4 kB for files, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, 60000).astype(np.float32)
    for write in (
        lambda: write_wav(path, samples, 22050),
        lambda: write_wav_blocks(path, [samples], 22050),
        lambda: write_array(path, samples),
        *(partial(write_audio, path.with_suffix(f".{n}"), [samples], 22050) for n in FORMATS),
    ):
        try:
            write()
        except OSError as error:
            faults.send(str(error))
    faults.send("")


def test_a_full_disk_leaves_the_old_file_and_is_named_with_the_file(tmp_path):
    path = tmp_path / "out.wav"
    write_wav(path, tone()[:1000], RATE)
    context = get_context("fork")  # the limit would cut off the log of the tests, too
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=write_on_a_full_disk, args=(path, sender))
    child.start()
    found = [re.search(r"too large.*out\.(\w+)'$", message) for message in iter(receiver.recv, "")]
    child.join()
    assert [match[1] for match in found] == [*["wav"] * 3, *FORMATS]
    assert list(tmp_path.iterdir()) == [path]
    assert soundfile.info(path).frames == 1000


def test_blocks_are_written_one_after_another_cut_at_full_scale_all_or_none(tmp_path):
    blocks = [np.array([0.0, 0.5]), np.array([-1.5, 1.5, 2**-15], dtype=np.float32)]
    assert write_wav_blocks(tmp_path / "a" / "out.wav", blocks, RATE) == 5
    samples, rate = soundfile.read(tmp_path / "a" / "out.wav", dtype="int16")
    assert samples.tolist() == [0, 16384, -32768, 32767, 1]
    assert rate == RATE

    def broken():
        yield np.zeros(100)
        raise AudioError("no more")

    with pytest.raises(AudioError, match="no more"):
        write_wav_blocks(tmp_path / "b" / "out.wav", broken(), RATE)
    assert list((tmp_path / "b").iterdir()) == []


CLIP_RATE = 16000
KINDS = [
    *(("WAV", subtype) for subtype in ("PCM_U8", "PCM_16", "PCM_24", "FLOAT", "ULAW")),
    *(("WAV", subtype) for subtype in ("IMA_ADPCM", "MS_ADPCM", "GSM610", "G721_32")),
    ("WAVEX", "PCM_16"),
]


@pytest.fixture
def noise(tmp_path):
    """Writes three seconds of noise to a file, and gives the file and its content."""

    def write(format="WAV", subtype="PCM_16", samples=3 * CLIP_RATE):
        path = tmp_path / "clip"
        noise = 0.1 * np.random.default_rng(0).standard_normal(samples)
        soundfile.write(path, noise, CLIP_RATE, format=format, subtype=subtype)
        return path, path.read_bytes()

    return write


def with_length(content: bytes, length: int) -> bytes:
    """The file with another length of its audio in the header."""
    start = content.index(b"data") + 4
    return content[:start] + struct.pack("<I", length) + content[start + 4 :]


@pytest.mark.parametrize(("format", "subtype"), KINDS)
def test_whole_files_are_accepted_and_cut_ones_refused(noise, format, subtype):
    path, content = noise(format, subtype)
    assert check_length(path)
    for n_bytes in (len(content) - 1, len(content) // 2, len(content) // 3):
        path.write_bytes(content[:n_bytes])
        with pytest.raises(UtteranceError, match=r"cut short: .* \d+.* \d+.*; copy it again"):
            check_length(path)


def test_a_header_written_to_a_pipe_gives_no_length_and_chunks_before_the_audio_are_passed(noise):
    path, content = noise()
    for length in (0xFFFFFFFF, 0x7FFFF000, 0x80000000):
        path.write_bytes(with_length(content, length))
        assert not check_length(path)
    path.write_bytes(content[:12] + b"note" + struct.pack("<I", 5) + b"hello\0" + content[12:])
    assert check_length(path)


CONTAINERS = ["WAV", "WAVEX", "AIFF", "RF64", "W64", "AU", "CAF"]


def write_container(path, container, **options):
    soundfile.write(path, tone(2.0), RATE, format=container, **options)
    return path


@pytest.mark.parametrize("share", [0.3, 0.7, 0.98, 0.998])
@pytest.mark.parametrize("subtype", ["PCM_16", "FLOAT"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_cut_file_is_refused_whatever_its_format(tmp_path, container, subtype, share):
    path = write_container(tmp_path / "a", container, subtype=subtype)
    assert len(read_audio(path, CONFIG).wav) == 2 * RATE
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(AudioError, match=r"a: (cut short: the header promises|not readable)"):
        read_audio(path, CONFIG)


def test_both_orders_of_bytes_are_compared(tmp_path):
    for container, endian in product(("AU", "AIFF", "WAV"), ("BIG", "LITTLE")):
        path = write_container(tmp_path / container, container, endian=endian)
        path.write_bytes(path.read_bytes()[:50_000])
        with pytest.raises(AudioError, match="cut short"):
            read_audio(path, CONFIG)


def test_what_follows_the_audio_does_not_matter(tmp_path):
    for container in sorted({*CONTAINERS} - {"W64"}):  # of which libsndfile reads it as audio
        path = write_container(tmp_path / container, container)
        path.write_bytes(path.read_bytes() + b"ID3 of a program that knows no better")
        assert len(read_audio(path, CONFIG).wav) == 2 * RATE, container
