from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from models.evaluation import cache
from models.evaluation.cache import ScoreCache
from modules.mel import MelConfig
from processors.records import TimedPhone
from processors.scoring.checks import Flag
from processors.scoring.metrics import Value
from processors.scoring.user_models import UserModels
from processors.scoring.utterance_scorer import (
    EvaluatedUtterance,
    ScoringTask,
    SpeechFile,
    UtteranceScores,
    score_utterance,
)
from utils.errors import InputError

TASK = ScoringTask(("mel_l1", "mstft"), MelConfig(), ("level", "dc"))


def noise() -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.5, 0.5, 4000).astype(np.float32)


@pytest.fixture
def item(tmp_path) -> EvaluatedUtterance:
    """An utterance and a copy of it at half its level."""
    soundfile.write(tmp_path / "a.wav", noise() / 2, 22050, subtype="PCM_16")
    spoken = SpeechFile(tmp_path / "a.wav", (TimedPhone("a", 0.0, 0.1),), is_copy=True)
    return EvaluatedUtterance("a", noise, "hello", "en-us", "", None, {"mine": spoken})


def cache_in(tmp_path: Path, task: ScoringTask = TASK) -> ScoreCache:
    return ScoreCache(tmp_path / "unfinished", task)


def test_scores_come_back_as_they_were(tmp_path, item):
    kept = cache_in(tmp_path)
    key = kept.key_of(item)
    assert kept.read(key) is None
    scored = score_utterance(item, TASK)
    kept.write(key, scored)
    assert kept.read(kept.key_of(item)) == scored
    assert scored["mine"].values["mstft"].value > 0


def test_notes_and_flags_come_back(tmp_path):
    flags = (Flag("level", "too quiet"),), (Flag("dc", "0.02"),), (Flag("dc", "needs an ear"),)
    scored = {"mine": UtteranceScores("a", 1.5, {"mel_l1": Value(0.1 + 0.2, 3, "heard")}, *flags)}
    cache_in(tmp_path).write("key", scored)
    assert cache_in(tmp_path).read("key") == scored


def other_sound(item: EvaluatedUtterance) -> EvaluatedUtterance:
    soundfile.write(item.spoken["mine"].file, noise() / 3, 22050, subtype="PCM_16")
    return item


def with_spoken(item: EvaluatedUtterance, **changes: object) -> EvaluatedUtterance:
    return replace(item, spoken={"mine": replace(item.spoken["mine"], **changes)})


@pytest.mark.parametrize(
    "change",
    [
        other_sound,
        lambda item: replace(item, text="good-bye"),
        lambda item: replace(item, language="en-gb"),
        lambda item: replace(item, recorded=lambda: noise() * 0.9),
        lambda item: replace(item, recorded=None),
        lambda item: replace(item, phones=lambda: (TimedPhone("a", 0.0, 0.2),)),
        lambda item: with_spoken(item, is_copy=False),
        lambda item: with_spoken(item, phones=(TimedPhone("a", 0.0, 0.2),)),
        lambda item: replace(item, spoken={**item.spoken, "copy": item.spoken["mine"]}),
    ],
)
def test_what_has_changed_is_scored_anew(tmp_path, item, change):
    kept = cache_in(tmp_path)
    key = kept.key_of(item)
    assert kept.key_of(change(item)) != key


def test_other_code_or_another_mel_scores_anew(tmp_path, item, monkeypatch):
    key = cache_in(tmp_path).key_of(item)
    other = replace(TASK, mel=replace(TASK.mel, f_max=7000.0))
    assert cache_in(tmp_path, other).key_of(item) != key
    monkeypatch.setattr(cache, "_code", lambda: "other")
    assert cache_in(tmp_path).key_of(item) != key


def test_other_transcripts_score_anew(tmp_path, item):
    heard = tmp_path / "heard"
    task = replace(TASK, user_models=UserModels(transcripts=heard))
    keys = [cache_in(tmp_path, task).key_of(item)]
    for file in ("a.txt", "recorded/a.txt"):
        (heard / file).parent.mkdir(parents=True, exist_ok=True)
        (heard / file).write_text("hello")
        keys.append(cache_in(tmp_path, task).key_of(item))
    assert len(set(keys)) == 3


def test_fewer_metrics_and_checks_are_taken_from_more(tmp_path, item):
    faulty = noise() / 1000 + 0.1
    soundfile.write(item.spoken["mine"].file, faulty, 22050, subtype="PCM_16")
    kept = cache_in(tmp_path)
    scored = score_utterance(item, TASK)
    assert [flag.check for flag in scored["mine"].flags] == ["level", "dc"]
    kept.write(kept.key_of(item), scored)
    fewer = replace(TASK, metrics=("mstft",), checks=("dc",))
    taken = cache_in(tmp_path, fewer).read(kept.key_of(item))
    assert taken == score_utterance(item, fewer)
    assert [flag.check for flag in taken["mine"].flags] == ["dc"]
    for more in ({"metrics": ("mstft", "mcd")}, {"checks": ("dc", "clicks")}):
        assert cache_in(tmp_path, replace(TASK, **more)).read(kept.key_of(item)) is None


def test_what_failed_is_tried_again(tmp_path, item):
    kept = cache_in(tmp_path)
    scored = score_utterance(item, TASK)
    kept.write("key", {"mine": scored["mine"]._replace(failed=(Flag("pesq", "KeyError"),))})
    assert kept.read("key") is None


@pytest.mark.parametrize("kind", ["recogniser", "encoder"])
def test_nothing_is_kept_of_what_a_users_function_says(tmp_path, item, kind):
    kept = cache_in(tmp_path, replace(TASK, user_models=UserModels(**{kind: print})))
    assert kept.key_of(item) == ""
    kept.write("", score_utterance(item, TASK))
    assert kept.read("") is None


def test_a_recording_that_cannot_be_read_is_an_error(tmp_path, item):
    def refuse() -> np.ndarray:
        raise InputError("a.flac is damaged")

    with pytest.raises(InputError, match="damaged"):
        cache_in(tmp_path).key_of(replace(item, recorded=refuse))
