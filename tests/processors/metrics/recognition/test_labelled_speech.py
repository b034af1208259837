import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from processors.metrics.recognition import labelled_speech
from processors.metrics.recognition.labelled_speech import LabelledSpeech, recognise, words_of
from processors.metrics.recognition.user_models import UserModels
from utils.errors import InputError

DEMO = Path(__file__).parents[4] / "egs" / "_demo" / "LJSpeech-mini"
CLIP = "LJ001-0008"  # 1.8 s
SOUND = LabelledSpeech(np.full(4, 0.5, dtype=np.float32), 8000, "", "nl", id="a")


@pytest.fixture(scope="module")
def clip() -> LabelledSpeech:
    wav, rate = soundfile.read(DEMO / "wavs" / f"{CLIP}.flac", dtype="float32")
    with (DEMO / "metadata.csv").open(encoding="utf-8") as file:
        texts = {row[0]: row[-1] for row in csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE)}
    return LabelledSpeech(wav, rate, texts[CLIP], "en-us", id=CLIP)


def test_a_recording_is_read_at_any_level_and_silence_as_nothing(clip):
    heard = recognise(clip.wav, clip.sample_rate)
    assert len(set(heard.split()) & set(words_of(clip.text, "en-us").split())) >= 2
    assert recognise(0.1 * clip.wav, clip.sample_rate) == heard
    assert recognise(np.zeros(16000, dtype=np.float32), 16000) == ""
    assert recognise(np.zeros(0, dtype=np.float32), 16000) == ""
    assert recognise(clip.wav[:3], 16000) == ""


def test_a_hypothesis_does_not_depend_on_earlier_signals(clip):
    noise = np.random.default_rng(0).normal(0, 0.2, 3 * clip.sample_rate).astype(np.float32)
    noisy = clip.wav + 0.2 * noise[: len(clip.wav)]
    labelled_speech.recogniser.cache_clear()
    first = recognise(noisy, clip.sample_rate)
    recognise(noise, clip.sample_rate)
    assert recognise(noisy, clip.sample_rate) == first
    assert first


def test_pocketsphinx_recognises_english_only(clip):
    assert clip.hypothesis == recognise(clip.wav, clip.sample_rate)
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
    assert words_of(text, language) == words


def test_a_recogniser_of_the_user_takes_any_language():
    def listen(wav, sample_rate, language):
        return f"{len(wav)} {wav.dtype} {sample_rate} {language}"

    sound = replace(SOUND, user_models=UserModels(recogniser=listen))
    assert sound.hypothesis == "4 float32 8000 nl"


def test_a_recogniser_runs_once():
    heard = []
    sound = replace(SOUND, user_models=UserModels(recogniser=lambda *_: str(heard.append(1))))
    assert (sound.hypothesis, sound.hypothesis, len(heard)) == ("None", "None", 1)


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
