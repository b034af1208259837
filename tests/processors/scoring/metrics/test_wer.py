from dataclasses import replace

import numpy as np
import pytest

from processors.scoring.metrics.wer import score, word_error
from processors.scoring.recognition import LabelledSpeech
from processors.scoring.user_models import UserModels

pytest.importorskip("jiwer")
WORDS = "the cat sat on the mat"
SPEECH = LabelledSpeech(np.zeros(1600, dtype=np.float32), 16000, "The cat sat on the mat.", "en-us")


def edits(words: list[str], heard: list[str]) -> int:
    """Fewest substitutions, deletions and insertions, by trying them."""
    if not words or not heard:
        return len(words) + len(heard)
    if words[0] == heard[0]:
        return edits(words[1:], heard[1:])
    return 1 + min(edits(words[1:], heard[1:]), edits(words[1:], heard), edits(words, heard[1:]))


def hearing(speech: LabelledSpeech, heard: str) -> LabelledSpeech:
    return replace(speech, user_models=UserModels(recogniser=lambda *_: heard))


@pytest.mark.parametrize(
    ("heard", "errors"),
    [
        ("the cat sat on the mat", 0),
        ("the cat sat on mat", 1),
        ("a cat sat on on the mat", 2),
        ("", 6),
        ("dogs bark and bark at cats and rats", 8),
    ],
)
def test_errors_are_counted_per_word(heard, errors):
    assert errors == edits(WORDS.split(), heard.split())
    assert word_error(WORDS, heard) == pytest.approx(errors / 6)


def test_a_score_has_percent_its_words_as_weight_and_the_hypothesis():
    value, weight, note = score(hearing(SPEECH, "A CAT sat on the... mat?"))
    assert (value, weight, note) == (pytest.approx(100 / 6), 6, "a cat sat on the mat")


def test_numbers_are_compared_in_words():
    five = replace(SPEECH, text="It is five dollars.")
    assert score(hearing(five, "It is $5"))[:2] == (0, 4)


def test_pocketsphinx_recognises_no_word_in_silence():
    assert score(SPEECH) == (100, 6, "")


def test_without_a_text_or_a_recogniser_there_is_no_score():
    assert score(replace(SPEECH, text="... -")) is None
    assert score(replace(SPEECH, text="12")).weight == 1
    assert score(replace(SPEECH, language="de")) is None
    assert score(hearing(replace(SPEECH, language="de", text="Ja, gut"), "ja gut")).value == 0


def test_recordings_without_transcripts_have_no_score(tmp_path):
    (tmp_path / "a.txt").write_text("the cat")
    spoken = replace(SPEECH, id="a", user_models=UserModels(transcripts=tmp_path))
    assert score(spoken).value == pytest.approx(100 * 4 / 6)
    assert score(replace(spoken, recorded=True)) is None
