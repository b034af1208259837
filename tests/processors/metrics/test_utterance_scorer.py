import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from modules.mel import MelConfig
from processors.metrics import utterance_scorer
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from processors.metrics.recognition.user_models import UserModels
from processors.metrics.records import Check, Copy, Metric, MetricValue, NotApplicableError
from processors.metrics.registry import CHECKS, METRICS
from processors.metrics.signals.aligned_pair import AlignedPair
from processors.metrics.utterance_scorer import EvaluatedUtterance, ScoringTask, score_utterance
from processors.records import TimedPhone
from utils.errors import InputError

MEL = MelConfig()


def add(monkeypatch, *metrics: Metric) -> None:
    for metric in metrics:
        monkeypatch.setitem(METRICS, metric.name, metric)


def speech_metric(name: str, score, **changes) -> Metric:
    return Metric(name=name, family="speech", unit="%", better="lower", score=score, **changes)


@pytest.fixture
def metrics(monkeypatch):
    """Metrics that say how they were called."""

    def level(speech: LabelledSpeech) -> MetricValue | None:
        peak = float(np.abs(speech.wav).max())
        return MetricValue(peak, len(speech.text), str(speech.sample_rate)) if speech.text else None

    def longer(copy: Copy) -> MetricValue:
        return MetricValue(len(copy.wav) + len(copy.wav_hat) / 1e6)

    add(
        monkeypatch,
        Metric("longer", longer, "lower", "s", family="copies"),
        Metric("nan", lambda _: MetricValue(math.nan), "lower", "", "sound", family="copies"),
        speech_metric("level", level, needs="a text"),
        speech_metric("nowhere", level, packages=("no_such_package",)),
    )


def noise(n_samples: int = 4000) -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.5, 0.5, n_samples).astype(np.float32)


def make_item(
    folder: Path, n_hat: int = 4000, rate: int = 22050, text: str = "hello"
) -> EvaluatedUtterance:
    path = folder / "a.wav"
    soundfile.write(path, noise(n_hat) / 2, rate, subtype="PCM_16")
    spoken = {"mine": utterance_scorer.SpeechFile(path, is_copy=True)}
    return EvaluatedUtterance("a", noise, text, "en-us", tuple, spoken)


def score(item: EvaluatedUtterance, *names: str):
    return score_utterance(item, ScoringTask(names, MEL))["mine"]


@pytest.mark.usefixtures("metrics")
def test_speech_and_recording_are_scored_and_the_difference_taken(tmp_path):
    scored = score(make_item(tmp_path, 8000, 44100), "level")
    peak = float(np.abs(noise()).max())
    assert scored.values["level"] == (pytest.approx(0.25, abs=1e-3), 5, "44100")
    assert scored.values["level_recorded"] == (peak, 5, "22050")
    assert scored.values["level_difference"].value == pytest.approx(0.25 - peak, abs=1e-3)
    assert scored.values["level_difference"].weight == 5
    assert (scored.id, scored.seconds) == ("a", 8000 / 44100)
    assert [column.name for column in utterance_scorer.columns_of(["longer", "level"])] == [
        "longer", "level", "level_recorded", "level_difference",
    ]  # fmt: skip
    column = utterance_scorer.columns_of(["level"])[1]
    assert column == utterance_scorer.ScoreColumn("level_recorded", "%", "")


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
    with pytest.raises(InputError, match=r"a\.wav: 16000 Hz, expected the mel's 22050 Hz"):
        score(make_item(tmp_path, rate=16000), "longer")


@pytest.mark.usefixtures("metrics")
def test_what_could_not_be_scored_has_no_value(tmp_path):
    scored = score(make_item(tmp_path, text=""), "level", "nan", "nowhere")
    assert scored.values == {}
    assert scored.unscored == {
        "level": "lacks a text",
        "nan": "lacks sound",
        "nowhere": "not installed (pip install no_such_package)",
    }


def heard_by(user_models: UserModels) -> str:
    """What a fake recogniser is called."""
    return str(user_models.transcripts)


@pytest.fixture
def counting(monkeypatch):
    """Metrics and checks that record their calls."""
    calls: list[tuple[str, object]] = []

    def speech(one: LabelledSpeech) -> MetricValue:
        calls.append(("speech", heard_by(one.user_models)))
        return MetricValue(float(np.abs(one.wav).max()))

    def pair(one: AlignedPair) -> MetricValue:
        calls.append(("pair", id(one.recorded)))
        n_phones, n_phones_hat = len(one.recorded.phones), len(one.synthesised.phones)
        return MetricValue(n_phones + 10 * n_phones_hat + 100 * one.same_timing)

    add(
        monkeypatch,
        speech_metric("speech", speech),
        Metric("pair", pair, "lower", "dB", family="pairs"),
        Metric("copy", lambda _: MetricValue(1.0), "lower", "s", family="copies"),
    )
    return calls


def spoken_by(folder: Path, *systems: str) -> dict[str, utterance_scorer.SpeechFile]:
    """A file for each system, the first of which is a copy."""
    phones = (TimedPhone("a", 0.0, 0.1), TimedPhone("b", 0.1, 0.2))
    spoken = {}
    for n, system in enumerate(systems):
        soundfile.write(folder / f"{system}.wav", noise() / (n + 2), 22050, subtype="PCM_16")
        file = folder / f"{system}.wav"
        spoken[system] = utterance_scorer.SpeechFile(file, phones, is_copy=n == 0)
    return spoken


TASK = ScoringTask(("speech", "pair", "copy"), MEL)


