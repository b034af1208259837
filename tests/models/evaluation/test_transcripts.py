from pathlib import Path

import numpy as np
import pytest

from models.evaluation import evaluate as evaluation
from models.evaluation.place import Place
from models.evaluation.references import References
from models.evaluation.scores import Report, Score, System
from models.evaluation.selection import Selection
from models.evaluation.subjects import Extras
from models.evaluation.transcripts import warn_of_misfit
from processors.scoring.user_models import UserModels
from processors.scoring.utterance_scorer import EvaluatedUtterance
from tests.models.stage_3 import make_store, preprocess_of, text_line, write_results
from utils.errors import InputError


def test_transcripts_that_are_missing_are_listed_before_anything_is_scored(tmp_path, monkeypatch):
    make_store(tmp_path)
    lines = [text_line(id) for id in ("rec-001", "rec-002")]
    write_results(tmp_path / "out", lines, [np.full(900, 0.1)] * 2)
    place = Place((tmp_path / "out",), References(preprocess_of(tmp_path)))
    heard = tmp_path / "heard"
    (heard / "recorded").mkdir(parents=True)
    for name in ("rec-001", "recorded/rec-002"):
        (heard / f"{name}.txt").write_text("one two three")
    scored = []
    monkeypatch.setattr(evaluation, "score_item", lambda *_: scored.append(1))
    extras = Extras(copies=False, plugins=UserModels(transcripts=heard))
    expected = r"--transcripts: 2 are missing.*\n.*recorded.rec-001\.txt\n.*heard.rec-002\.txt$"
    with pytest.raises(InputError, match=expected):
        evaluation.evaluate(place, Selection(), 1, extras)
    assert scored == []


def system_of(wer_recorded: float, *, is_reference: bool = False) -> System:
    score = Score("%", "", wer_recorded, None, None, 1)
    report = Report(1, 1.0, "", {"wer_recorded": score}, {})
    return System("a", Path("a"), report, {}, is_reference)


def test_recordings_that_the_recogniser_cannot_read_are_told_once_with_the_language(caplog):
    items = [EvaluatedUtterance("x", None, "Guten Tag.", "en-us", "", None, {})]
    warn_of_misfit([system_of(80), system_of(188, is_reference=True)], items, ["Anna"])
    assert caplog.records == []
    warn_of_misfit([system_of(188), system_of(190)], items, ["Anna"])
    (record,) = caplog.records
    assert "misreads 188 % of the words of the recordings" in record.getMessage()
    assert "taken to be en-us; set it by --set preprocess.corpus.Anna.lang" in record.getMessage()
    warn_of_misfit([system_of(188)], items, ["Anna", "Bert"])
    assert "preprocess.corpus.<name>.language=de" in caplog.records[1].getMessage()
