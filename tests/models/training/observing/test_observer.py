import math
import random

import numpy as np
import pytest
import torch

from models.base.task import MetricTerm
from models.training.observing.observer import eval_mode, validate
from tests.models.training.small_tasks import TinyTask, make_data, make_processed, train_config
from utils.seed import seed_everything


@pytest.fixture
def store(tmp_path):
    return make_processed(tmp_path / "data")


def test_validation_is_a_mean_over_elements_and_restores_the_state(store):
    task = TinyTask(dropout=0.5)
    config = train_config(batch_size=1)
    task.networks["model"].train()
    generator = torch.get_rng_state()
    loss, losses, _ = validate(task, make_data(store, config).valid, torch.device("cpu"))
    larger = make_data(store, train_config(batch_size=9))
    together, *_ = validate(task, larger.valid, torch.device("cpu"))
    assert loss == pytest.approx(losses["mel"] + 0.1 * losses["duration"])
    assert loss == pytest.approx(together, rel=1e-6)
    assert task.networks["model"].training
    assert torch.equal(torch.get_rng_state(), generator)


class WithMetrics(TinyTask):
    """The metric of an item with an even number is that number; odd ones have none."""

    def validation_step(self, batch):
        numbers = [int(id[-3:]) for id in batch.ids]
        even = [number for number in numbers if number % 2 == 0]
        metrics = {"even": MetricTerm(sum(even), len(even)), "none": MetricTerm(0.0, 0)}
        return super().validation_step(batch) | metrics


def test_metrics_are_means_over_the_items_that_have_one_and_no_part_of_the_loss(store):
    data = make_data(store, train_config(batch_size=1))
    loss, losses, metrics = validate(WithMetrics(), data.valid, torch.device("cpu"))
    assert metrics == {"even": (10 + 12) / 2}
    assert losses.keys() == {"mel", "duration"}
    assert loss == validate(TinyTask(), data.valid, torch.device("cpu")).loss


def test_validation_without_batches_gives_no_number():
    loss, losses, metrics = validate(TinyTask(), [], torch.device("cpu"))
    assert math.isnan(loss)
    assert losses == metrics == {}


def test_a_validation_that_fails_leaves_networks_in_training_mode_as_well():
    network = TinyTask().networks["model"]

    def fail():
        with eval_mode([network]):
            assert not network.training
            assert not torch.is_grad_enabled()
            raise MemoryError

    with pytest.raises(MemoryError):
        fail()
    assert network.training
    assert torch.is_grad_enabled()


def test_random_numbers_after_evaluation_are_those_without_it():
    def draw():
        return random.random(), np.random.rand(), float(torch.rand(1))  # noqa: NPY002

    seed_everything(5)
    expected = draw()
    seed_everything(5)
    with eval_mode([]):
        drawn = [draw() for _ in range(3)]
    assert drawn[0] == draw() == expected
