"""Text between two clips that is aligned with the sound between them."""

import numpy as np
import pytest

from config.text import TextConfig
from models.programs.corpus.clips import CorpusClip
from models.programs.corpus.filling import Filler, Gap, find_gaps, with_filled
from models.programs.corpus.texts import source_of
from processors.text.frontend import TextFrontend

ORDER = (0, 2, 1)  # of the clips of the demo in the recording; the second is not recognised
NOISE_S = 1.5  # before the second


@pytest.fixture(scope="module")
def recording(checker, demo_clips):
    """A recording with noise before the second of three clips, its text, and all clips."""
    folder, demo = demo_clips
    frontend = TextFrontend(TextConfig(), "en-us", "skip")
    texts = [demo[n].text for n in ORDER]
    source = source_of([*texts[:2], "Nobody reads this.", texts[2]], frontend, "text")
    lengths = [len(frontend(text).words) for text in (*texts[:2], "Nobody reads this.", texts[2])]
    past = np.cumsum(lengths).tolist()
    noise = np.random.default_rng(0).normal(0, 1500, round(NOISE_S * 16000)).astype(np.int16)
    parts, spans, n = [], [], 0
    for place, number in enumerate(ORDER):
        pcm = np.load(folder / f"{demo[number].recording}.npy")
        lead = noise if place == 1 else np.zeros(8000, np.int16)
        parts += [lead, pcm]
        spans.append(((n + len(lead)) / 16000, (n + len(lead) + len(pcm)) / 16000))
        n += len(lead) + len(pcm)
    np.save(folder / "long.npy", np.concatenate(parts))
    words = [(0, past[0] - 1), (past[0], past[1] - 1), (past[2], past[3] - 1)]
    clips = [
        CorpusClip("long", start_s, end_s, text, 0.0, "", start_s, end_s, *edges)
        for (start_s, end_s), text, edges in zip(spans, texts, words, strict=True)
    ]
    unsure_s = clips[1].start_s - NOISE_S, clips[1].end_s
    unsure = CorpusClip("long", *unsure_s, "(the uncle)", 100.0, "its words are not in the text")
    return source, [clips[0], unsure, clips[2]], clips[1], n / 16000


def test_sentence_that_was_not_recognised_is_found_by_the_aligner(checker, recording):
    source, clips, hidden, seconds = recording
    gaps = list(find_gaps(clips, source, seconds))
    assert [s.text for s in gaps[0].sentences][-1] == "Nobody reads this."
    (found,) = Filler(checker)("", gaps)
    assert found.text == hidden.text
    assert (found.text_first, found.text_last) == (hidden.text_first, hidden.text_last)
    assert found.start_s == pytest.approx(hidden.start_s + 0.1, abs=0.15)
    assert found.end_s == pytest.approx(hidden.end_s - 0.1, abs=0.25)
    filled = with_filled(clips, [found])
    assert [clip.reason == "" for clip in filled] == [True, False, True, True]
    assert filled[1].end_s == found.start_s
    assert (filled[1].text, filled[1].text_first) == ("", -1)
    assert filled[0].room_end_s <= found.start_s
    assert filled[3].room_start_s >= found.end_s
    assert found.start_s - 0.1 < found.room_start_s <= found.start_s  # the end of the noise


@pytest.mark.parametrize(
    ("start_s", "end_s", "spans"),
    [
        (0.0, 3.1, [(0.0, 3.0, "(ah)")]),  # hardly any of it is covered
        (4.9, 9.0, [(5.0, 9.0, "(ah)")]),
        (0.0, 4.0, [(0.0, 3.0, "")]),
        (2.0, 6.0, [(2.0, 3.0, ""), (5.0, 6.0, "")]),
        (3.1, 4.9, []),
    ],
)
def test_of_sound_that_was_left_out_the_rest_next_to_a_new_clip_stays(start_s, end_s, spans):
    left_out = CorpusClip("a", start_s, end_s, "(ah)", 63.0, "misfit 63", start_s, end_s)
    new_clip = CorpusClip("a", 3.0, 5.0, "Ah, yes.", 2.0, "", 3.0, 5.0, 7, 8)
    parts = [clip for clip in with_filled([left_out], [new_clip]) if clip.reason]
    assert [(clip.start_s, clip.end_s, clip.text) for clip in parts] == spans


def test_text_that_is_not_spoken_is_not_found(checker, recording):
    source, clips, _, seconds = recording
    (gap,) = find_gaps(clips, source, seconds)
    unread = [s for s in gap.sentences if s.text == "Nobody reads this."]
    assert not Filler(checker)("", [gap._replace(sentences=tuple(unread))])


def test_gaps_without_text_or_sound_are_none(recording):
    source, clips, hidden, seconds = recording
    after_it = clips[2]._replace(text_first=hidden.text_first)  # the text goes back
    assert not list(find_gaps([clips[0], after_it], source, seconds))
    near = clips[2]._replace(start_s=clips[0].end_s + 0.5)
    assert not list(find_gaps([clips[0], near], source, seconds))
    assert not list(find_gaps(clips[1:2], source, seconds))  # a recording without clips
    assert with_filled(clips[1:2], []) == clips[1:2]


def test_of_a_long_text_the_sentences_next_to_the_clips_are_tried(recording):
    source, *_ = recording
    names = ("One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Ann")
    frontend = TextFrontend(TextConfig(), "en-us", "skip")
    source = source_of([f"{name} sat." for name in ("Tom", *names, "Bob")], frontend, "text")
    clips = [CorpusClip("a", 9.0 * n, 9.0 * n + 1, "", 0, "", 0, 0, *edges) for n, edges in
             enumerate([(0, 1), (24, 25)])]  # fmt: skip
    (gap,) = find_gaps(clips, source, 10.0)
    assert [s.text for s in gap.sentences] == [f"{n} sat." for n in (*names[:5], *names[6:])]
    assert Gap("a", 1.0, 9.0, gap.phone_s, gap.sentences, ()) == gap
