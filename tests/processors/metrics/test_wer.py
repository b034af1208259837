import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from processors.metrics import Speech
from processors.metrics.wer import recognise, score, word_error, words_of

DEMO = Path(__file__).parents[3] / "egs" / "_demo" / "LJSpeech-mini"
CLIP = "LJ001-0008"  # 1.8 s


def edits(words: list[str], heard: list[str]) -> int:
    """Fewest substitutions, deletions and insertions, by trying them."""
    if not words or not heard:
        return len(words) + len(heard)
    if words[0] == heard[0]:
        return edits(words[1:], heard[1:])
    return 1 + min(edits(words[1:], heard[1:]), edits(words[1:], heard), edits(words, heard[1:]))


@pytest.fixture(scope="module")
def clip() -> Speech:
    wav, rate = soundfile.read(DEMO / "wavs" / f"{CLIP}.flac", dtype="float32")
    with (DEMO / "metadata.csv").open(encoding="utf-8") as file:
        texts = {row[0]: row[-1] for row in csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE)}
    return Speech(wav, rate, texts[CLIP], "en-us")


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
    pytest.importorskip("jiwer")
    words = "the cat sat on the mat"
    assert errors == edits(words.split(), heard.split())
    assert word_error(words, heard) == pytest.approx(errors / 6)


def test_words_are_compared_without_case_and_punctuation():
    assert words_of("The Uncle’s cat -- it's 'his', he said: \"No!\"") == (
        "the uncle's cat it's his he said no"
    )


def test_a_recording_is_read_at_any_level_and_silence_as_nothing(clip):
    heard = recognise(clip.wav, clip.sample_rate)
    assert len(set(heard.split()) & set(words_of(clip.text).split())) >= 2
    assert recognise(0.1 * clip.wav, clip.sample_rate) == heard
    assert recognise(np.zeros(16000, dtype=np.float32), 16000) == ""


def test_a_score_is_in_percent_and_weighs_its_words_and_says_what_was_heard(clip):
    pytest.importorskip("jiwer")
    value, weight, note = score(clip)
    words = words_of(clip.text).split()
    assert weight == len(words)
    assert value == pytest.approx(100 * edits(words, note.split()) / len(words))
    assert score(replace(clip, wav=0 * clip.wav)) == (100.0, len(words), "")


def test_no_text_and_other_languages_have_no_score(clip):
    assert score(replace(clip, text="... -")) is None
    assert score(replace(clip, text="12")).weight == 1
    assert score(replace(clip, language="de")) is None
