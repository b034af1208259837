"""One update from the same utterances, however they are split."""

import pytest
import torch

from models.programs.benchmark.run import known_models
from modules.layers import basic
from tests.models.training.equivalent import MODELS, Outcome, outcome_of
from tests.processes import run_together

# in fp32, of what the updates change; a mean of means of micro-batches is off by 1 % and more
TOLERANCE = 1e-4


@pytest.fixture(autouse=True)
def _dropout(monkeypatch):
    monkeypatch.setattr(basic, "_dropped", basic._dropped)


def assert_same(one: Outcome, other: Outcome) -> None:
    assert torch.equal(one.before, other.before)
    change = (one.after - one.before).norm()
    assert change > 1e-3
    assert (one.after - other.after).norm() < TOLERANCE * change
    assert other.losses == pytest.approx(one.losses, rel=1e-4)


def test_every_model_is_tested():
    assert {recipe for recipe, _ in MODELS.values()} == known_models().keys()


@pytest.mark.parametrize("model", MODELS)
def test_micro_batches_give_the_updates_of_one_batch(model):
    assert_same(outcome_of(model, 1), outcome_of(model, 4))


@pytest.mark.slow  # that of a small task is in test_processes.py
@pytest.mark.parametrize("model", MODELS)
def test_two_processes_of_two_micro_batches_give_the_updates_of_one_batch(model, tmp_path):
    file = tmp_path / "two.pt"
    run_together(2, "-m", "tests.models.training.equivalent", model, 2, file)
    assert_same(outcome_of(model, 1), Outcome(**torch.load(file)))
