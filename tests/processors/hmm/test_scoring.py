import numpy as np
import pytest

from processors.hmm.chain import Segment
from processors.hmm.model import Found
from processors.hmm.scoring import score_of
from processors.hmm.training import train
from tests.processors.hmm.synthetic import corpus, segments_in

SEGMENTS = (Segment(0, "edge"), Segment(1), Segment(2), Segment(0, "edge"))


def test_the_worst_third_of_a_second_is_found_and_its_phone_named():
    misfit = np.zeros(200)
    misfit[:20] = 50  # silence before the first phone does not count
    misfit[100:133] = 3.3
    found = Found(np.array([0.2, 0.9, 1.9, 2.0]), misfit)
    score = score_of(found, SEGMENTS, ["a", "b"])
    assert score.worst == pytest.approx(3.3)
    assert score.worst_s == pytest.approx(1.165)
    assert score.worst_phone == "b"
    assert (score.longest_phone, score.longest_s) == ("b", 1.0)
    assert score.misfit == pytest.approx(33 * 3.3 / 170, abs=1e-3)


def test_an_utterance_of_a_few_frames_has_a_score():
    found = Found(np.array([0.0, 0.04, 0.08, 0.1]), np.arange(10.0))
    score = score_of(found, SEGMENTS, ["a", "b"])
    assert score.worst == score.misfit == pytest.approx(3.5)


def test_a_word_that_is_not_said_makes_the_worst_stretch_worse():
    drawn = corpus()
    model = train([one.example for one in drawn])
    right, wrong = [], []
    for one in drawn[:20]:
        example = one.example
        swapped = (tuple("abcdef"[("abcdef".index(p) + 3) % 6] for p in example.words[0]),)
        for words, scores in ((example.words, right), (swapped + example.words[1:], wrong)):
            segments = segments_in(model, example._replace(words=words))
            found = model.align(model.normalized(example.frames, "ann"), segments)
            scores.append(score_of(found, segments, [phone for word in words for phone in word]))
    assert np.mean([w.worst > r.worst for w, r in zip(wrong, right, strict=True)]) > 0.9
