import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from processors.metrics.recognition import labelled_speech
from processors.metrics.recognition.labelled_speech import recognise, recognised_words
from processors.metrics.recognition.user_models import UserModels
from tests.processors.spliced import WORDS, Recording
from utils.errors import InputError

DEMO = Path(__file__).parents[4] / "egs" / "_demo" / "LJSpeech-mini"
CLIP = "LJ001-0008"  # 1.8 s
SOUND = labelled_speech.LabelledSpeech(np.full(4, 0.5, dtype=np.float32), 8000, "", "nl", id="a")


@pytest.fixture(scope="module")
def clip() -> labelled_speech.LabelledSpeech:
    wav, rate = soundfile.read(DEMO / "wavs" / f"{CLIP}.flac", dtype="float32")
    with (DEMO / "metadata.csv").open(encoding="utf-8") as file:
        texts = {row[0]: row[-1] for row in csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE)}
    return labelled_speech.LabelledSpeech(wav, rate, texts[CLIP], "en-us", id=CLIP)


@pytest.fixture(scope="module")
def heard(clip) -> str:
    return recognise(clip.wav, clip.sample_rate)


def test_a_recording_is_read_at_any_level_and_silence_as_nothing(clip, heard):
    assert len(set(heard.split()) & set(labelled_speech.words_of(clip.text, "en-us").split())) >= 2
    assert recognise(0.1 * clip.wav, clip.sample_rate) == heard
    assert recognise(np.zeros(16000, dtype=np.float32), 16000) == ""
    assert recognise(np.zeros(0, dtype=np.float32), 16000) == ""
    assert recognise(clip.wav[:3], 16000) == ""


def test_a_hypothesis_does_not_depend_on_earlier_signals(clip):
    wav = clip.wav[: clip.sample_rate // 2]
    noise = np.random.default_rng(0).normal(0, 0.2, len(wav)).astype(np.float32)
    noisy = wav + 0.2 * noise
    labelled_speech.recogniser.cache_clear()
    first = recognise(noisy, clip.sample_rate)
    recognise(noise, clip.sample_rate)
    assert recognise(noisy, clip.sample_rate) == first
    assert first


def test_pocketsphinx_recognises_english_only(clip, heard):
    assert clip.hypothesis == heard
    assert replace(clip, language="de").hypothesis is None


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("en-us", "The Uncle’s cat -- it's 'his', he said: \"No!\"",
         "the uncle's cat it's his he said no"),
        ("en", "Mr. Lee paid $5 (well-known).", "mister lee paid five dollars well known"),
        ("en", "Привет, hello", "privet hello"),
        ("fr-fr", "«L’École» – c'est 12 ans; où\xa0?", "l'école c'est 12 ans où"),
        ("de", "STRASSE", "strasse"),
        ("hi", "नमस्ते, दुनिया।", "नमस्ते दुनिया"),
        ("", "Hello!", "hello"),
        ("en-us", "... -", ""),
    ],
)  # fmt: skip
def test_words_are_compared_without_case_and_punctuation(language, text, words):
    assert labelled_speech.words_of(text, language) == words


def test_a_recogniser_of_the_user_takes_any_language_and_runs_once():
    heard = []

    def listen(wav, sample_rate, language):
        heard.append(f"{len(wav)} {wav.dtype} {sample_rate} {language}")
        return heard[-1]

    sound = replace(SOUND, user_models=UserModels(recogniser=listen))
    assert [sound.hypothesis, sound.hypothesis] == 2 * ["4 float32 8000 nl"]
    assert len(heard) == 1


def test_a_recogniser_gives_text():
    sound = replace(SOUND, user_models=UserModels(recogniser=lambda *_: {"text": "hello"}))
    with pytest.raises(InputError, match="returned dict for a; a recogniser returns the text"):
        _ = sound.hypothesis


