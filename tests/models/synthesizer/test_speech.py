import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from models.synthesizer.passages import Passage
from models.synthesizer.speech import (
    PEAK,
    Part,
    Speech,
    faded,
    faded_out,
    faded_pieces,
    join,
    silence,
    warn_if_rushed,
    warn_if_silent,
)
from models.synthesizer.timing import SpokenTimes
from modules.mel import MelConfig
from processors.records import SpokenText, TimedPhone, TimedWord, Word
from utils.errors import InputError

HOP, RATE = 100, 1000
MEL = MelConfig(sample_rate=RATE, hop_length=HOP, n_mels=2, f_max=500.0)


def part(phones: str, durations: list[int], level: float = 0.5) -> Part:
    T = sum(durations)
    return Part(
        normalized="",
        phones=tuple(phones.split()),
        durations=np.array(durations),
        wav=np.full(T * HOP, level, dtype=np.float32),
        mel=np.zeros((2, T), dtype=np.float32),
        f0=np.full(T, 100, dtype=np.float32),
        energy=np.ones(T, dtype=np.float32),
    )


def joined(*parts: Part) -> Speech:
    return join(parts, SpokenTimes(), MEL, text="", speaker="one")


def hello() -> Part:
    return part("<sil> HH AY <.>", [1, 2, 3, 1])


def test_words_and_phones_have_times_in_the_whole():
    pause = silence(2, MEL)
    spoken, times = SpokenText("hi", "hi", hello().phones, (Word("hi", 1, 3),)), SpokenTimes()
    for start in (0, 9):
        times.add(Passage(spoken), hello().durations, MEL.frame_s, start, starts_sentence=True)
    speech = join([hello(), pause, hello()], times, MEL, text="", speaker="one")
    assert speech.words == (
        TimedWord("hi", pytest.approx(0.1), pytest.approx(0.6)),
        TimedWord("hi", pytest.approx(1.0), pytest.approx(1.5)),
    )
    assert speech.phones[4] == TimedPhone("<sil>", pytest.approx(0.7), pytest.approx(0.9))


def test_phones_cover_the_wav_without_gaps():
    speech = joined(hello(), hello())
    ends = [phone.end_s for phone in speech.phones]
    assert [phone.start_s for phone in speech.phones] == pytest.approx([0.0, *ends[:-1]])
    assert ends[-1] == pytest.approx(speech.seconds) == pytest.approx(1.4)


def test_mel_f0_and_energy_have_a_value_per_frame():
    speech = joined(hello(), silence(3, MEL))
    assert speech.mel.shape == (2, 10)
    assert speech.mel[:, 7:] == pytest.approx(np.log(1e-5))
    assert speech.f0.tolist() == [100.0] * 7 + [0.0] * 3
    assert len(speech.energy) == 10
    assert len(speech.wav) == 10 * HOP


def test_edges_fade_over_five_milliseconds_and_the_middle_stays():
    wav = np.ones(1000, dtype=np.float32)
    edge = faded(wav, sample_rate=1000)
    assert edge[[0, -1]].tolist() == [0.0, 0.0]
    assert edge[1:5] == pytest.approx([0.0955, 0.3455, 0.6545, 0.9045], abs=1e-4)
    assert (edge[5:-5] == 1).all()
    assert (wav == 1).all()


def test_there_is_no_step_where_parts_meet():
    wav = joined(hello(), hello()).wav
    assert abs(wav[700]) < 1e-6  # the second part starts here
    assert np.abs(np.diff(wav)).max() < 0.2  # of a level of 0.5


def test_a_wav_of_one_sample_survives_its_fades():
    assert faded(np.ones(1, dtype=np.float32), 22050).tolist() == [1.0]


@pytest.mark.parametrize("sizes", [[100], [1, 3, 50, 46], [99, 1], [4, 96]])
def test_pieces_fade_as_the_whole_does(sizes):
    wav = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    pieces = np.split(wav, np.cumsum(sizes)[:-1])
    together = np.concatenate(list(faded_pieces(pieces, 100, sample_rate=1000)))
    assert np.array_equal(together, faded(wav, sample_rate=1000))


