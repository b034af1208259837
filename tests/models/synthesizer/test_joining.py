import numpy as np
import pytest

from models.synthesizer.joining import (
    PEAK,
    Part,
    Placed,
    Silence,
    SpokenTimes,
    faded,
    faded_out,
    faded_pieces,
    join,
    place,
    silence,
    warn_if_rushed,
    warn_if_silent,
)
from models.synthesizer.passages import Passage
from models.synthesizer.speech import Speech
from modules.mel import MelConfig
from processors.records import SpokenText, TimedPhone, TimedWord, Word

FRAME_S = 0.01
PHONES = ("<sil>", "HH", "AY", "<.>")
FRAMES = np.array([2, 3, 4, 5])
HI = Passage(SpokenText("Hi.", "hi", PHONES, (Word("hi", 1, 3),)))
BREAK = SpokenText("", "", (), ())


def placed(*sentences, n_pause=0):
    times = SpokenTimes()
    n_outputs = sum(bool(p.spoken.phones) for sentence in sentences for p in sentence)
    outputs = [(f"output {n}", FRAMES) for n in range(n_outputs)]
    items = list(place(sentences, outputs, times, FRAME_S, n_pause))
    return [i.n_frames if isinstance(i, Silence) else i.output for i in items], times, items


def test_a_pause_lies_between_sentences_and_not_between_their_parts():
    items, times, _ = placed([HI, HI], [HI], n_pause=7)
    assert items == ["output 0", "output 1", 7, "output 2"]
    starts = [word.start_s for word in times.words]
    assert starts == pytest.approx([0.02, 0.16, 0.37])
    assert [sentence.text for sentence in times.sentences] == ["Hi. Hi.", "Hi."]


def test_a_break_takes_in_the_pauses_at_both_edges():
    items, times, (_, _, second) = placed([HI], [HI._replace(break_s=0.1)], n_pause=50)
    # ten frames: five of the full stop, two of the silence at the start, three added
    assert items == ["output 0", 3, "output 1"]
    assert second.fitted.durations.tolist() == FRAMES.tolist()
    assert times.words[1].start_s - times.words[0].end_s == pytest.approx(0.1)


def test_a_short_break_cuts_the_pauses():
    items, times, (first, second) = placed([HI], [HI._replace(break_s=0.01)])
    assert items == ["output 0", "output 1"]
    assert isinstance(first, Placed)
    assert isinstance(second, Placed)
    assert (first.fitted.end, second.fitted.start) == (FRAMES.sum() - 4, 2)
    assert times.words[1].start_s - times.words[0].end_s == pytest.approx(0.01)


def test_a_passage_without_phones_is_only_its_break_and_marks():
    end = Passage(BREAK, break_s=0.2, marks=(("end", 0),))
    items, times, _ = placed([HI, end])
    assert items == ["output 0", 15]
    assert [(mark.name, mark.time_s) for mark in times.marks] == [("end", pytest.approx(0.29))]


def test_times_of_a_passage_are_known_before_its_output_comes():
    times = SpokenTimes()
    items = place([[HI], [HI]], [("a", FRAMES), ("b", FRAMES)], times, FRAME_S, 0)
    assert next(items).output == "a"
    assert len(times.words) == 1


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