def test_transcripts_come_before_a_recogniser_and_one_of_each_must_be_there(tmp_path):
    def heard(folder: Path, id: str = "a") -> str | None:
        models = UserModels(recogniser=lambda *_: "from the recogniser", transcripts=folder)
        return replace(SOUND, id=id, user_models=models).hypothesis

    (tmp_path / "a.txt").write_text("\ufeffEén kop koffie.\n", encoding="utf-8")
    assert heard(tmp_path) == "Eén kop koffie.\n"
    assert heard(tmp_path / "recorded") is None
    with pytest.raises(InputError, match=r"b\.txt: No such file"):
        heard(tmp_path, "b")


@pytest.fixture(scope="module")
def recording():
    return Recording()


def said(wav, rate, words=WORDS):
    return [place for place, _ in recognised_words(words, wav, rate)]


@pytest.mark.parametrize(
    ("text", "spoken", "expected"),
    [
        ("a b c", "a b c", [0, 1, 2]),
        ("a b c", "a c", [0, 2]),
        ("a b c", "b", [1]),
        ("a b c", "a b a b c", [0, 1, 0, 1, 2]),
        ("the cat the dog", "the dog", [2, 3]),  # as near to the end as to the beginning
        ("the cat the dog", "the cat the the dog", [0, 1, 2, 2, 3]),
        ("the cat the dog ran", "the cat ran", [0, 1, 4]),
        ("a a a", "a a", [0, 1]),
    ],
)
def test_words_are_placed_with_the_fewest_skipped_or_repeated(text, spoken, expected):
    words = text.split()
    found = labelled_speech.word_indices(words, spoken.split())
    assert [words[place] for place in found] == spoken.split()
    assert cost(found, len(words)) == cost(expected, len(words))


def cost(found: list[int], n_words: int) -> int:
    """Words skipped and repeated, in all."""
    steps = np.diff([-1, *found, n_words])
    return int(np.abs(steps - 1).sum())


def test_a_recording_says_its_words_in_order_where_they_start(recording):
    found = recognised_words(WORDS, recording.wav, recording.rate)
    assert [place for place, _ in found] == list(range(len(WORDS)))
    late = np.array([start_s for _, start_s in found]) - recording.starts_s
    assert np.abs(late[1:]).max() < 0.1  # the first includes the silence before it


def test_words_that_are_cut_out_are_skipped(recording):
    everything = list(range(len(WORDS)))
    for start, end in ((2, 4), (7, 9), (0, 2), (12, 14)):
        wav = recording.without(start, end)
        assert said(wav, recording.rate) == everything[:start] + everything[end:]


def test_words_that_are_spoken_twice_are_repeated(recording):
    everything = list(range(len(WORDS)))
    for start, end in ((7, 8), (6, 9), (11, 14)):
        wav = recording.twice(start, end)
        assert said(wav, recording.rate) == everything[:end] + everything[start:]


def test_found_words_do_not_depend_on_earlier_signals(recording):
    first = recognised_words(WORDS, recording.wav, recording.rate)
    noise = np.random.default_rng(0).normal(scale=0.3, size=30000).astype(np.float32)
    recognised_words(["other", "words"], noise, 16000)
    assert recognised_words(WORDS, recording.wav, recording.rate) == first


def test_rate_and_level_do_not_matter(recording):
    for rate in (16000, 48000):
        wav = soxr.resample(recording.wav, recording.rate, rate)
        assert said(0.02 * wav, rate) == list(range(len(WORDS)))


def test_a_word_that_no_dictionary_holds_is_pronounced(recording):
    words = ["prodooced", *WORDS[1:]]
    assert said(recording.wav, recording.rate, words) == list(range(len(WORDS)))


def test_silence_and_what_is_too_short_say_nothing(recording):
    assert recognised_words(WORDS, np.zeros(16000, dtype=np.float32), 16000) is None
    assert recognised_words(WORDS, recording.wav[:0], recording.rate) is None
    assert recognised_words(["predecessors"], recording.wav[9000:9100], recording.rate) is None