def test_loud_speech_is_scaled_down_as_a_whole():
    speech = joined(part("A", [2], level=2.0), part("A", [2], level=1.0))
    assert np.abs(speech.wav).max() == pytest.approx(PEAK)
    assert speech.gain == pytest.approx(PEAK / 2)
    assert speech.wav[300] == pytest.approx(PEAK / 2)  # the quiet part keeps its distance


def test_speech_within_full_scale_keeps_its_level():
    speech = joined(part("A", [2], level=1.0))
    assert speech.gain == 1.0
    assert np.abs(speech.wav).max() == 1.0


@pytest.mark.parametrize("edges", [[], [3], [5], [1, 2, 6, 7], [4, 8]])
def test_the_end_of_a_wav_fades_linearly_whole_or_in_pieces(edges):
    wav = np.full(8, 2.0, dtype=np.float32)
    ended = np.concatenate([*faded_out(np.split(wav, edges), 5)])
    assert ended.dtype == np.float32
    assert ended.tolist() == [2, 2, 2, 2, 1.5, 1, 0.5, 0]


def test_a_wav_that_is_shorter_than_the_fade_fades_as_a_whole_with_a_warning(caplog):
    assert np.concatenate([*faded_out([np.ones(3)], 3)]).tolist() == [1, 0.5, 0]
    assert caplog.text == ""
    assert np.concatenate([*faded_out([np.ones(3)], 99)]).tolist() == [1, 0.5, 0]
    assert "the fade at the end is 33.0 times as long as the speech" in caplog.text


@pytest.mark.parametrize(("peak", "warned"), [(0.0, True), (0.009, True), (0.011, False)])
def test_speech_that_is_hardly_audible_is_warned_of(caplog, peak, warned):
    warn_if_silent(np.array([0.0, -peak, 0.0], dtype=np.float32))
    assert ("almost no sound" in caplog.text) == warned


def test_a_piece_is_not_held_back_longer_than_the_fade():
    pieces = iter([np.ones(4), np.ones(4)])
    assert len(next(faded_out(pieces, 1))) == 3
    assert len(list(pieces)) == 1


def test_without_a_fade_pieces_are_as_they_are():
    pieces = [np.ones(2), np.ones(3)]
    assert [*faded_out(pieces, 0)] == pieces


def test_phones_that_are_too_short_for_speech_are_warned_of(caplog):
    names = " ".join(["<sil>", *["AH"] * 9, "<.>"])
    rushed, fast = (joined(part(names, [50, n, *[0] * 8, 50])) for n in (2, 3))
    warn_if_rushed(fast, 1.0)
    warn_if_rushed(rushed, 0.5)  # as asked for: half of 0.4 s
    assert caplog.text == ""
    warn_if_rushed(rushed, 1.0)
    assert "9 phones in 0.20 s: the model is hardly trained; train it longer" in caplog.text


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".ogg", ".mp3"])
def test_speech_is_saved_in_the_format_of_its_name(tmp_path, suffix):
    # 16 kHz: MP3 has no rate of 1 kHz
    speech = replace(joined(hello(), hello()), sample_rate=16000)
    speech.save(tmp_path / "new" / f"speech{suffix}")
    info = soundfile.info(tmp_path / "new" / f"speech{suffix}")
    assert info.samplerate == 16000
    assert f".{info.format.lower()}" == suffix
    if suffix in (".wav", ".flac"):
        wav, _ = soundfile.read(tmp_path / "new" / f"speech{suffix}", dtype="float32")
        assert np.abs(wav - speech.wav).max() < 1 / 32000


def test_an_unknown_audio_format_names_those_there_are(tmp_path):
    with pytest.raises(InputError, match=r"a\.aac: unknown audio format; .* one of \.wav, \.flac"):
        joined(hello()).save(tmp_path / "a.aac")
    with pytest.raises(InputError, match="None: unknown audio format; expected the path of a file"):
        joined(hello()).save(None)
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_a_player_of_the_wav():
    speech = joined(hello())
    encoded = re.fullmatch(
        r'<audio controls src="data:audio/wav;base64,(.+)"></audio>', speech._repr_html_()
    )
    wav, rate = soundfile.read(io.BytesIO(base64.b64decode(encoded[1])), dtype="float32")
    assert rate == RATE
    assert np.abs(wav - speech.wav).max() < 1 / 32000
