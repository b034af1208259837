from dataclasses import replace

import numpy as np
import pytest

from processors.scoring.metrics.cer import character_error, score
from processors.scoring.recognition import LabelledSpeech
from processors.scoring.user_models import UserModels

pytest.importorskip("jiwer")
SPEECH = LabelledSpeech(np.zeros(1600, dtype=np.float32), 16000, "The cat sat.", "en-us")


@pytest.mark.parametrize(
    ("heard", "errors"),
    [
        ("the cat sat", 0),
        ("the cats sat", 1),  # one letter more
        ("the cat", 4),  # three letters and the space before them
        ("th cat mat", 2),
        ("", 11),
    ],
)
def test_errors_are_counted_per_character(heard, errors):
    assert character_error("the cat sat", heard) == pytest.approx(errors / 11)


def test_a_score_has_percent_its_characters_as_weight_and_the_hypothesis():
    speech = replace(SPEECH, user_models=UserModels(recogniser=lambda *_: "The Cats sat"))
    assert score(speech) == (pytest.approx(100 / 11), 11, "the cats sat")


def test_words_without_spaces_between_them_are_compared():
    speech = replace(SPEECH, text="今日は晴れ。", language="ja")
    assert score(replace(speech, user_models=UserModels(recogniser=lambda *_: "今日は雨"))) == (
        pytest.approx(100 * 2 / 5), 5, "今日は雨",
    )  # fmt: skip


def test_without_a_text_or_a_recogniser_there_is_no_score():
    assert score(replace(SPEECH, text="...")) is None
    assert score(replace(SPEECH, language="ja")) is None
