from pathlib import Path

import numpy as np
import pytest
import soundfile

from models.evaluation.evaluate import evaluate
from models.evaluation.inputs.evaluation_set import (
    EvaluationSet,
    log_formats,
    user_models_by_system,
)
from models.evaluation.inputs.input_checks import refuse
from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions
from processors.metrics.recognition.user_models import UserModels
from processors.metrics.utterance_scorer import EvaluatedUtterance, SpeechFile
from tests.models.stage_3 import make_store, preprocess_of, text_line, write_results
from utils.errors import InputError


@pytest.fixture
def item_of(tmp_path):
    """Makes an utterance of a system "a", as a sound of this rate and number of channels."""

    def make(
        id: str, sample_rate: int, channels: int = 1, *, recorded: bool = True
    ) -> EvaluatedUtterance:
        file = tmp_path / f"{id}.wav"
        soundfile.write(file, np.zeros((100, channels)), sample_rate)
        recording = (lambda: np.zeros(100)) if recorded else None
        return EvaluatedUtterance(id, recording, "", "", None, {"a": SpeechFile(file)})

    return make


def logged(items, caplog) -> list[str]:
    with caplog.at_level("INFO", "arion"):
        log_formats(EvaluationSet({"a": Path("a")}, {"a": ""}, items, Path()), 22050)
    return [record.getMessage() for record in caplog.records]


def test_other_rates_and_channels_are_logged_once_each(item_of, caplog):
    items = [item_of("x", 8000), item_of("y", 8000, 2), item_of("z", 22050)]
    rates, channels = logged(items, caplog)
    assert rates == (
        "a: 2 of 3 have 8000 Hz, and recordings 22050 Hz: pairs are compared at the lower rate"
    )
    assert channels == "a: channels of 1 of 3 are averaged to mono"


def test_nothing_is_logged_of_sounds_like_recordings_or_without_them(item_of, caplog):
    assert logged([item_of("x", 22050), item_of("y", 8000, recorded=False)], caplog) == []


def test_a_long_list_of_faults_is_cut():
    refuse([], "nothing")
    with pytest.raises(InputError) as error:
        refuse([str(n) for n in range(23)], "23 things")
    assert str(error.value).splitlines()[:2] == ["23 things:", "  0"]
    assert str(error.value).splitlines()[-2:] == ["  19", "  and 3 more"]


def test_transcripts_of_several_systems_are_in_folders_of_their_names(tmp_path):
    user_models = UserModels(transcripts=tmp_path)

    def data_of(names, systems):
        folders = {name: tmp_path / name for name in names}
        return EvaluationSet(folders, dict.fromkeys(systems, ""), [], tmp_path)

    def folders(names, systems):
        by_system = user_models_by_system(data_of(names, systems), user_models)
        return {name: str(m.transcripts.relative_to(tmp_path)) for name, m in by_system.items()}

    assert folders(["a", "natural"], ["a"]) == {"a": ".", "natural": "natural"}
    with pytest.raises(InputError, match=r"--transcripts: .*a is missing, for the system a"):
        folders(["a", "b"], ["a", "b"])
    for name in "ab":
        (tmp_path / name).mkdir()
    assert folders(["a", "b", "copy"], ["a", "b"]) == {"a": "a", "b": "b", "copy": "copy"}
    assert user_models_by_system(data_of(["a"], ["a"]), UserModels()) == {}


def test_transcripts_that_are_missing_are_listed_before_anything_is_scored(tmp_path, monkeypatch):
    make_store(tmp_path)
    lines = [text_line(id) for id in ("rec-001", "rec-002")]
    write_results(tmp_path / "out", lines, [np.full(900, 0.1)] * 2)
    inputs = EvaluationInputs((tmp_path / "out",), preprocess_of(tmp_path))
    heard = tmp_path / "heard"
    (heard / "recorded").mkdir(parents=True)
    for name in ("rec-001", "recorded/rec-002"):
        (heard / f"{name}.txt").write_text("one two three")
    scored = []
    monkeypatch.setattr("models.evaluation.evaluate.score_utterance", lambda *_: scored.append(1))
    options = EvaluationOptions(copies=False, user_models=UserModels(transcripts=heard))
    expected = r"--transcripts: 2 are missing.*\n.*recorded.rec-001\.txt\n.*heard.rec-002\.txt$"
    with pytest.raises(InputError, match=expected):
        evaluate(inputs, options, 1)
    assert scored == []
