"""Clips that are aligned with their texts, and the ends of their speech."""

import numpy as np
import pytest

from models.programs.corpus import checking
from models.programs.corpus.checking import Checker
from models.programs.corpus.clips import CorpusClip
from processors.alignment.textgrid import read_textgrid
from processors.records import Alignment
from tests.commands import ROOT

GRIDS = ROOT / "egs" / "_demo" / "LJSpeech-mini" / "TextGrid"


def test_aligner_finds_the_ends_of_clips(checker, demo_clips):
    distances = []
    for clip in checker("", demo_clips[1]):
        assert not clip.reason
        words = [w for w in read_textgrid(GRIDS / f"{clip.recording}.TextGrid").words if w.text]
        distances += [clip.start_s - words[0].start_s, clip.end_s - words[-1].end_s]
    assert np.median(np.abs(distances)) < 0.03
    assert np.max(np.abs(distances)) < 0.15


def test_aligner_finds_wrong_texts(checker, demo_clips):
    right = demo_clips[1][1]
    wrong = right._replace(text="Mr. Buxton's friends at once paid, and the boy was released.")
    assert checker("", [wrong])[0].reason
    (part,) = checker("", [wrong._replace(parts=[list(right)])])  # as read from a table
    assert (part.text, part.reason) == (right.text, "")


def test_noise_at_the_start_of_a_clip_is_cut_off(checker, demo_clips):
    folder, clips = demo_clips
    clip = checker("", clips[2:3])[0]
    pcm = np.load(folder / f"{clip.recording}.npy")[round(16000 * clip.start_s) :]
    noise = np.random.default_rng(0).normal(0, 2000, 4800).astype(np.int16)
    np.save(folder / "noisy.npy", np.concatenate([noise, pcm]))
    end_s = 0.3 + clip.end_s - clip.start_s
    noisy = clip._replace(recording="noisy", start_s=0.0, end_s=end_s, room_end_s=end_s + 1)
    (trimmed,) = checker("", [noisy])
    assert not trimmed.reason
    assert trimmed.start_s == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize(
    ("misfit", "n_unrecognised", "reason"),
    [
        (30.0, 0, ""),
        (40.0, 0, "40 % of its words were recognised otherwise"),
        (10.0, 1, "no pause around it at which the text is certain"),
    ],
)
def test_without_an_aligner_clips_fit_by_their_recognised_words(
    tmp_path, misfit, n_unrecognised, reason
):
    part = CorpusClip("a", 1.0, 2.0, "It is.", 0.0)
    clip = part._replace(misfit=misfit, n_unrecognised=n_unrecognised, parts=[part])
    checker = Checker(tmp_path, "en-us")
    assert not checker.train([clip], 1)
    assert checker("", [clip]) == [part if reason else clip._replace(parts=())]
    (checked,) = checker("", [clip._replace(parts=())])
    assert checked.reason == reason


@pytest.mark.parametrize(
    ("levels", "n_noisy"),
    [("######..##", 6), ("#####..###", 0), ("######....", 0), ("##########", 0), ("", 0)],
)
def test_noise_in_a_phone_ends_at_a_pause_after_which_the_phone_sounds(levels, n_noisy):
    assert checking._n_noisy(np.array([level == "#" for level in levels], dtype=bool)) == n_noisy


@pytest.mark.parametrize(
    ("first", "last", "start_s", "end_s"),
    [
        ("M", "AA1", 0.46, 0.87),  # sonorants are loud from start to end
        ("K", "Z", 0.44, 0.92),
        ("F", "TH", 0.34, 1.0),  # the weakest fricatives may be silent
        ("m", "z", 0.46, 0.92),  # IPA
    ],
)
def test_soft_ends_of_speech_are_as_long_as_the_phone_may_be_soft(first, last, start_s, end_s):
    wav = np.zeros(16000)
    wav[8000:12800] = 0.1 * np.sin(np.arange(4800))  # 0.5 to 0.8 s
    boundaries_s = np.array([0.0, 0.6, 0.7, 1.0])  # of phones that extend over the silence
    alignment = Alignment((first, "AH0", last), boundaries_s, ())
    span_s = checking._span_s(alignment, wav.astype(np.float32))
    assert span_s == pytest.approx((start_s, end_s), abs=0.025)
