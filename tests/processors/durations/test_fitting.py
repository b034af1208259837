"""Durations of one recording, fitted to its text and its length."""

import numpy as np
import pytest
import soundfile

from config.preprocess import PreprocessConfig
from config.text import TextConfig
from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError
from processors.alignment.timed import Interval, make_grid
from processors.durations.fitting import Fitter, Interpretation, renamed
from processors.durations.sources import FrameCounts, SourceEntry
from processors.durations.tokens import FrameRate
from processors.records import SpokenText, Word
from processors.text.frontend import TextFrontend

CONFIG = PreprocessConfig()  # 256 samples at 22050 Hz
TEXT = "Hi, you!"


@pytest.fixture
def utterance(tmp_path):
    path = tmp_path / "u1.wav"
    soundfile.write(path, np.zeros(256 * 20), 22050)
    return Utterance("u1", path, TEXT, "ann", "en-us")


def fit(utterance, found, interpretation):
    entry = SourceEntry("u1", utterance.audio.with_suffix(".npy"), lambda: found)
    return Fitter(CONFIG, interpretation)(entry, utterance)


def test_frames_of_twice_the_hop_become_twice_as_many_frames(utterance):
    phones = TextFrontend(CONFIG.text, "en-us")(TEXT).phones
    frames = np.ones(len(phones), dtype=np.int64)
    frames[1] = 10 - len(phones) + 1
    speech, off = fit(utterance, FrameCounts(frames), Interpretation(rate=FrameRate(512, 22050)))
    assert speech.frames.tolist() == (2 * frames).tolist()
    assert off == 0
    assert [phone.name for phone in speech.phones] == list(phones)
    assert [word.text for word in speech.words] == ["Hi", "you"]
    assert speech.seconds == pytest.approx(256 * 20 / 22050)


def test_an_error_names_the_file_of_the_entry(utterance):
    with pytest.raises(AlignmentError, match=r"u1\.npy: it has 2 durations, the text \d+ tokens"):
        fit(utterance, FrameCounts(np.array([10, 10])), Interpretation())
    grid = make_grid(None, [], [Interval("HH", 0.2, 0.1)])
    with pytest.raises(AlignmentError, match=r"u1\.npy: HH lasts from 0.200 to 0.100 s"):
        fit(utterance, grid, Interpretation())


def test_renamed_phones_keep_their_times_and_pauses_their_names():
    spoken = SpokenText("Hi", "Hi", ("<sil>", "HH", "AY1", "<.>"), (Word("Hi", 1, 3),))
    names = ["<sil>", "h", "<sp>", "ai", "<.>"]
    grid = make_grid(None, [], [Interval(name, n, n + 1) for n, name in enumerate(names)])
    found = renamed(grid, spoken).phones
    assert [one.label for one in found] == ["<sil>", "HH", "<sp>", "AY1", "<.>"]
    assert [one.start_s for one in found] == [0, 1, 2, 3, 4]


LETTERS = PreprocessConfig(aligner="imported", text=TextConfig(phone_extractor="letters"))
SPELT = "it's a cat, so"


@pytest.mark.parametrize("table", [False, True], ids=["by layout", "by names"])
def test_durations_of_letters_fit_text_in_letters(tmp_path, table):
    path = tmp_path / "u1.wav"
    soundfile.write(path, np.zeros(256 * 20), 22050)
    utterance = Utterance("u1", path, SPELT, "ann", "en-us")
    names = [*"it's", "_", "a", "_", *"cat", ",", "_", *"so", "."]  # a comma and a space
    frames = np.array([1, 1, 0, 2, 0, 1, 3, 1, 1, 1, 2, 1, 2, 2, 2])
    interpretation = Interpretation(tokens="no_start", rate=FrameRate(256, 22050))
    if table:
        file = tmp_path / "tokens.txt"
        file.write_text(f"u1|{' '.join(names)}\n")
        interpretation = Interpretation(table=file, rate=FrameRate(256, 22050))
    else:
        frames = np.array([*frames[:10], 3, *frames[12:]])  # one class for the comma
    entry = SourceEntry("u1", path.with_suffix(".npy"), lambda: FrameCounts(frames))
    fitter = Fitter(LETTERS, interpretation)
    speech, _ = fitter(entry, utterance)
    found = [(phone.name, n) for phone, n in zip(speech.phones, speech.frames, strict=True)]
    words = [*zip("it's", [1, 1, 0, 2], strict=True), ("<space>", 0), ("a", 1), ("<space>", 3)]
    words += [("c", 1), ("a", 1), ("t", 1), ("<,>", 3), ("s", 2), ("o", 2)]
    assert found[1:-1] == words
    assert [word.text for word in speech.words] == ["it's", "a", "cat", "so"]
