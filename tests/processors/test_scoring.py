import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from modules.mel import MelConfig
from processors import judging, scoring
from processors.judging import read_sound
from processors.metrics import Metric, Value
from processors.scoring import Column, Item, ScoringTask, Spoken, columns_of, score_items
from utils.errors import InputError

MEL = MelConfig()
COPY = Metric("s", better="lower", judges="copy", needs="sound")
SPEECH = Metric("%", better="lower", judges="speech", needs="a text")


@pytest.fixture
def metrics(monkeypatch):
    """Three metrics that say how they were called."""
    known = {
        "longer": SimpleNamespace(
            METRIC=COPY, score=lambda copy: Value(len(copy.wav) + len(copy.wav_hat) / 1e6)
        ),
        "nan": SimpleNamespace(METRIC=COPY, score=lambda _: Value(math.nan)),
        "level": SimpleNamespace(
            METRIC=SPEECH,
            score=lambda s: (
                Value(float(np.abs(s.wav).max()), len(s.text), str(s.sample_rate))
                if s.text
                else None
            ),
        ),
    }
    for module in (scoring, judging):
        monkeypatch.setattr(module, "find", known.__getitem__)


def noise(n_samples: int = 4000) -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.5, 0.5, n_samples).astype(np.float32)


def make_item(folder: Path, n_hat: int = 4000, rate: int = 22050, text: str = "hello") -> Item:
    path = folder / "a.wav"
    soundfile.write(path, noise(n_hat) / 2, rate, subtype="PCM_16")
    return Item("a", noise, text, "en-us", "anna", None, {"mine": Spoken(path, is_copy=True)})


def score(item: Item, *names: str):
    (scored,) = score_items("chunk", [item], ScoringTask(names, MEL))
    return scored["mine"]


@pytest.mark.usefixtures("metrics")
def test_speech_is_judged_in_both_and_the_difference_taken(tmp_path):
    scored = score(make_item(tmp_path, 8000, 44100), "level")
    peak = float(np.abs(noise()).max())
    assert scored.values["level"] == (pytest.approx(0.25, abs=1e-3), 5, "44100")
    assert scored.values["level_recorded"] == (peak, 5, "22050")
    assert scored.values["level_difference"].value == pytest.approx(0.25 - peak, abs=1e-3)
    assert scored.values["level_difference"].weight == 5
    assert (scored.id, scored.seconds) == ("a", 8000 / 44100)
    assert [column.name for column in columns_of(["longer", "level"])] == [
        "longer", "level", "level_recorded", "level_difference",
    ]  # fmt: skip
    assert columns_of(["level"])[1] == Column("level_recorded", "%", "")


@pytest.mark.usefixtures("metrics")
@pytest.mark.parametrize("n_hat", [4000 - 512, 3999, 4000, 4000 + 512])
def test_a_copy_is_cut_to_the_shorter_of_both(tmp_path, n_hat):
    value = score(make_item(tmp_path, n_hat), "longer").values["longer"].value
    assert value == pytest.approx(min(n_hat, 4000) * (1 + 1e-6), rel=1e-9)


@pytest.mark.usefixtures("metrics")
@pytest.mark.parametrize("n_hat", [4000 - 513, 4000 + 513])
def test_a_copy_of_another_length_is_refused_unless_nothing_needs_it(tmp_path, n_hat):
    item = make_item(tmp_path, n_hat)
    with pytest.raises(InputError, match=rf"a\.wav: {n_hat} samples, and its recording has 4000"):
        score(item, "level", "longer")
    assert "level" in score(item, "level").values


@pytest.mark.usefixtures("metrics")
def test_a_copy_at_another_rate_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"a\.wav: 16000 Hz, and the mel is one of 22050 Hz"):
        score(make_item(tmp_path, rate=16000), "longer")


@pytest.mark.usefixtures("metrics")
def test_what_could_not_be_judged_has_no_value(tmp_path):
    assert score(make_item(tmp_path, text=""), "level", "nan").values == {}


def test_a_file_that_is_no_sound_is_named(tmp_path):
    (tmp_path / "text.wav").write_text("hello")
    with pytest.raises(InputError, match=r"text\.wav: not readable as audio"):
        read_sound(tmp_path / "text.wav")
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), 8000)
    with pytest.raises(InputError, match=r"empty\.wav: holds no sample"):
        read_sound(tmp_path / "empty.wav")
    soundfile.write(tmp_path / "nan.wav", np.array([0.1, math.nan]), 8000, subtype="FLOAT")
    with pytest.raises(InputError, match=r"nan\.wav: holds NaN"):
        read_sound(tmp_path / "nan.wav")


def test_the_real_metrics_agree_on_a_copy_at_half_the_level(tmp_path):
    values = score(make_item(tmp_path), "mel_l1", "mstft").values
    assert values["mel_l1"] == (pytest.approx(math.log(2), abs=1e-3), 4000 // 256, "")
    assert values["mstft"].value == pytest.approx(0.5 + math.log(2), abs=1e-3)
