import numpy as np
import pytest

from models.synthesizer.passages import Passage
from models.synthesizer.timing import Placed, Silence, SpokenTimes, place
from processors.records import SpokenText, Word

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
    assert (first.fitted.n_cut_end, second.fitted.n_cut_start) == (4, 2)
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
