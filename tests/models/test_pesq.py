import logging
from dataclasses import replace

import pytest
import torch

from models import pesq
from models.pesq import N_SCORED, PesqScores
from processors.metrics.pesq import METRIC


@pytest.fixture(autouse=True)
def _ask_again():
    pesq._is_installed.cache_clear()
    yield
    pesq._is_installed.cache_clear()


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr("models.pesq.METRIC", replace(METRIC, packages=()))
    monkeypatch.setattr("models.pesq.pesq", lambda wav, _hat, _rate: float(wav[0]))


@pytest.mark.usefixtures("installed")
def test_the_first_recordings_are_scored_and_the_same_ones_each_time():
    scores = PesqScores(16000)
    wavs = {f"r{i}": torch.full((4,), float(i)) for i in range(N_SCORED + 5)}
    rounds = [
        {id: scores.score(id, wavs[id], wavs[id]) for id in order}
        for order in (wavs, reversed(wavs))
    ]

    assert rounds[0] == rounds[1]
    assert [value is not None for value in rounds[0].values()] == [True] * 20 + [False] * 5
    assert rounds[0]["r3"] == 3.0


def test_without_the_package_there_is_no_score_and_one_line(monkeypatch, caplog):
    monkeypatch.setattr("models.pesq.METRIC", replace(METRIC, packages=("no_such_package",)))
    wav = torch.ones(4)
    with caplog.at_level(logging.INFO):
        values = [PesqScores(16000).score(id, wav, wav) for id in ("a", "b")]

    assert values == [None, None]
    assert caplog.messages == [
        "validation without PESQ, which is not installed (pip install no_such_package)"
    ]
