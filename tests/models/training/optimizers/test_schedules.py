import math

import pytest

from config.train import AdamConfig, ScheduleConfig
from models.training.optimizers.schedules import learning_rate
from tests.models.training.small_tasks import train_config


def rate(update, epoch=0, last=100, *, scheduler, **schedule):
    config = train_config(
        adam=AdamConfig(lr=0.5), scheduler=scheduler, lr_scheduler=ScheduleConfig(**schedule)
    )
    return learning_rate(config, update, epoch, last)


def test_noam_rises_linearly_and_falls_with_the_square_root():
    # Amphion's peak: 0.0625 * 4000 ** -0.5
    config = train_config(adam=AdamConfig(lr=0.0625), scheduler="NoamLR")

    assert learning_rate(config, 4000, 0, 0) == pytest.approx(9.88e-4, rel=1e-3)
    assert learning_rate(config, 1000, 0, 0) == pytest.approx(9.88e-4 / 4, rel=1e-3)
    assert learning_rate(config, 16000, 0, 0) == pytest.approx(9.88e-4 / 2, rel=1e-3)


def test_noam_anneals_after_each_milestone():
    options = {"scheduler": "NoamLR", "num_warmup": 4, "gamma": 0.3, "milestones": (9, 20)}

    assert rate(9, **options) == pytest.approx(0.5 / 3)
    assert rate(16, **options) == pytest.approx(0.5 / 4 * 0.3)
    assert rate(25, **options) == pytest.approx(0.5 / 5 * 0.09)


def test_noam_is_the_schedule_of_nvidias_fastpitch():
    """0.1 * n / 1000^1.5 up to update 1000, then 0.1 / sqrt(n)."""
    config = train_config(
        adam=AdamConfig(lr=0.1), scheduler="NoamLR", lr_scheduler=ScheduleConfig(num_warmup=1000)
    )
    found = {n: learning_rate(config, n, 0, 0) for n in (1, 500, 999, 1000, 1001, 4000, 230_000)}

    for n, rate in found.items():
        expected = 0.1 * n / 1000**1.5 if n <= 1000 else 0.1 / math.sqrt(n)
        assert rate == pytest.approx(expected, rel=1e-12)
    assert found[1] == pytest.approx(3.16e-6, rel=1e-3)
    assert max(found.values()) == found[1000] == pytest.approx(3.16e-3, rel=1e-3)


def test_constant_stays():
    assert [rate(update, scheduler="constant") for update in (1, 99)] == [0.5, 0.5]


def test_linear_warms_up_and_ends_at_zero():
    rates = [rate(update, scheduler="linear", num_warmup=20) for update in (10, 20, 60, 100, 200)]

    assert rates == pytest.approx([0.25, 0.5, 0.25, 0, 0])


def test_cosine_warms_up_and_ends_at_zero():
    rates = [rate(update, scheduler="cosine", num_warmup=20) for update in (10, 20, 40, 60, 100)]

    assert rates == pytest.approx([0.25, 0.5, 0.25 * (1 + math.cos(math.pi / 4)), 0.25, 0])


def test_exponential_falls_by_epoch():
    rates = [rate(5, epoch, scheduler="exponential", gamma=0.5) for epoch in (0, 1, 3)]

    assert rates == [0.5, 0.25, 0.0625]


def test_multistep_falls_at_milestones():
    options = {"scheduler": "multistep", "gamma": 0.1, "milestones": (10,)}

    assert [rate(10, **options), rate(11, **options)] == pytest.approx([0.5, 0.05])
