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


def test_exponential_falls_by_update_after_the_warm_up():
    options = {"scheduler": "exponential", "gamma": 0.5, "num_warmup": 4, "decay_steps": 10}
    rates = [rate(update, 7, **options) for update in (1, 4, 14, 19, 24)]

    assert rates == pytest.approx([0.125, 0.5, 0.25, 0.5 * 0.5**1.5, 0.125])


@pytest.mark.parametrize("power", [1.0, 2.0, 0.5])
def test_polynomial_falls_to_its_end(power):
    """(lr - end) (1 - share)^power + end, with TensorFlowTTS's numbers: 1e-3 to 5e-5."""
    schedule = ScheduleConfig(num_warmup=4000, decay_steps=196_000, end_lr=5e-5, power=power)
    config = train_config(adam=AdamConfig(lr=1e-3), scheduler="polynomial", lr_scheduler=schedule)
    at = {u: learning_rate(config, u, 0, 300_000) for u in (1000, 4000, 102_000, 200_000, 250_000)}

    assert at[1000] == pytest.approx(2.5e-4)
    assert at[4000] == pytest.approx(1e-3)
    assert at[102_000] == pytest.approx(5e-5 + 9.5e-4 * 0.5**power)
    assert at[200_000] == at[250_000] == pytest.approx(5e-5)


def test_polynomial_of_power_one_without_an_end_is_linear():
    options = {"num_warmup": 20}
    updates = range(1, 120)

    assert [rate(u, scheduler="polynomial", **options) for u in updates] == pytest.approx(
        [rate(u, scheduler="linear", **options) for u in updates]
    )


def test_cosine_falls_to_its_end_in_its_own_number_of_updates():
    options = {"scheduler": "cosine", "num_warmup": 20, "decay_steps": 40, "end_lr": 0.1}
    rates = [rate(update, **options) for update in (10, 20, 30, 40, 60, 90)]

    expected = [0.25, 0.5, 0.1 + 0.2 * (1 + math.cos(math.pi / 4)), 0.3, 0.1, 0.1]
    assert rates == pytest.approx(expected)


@pytest.mark.parametrize(
    "scheduler", ["NoamLR", "linear", "cosine", "polynomial", "exponential", "multistep"]
)
def test_keys_that_a_schedule_reads_change_its_rates(scheduler):
    """What `read_by` names has an effect; what it does not name is refused."""
    changes = {
        "num_warmup": 30,
        "decay_steps": 25,
        "end_lr": 0.2,
        "power": 3.0,
        "gamma": 0.4,
        "milestones": (35,),
    }
    start = {
        "multistep": {"milestones": (12,)},
        "NoamLR": {"num_warmup": 4, "milestones": (12,)},
        "exponential": {"num_warmup": 4, "decay_steps": 20},
    }.get(scheduler, {"num_warmup": 4})
    read = ScheduleConfig(**start).read_by(scheduler)
    before = [rate(update, scheduler=scheduler, **start) for update in (7, 20, 40, 60)]
    for key, value in changes.items():
        if key in read:
            after = [rate(u, scheduler=scheduler, **start | {key: value}) for u in (7, 20, 40, 60)]
            assert after != before, key
        else:
            with pytest.raises(ValueError, match=rf"lr_scheduler\.{key} is .* does not read it"):
                rate(7, scheduler=scheduler, **start | {key: value})


def test_multistep_falls_at_milestones():
    options = {"scheduler": "multistep", "gamma": 0.1, "milestones": (10,)}

    assert [rate(10, **options), rate(11, **options)] == pytest.approx([0.5, 0.05])