def test_a_recording_is_read_and_scored_once_for_all_systems(tmp_path, counting):
    read = []

    def recorded() -> np.ndarray:
        read.append(1)
        return noise()

    phones = (TimedPhone("a", 0.0, 0.2),)
    spoken = spoken_by(tmp_path, "x", "y")
    item = EvaluatedUtterance("u", recorded, "hello", "en-us", lambda: phones, spoken)
    by_system = score_utterance(item, TASK)
    assert len(read) == 1
    kinds = [kind for kind, _ in counting]
    assert kinds.count("speech") == 3  # of x, of the recording, of y
    assert len({what for kind, what in counting if kind == "pair"}) == 1
    values = {name: one.values for name, one in by_system.items()}
    assert [values[name]["pair"].value for name in "xy"] == [1 + 20 + 100, 1 + 20]
    assert "copy" in values["x"]
    assert "copy" not in values["y"]
    assert values["y"]["speech_difference"].value == pytest.approx(-2 / 3 * 0.5, abs=1e-3)
    assert by_system["x"].unscored == {}
    assert by_system["y"].unscored["copy"].startswith("compares copies with their recordings")


@pytest.mark.usefixtures("counting")
def test_without_a_recording_what_needs_one_is_left_out(tmp_path):
    item = EvaluatedUtterance("u", None, "hello", "en-us", tuple, spoken_by(tmp_path, "x"))
    by_system = score_utterance(item, TASK)
    assert set(by_system["x"].values) == {"speech"}
    assert set(by_system["x"].unscored) == {"pair", "copy"}
    assert by_system["x"].unscored["pair"].startswith("there are no recordings to compare with")


def test_transcripts_are_those_of_the_system(tmp_path, counting):
    item = EvaluatedUtterance("u", noise, "hello", "en-us", tuple, spoken_by(tmp_path, "x", "y"))
    folders = {name: Path(f"of_{name}") for name in ("x", "y", utterance_scorer.RECORDED)}
    score_utterance(item, replace(TASK, transcripts=folders))
    heard = [what for kind, what in counting if kind == "speech"]
    assert heard == ["of_x", "of_recorded", "of_y"]


def test_a_metric_that_breaks_down_costs_no_other_its_score(tmp_path, monkeypatch):
    def fail(_: object) -> MetricValue:
        raise ZeroDivisionError("division by zero\nin line 7")

    level = speech_metric("level", lambda _: MetricValue(1.0))
    add(monkeypatch, speech_metric("rate", fail), level)
    item = EvaluatedUtterance("u", noise, "hello", "en-us", tuple, spoken_by(tmp_path, "x"))
    by_system = score_utterance(item, ScoringTask(("rate", "level"), MEL))
    assert by_system["x"].unscored == {"rate": "fails: ZeroDivisionError: division by zero"}
    assert by_system["x"].values["level"] == MetricValue(1.0)
    assert "rate" not in by_system["x"].values


def test_a_fault_of_the_users_ends_the_scores_of_an_utterance(tmp_path, monkeypatch):
    def refuse(_: object) -> MetricValue:
        raise InputError("u.txt is missing")

    add(monkeypatch, speech_metric("rate", refuse))
    item = EvaluatedUtterance("u", noise, "hello", "en-us", tuple, spoken_by(tmp_path, "x"))
    with pytest.raises(InputError, match=r"u\.txt is missing"):
        score_utterance(item, ScoringTask(("rate",), MEL))


def refuse_text(spoken: LabelledSpeech, recorded: LabelledSpeech | None) -> str:
    raise NotApplicableError("needs a text in Finnish")


def test_failures_become_flags_and_other_checks_have_a_reason(tmp_path, monkeypatch):
    functions = {
        "good": lambda spoken, recorded: None,
        "bad": lambda spoken, recorded: f"{len(spoken.wav)} samples, {recorded}",
        "unable": refuse_text,
        "bare": refuse_text,
        "broken": lambda spoken, recorded: {}["cue"],
    }
    for name, score in functions.items():
        packages = ("no_such_package",) if name == "bare" else ()
        stub = Check(name=name, finds="a failure", packages=packages, score=score)
        monkeypatch.setitem(CHECKS, name, stub)
    item = EvaluatedUtterance("u", None, "", "", tuple, spoken_by(tmp_path, "x"))
    scored = score_utterance(item, ScoringTask((), MEL, tuple(functions)))["x"]
    assert scored.flags == {"bad": "4000 samples, None"}
    assert scored.unscored == {
        "unable": "needs a text in Finnish",
        "bare": "not installed (pip install no_such_package)",
        "broken": "fails: KeyError: 'cue'",
    }


def test_a_sound_is_the_mean_of_its_channels(tmp_path):
    channels = np.array([[0.5, 0.25], [-0.5, 0.0]])
    soundfile.write(tmp_path / "a.wav", channels, 8000, subtype="FLOAT")
    wav, sample_rate = utterance_scorer.read_waveform(tmp_path / "a.wav")
    assert wav.tolist() == [0.375, -0.25]
    assert (wav.dtype, sample_rate) == (np.float32, 8000)


def test_a_file_that_is_no_sound_is_named(tmp_path):
    (tmp_path / "text.wav").write_text("hello")
    with pytest.raises(InputError, match=r"text\.wav: not readable as audio"):
        utterance_scorer.read_waveform(tmp_path / "text.wav")
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), 8000)
    with pytest.raises(InputError, match=r"empty\.wav: holds no sample"):
        utterance_scorer.read_waveform(tmp_path / "empty.wav")
    soundfile.write(tmp_path / "nan.wav", np.array([0.1, math.nan]), 8000, subtype="FLOAT")
    with pytest.raises(InputError, match=r"nan\.wav: holds NaN .*again, or repair the file"):
        utterance_scorer.read_waveform(tmp_path / "nan.wav")
