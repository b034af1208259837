"""Encoding piece by piece gives the sound that libsndfile reads back, and the same bytes again."""

import io

import numpy as np
import pytest
import soundfile

from processors.audio.streams import FORMATS, encoded, stream_delay_s, write_audio

RATE = 22050
WAV = (0.3 * np.sin(np.arange(2 * RATE) * 2 * np.pi * 440 / RATE)).astype(np.float32)
PIECES = np.split(WAV, [1000, 1001, 20000, 30000])


def decoded(data: bytes, format: str) -> tuple[np.ndarray, int]:
    raw = {"samplerate": 24000, "channels": 1, "subtype": "PCM_16", "format": "RAW"}
    with soundfile.SoundFile(io.BytesIO(data), **(raw if format == "pcm" else {})) as file:
        blocks = []
        while len(block := file.read(5000)):
            blocks.append(block)
        return np.concatenate(blocks), file.samplerate


def tone_at(wav: np.ndarray, rate: int) -> float:
    spectrum = np.abs(np.fft.rfft(wav * np.hanning(len(wav))))
    return float(spectrum.argmax() * rate / len(wav))


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_and_a_file_hold_the_whole_sound_at_its_pitch(tmp_path, format):
    path = tmp_path / f"tone.{format}"
    write_audio(path, PIECES, RATE)
    for data in (b"".join(encoded(PIECES, format, RATE)), path.read_bytes()):
        wav, rate = decoded(data, format)
        assert rate == (24000 if format in ("opus", "pcm") else RATE)
        assert len(wav) / rate == pytest.approx(2, abs=0.12)  # MP3 adds delay and padding
        assert tone_at(wav, rate) == pytest.approx(440, abs=1)
        assert np.sqrt(np.mean(wav**2)) == pytest.approx(0.3 / np.sqrt(2), rel=0.1)


@pytest.mark.parametrize("rate", [16000, 22050, 44100])
@pytest.mark.parametrize("format", ["mp3", "opus", "ogg"])
def test_sound_comes_later_than_in_the_wav_by_the_delay_of_the_stream(tmp_path, format, rate):
    wav = np.zeros(2 * rate, dtype=np.float32)
    wav[rate : rate + 200] = 0.8 * np.sin(np.arange(200) / 3) * np.hanning(200)
    write_audio(tmp_path / f"a.{format}", [wav], rate)
    stream = b"".join(encoded(np.split(wav, [1000, 20000]), format, rate))
    for data, delay_s in (
        (stream, stream_delay_s(format, rate)),
        ((tmp_path / f"a.{format}").read_bytes(), 0),
    ):
        heard, heard_rate = decoded(data, format)
        centre = np.average(np.arange(len(heard)), weights=heard**2) / heard_rate
        expected = np.average(np.arange(len(wav)), weights=wav**2) / rate
        assert centre - expected == pytest.approx(delay_s, abs=5e-4)


@pytest.mark.parametrize("format", ["wav", "flac"])
def test_lossless_streams_hold_the_samples_of_a_file_and_of_save(format):
    file = io.BytesIO()
    soundfile.write(file, WAV, RATE, format=format.upper())
    expected, _ = decoded(file.getvalue(), format)
    found, _ = decoded(b"".join(encoded(PIECES, format, RATE)), format)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_wav_gives_the_same_bytes(tmp_path, format):
    assert b"".join(encoded(PIECES, format, RATE)) == b"".join(encoded(PIECES, format, RATE))
    a, b = (tmp_path / f"{name}.{format}" for name in "ab")
    write_audio(a, PIECES, RATE)
    write_audio(b, PIECES, RATE)
    assert a.read_bytes() == b.read_bytes()


@pytest.mark.parametrize("format", ["wav", "mp3", "pcm"])
def test_most_of_a_piece_is_out_before_the_next_is_asked_for(format):
    n_taken = 0

    def pieces():
        nonlocal n_taken
        for piece in np.split(WAV, 4):
            n_taken += 1
            yield piece

    stream = encoded(pieces(), format, RATE)
    first = next(stream) + next(stream)
    assert n_taken <= 2
    whole = len(first) + sum(map(len, stream))
    assert len(first) > 0.3 * whole


def test_the_header_of_a_wav_stream_gives_no_length():
    header = next(encoded(PIECES, "wav", RATE))[:44]
    assert (header[:4], header[4:8]) == (b"RIFF", b"\xff" * 4)
    assert (header[36:40], header[40:44]) == (b"data", b"\xff" * 4)
