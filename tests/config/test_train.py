import json

import pytest

from models.base.registry import load_config
from models.training.state import plain_config
from utils.config import ConfigError


def write(folder, **train):
    """A configuration based on a recipe whose schedule is multistep, with milestones and gamma."""
    base = {
        "task": "tts",
        "model_type": "FastSpeech2",
        "dataset": ["a"],
        "dataset_path": {"a": "a"},
        "log_dir": "ckpts",
        "train": {
            "max_steps": 9,
            "optimizer": "lamb",
            "adam": {"max_grad_norm": 2.0},
            "scheduler": "multistep",
            "lr_scheduler": {"gamma": 0.1, "milestones": [5]},
        },
    }
    (folder / "base.json").write_text(json.dumps(base))
    path = folder / "exp.json"
    path.write_text(json.dumps({"base_config": "base.json", "train": train}))
    return path


def test_another_schedule_drops_what_its_base_gave_to_the_first(tmp_path):
    train = load_config(write(tmp_path), ["train.scheduler=cosine", "train.optimizer=adam"]).train

    assert (train.scheduler, train.optimizer) == ("cosine", "adam")
    assert (train.lr_scheduler.gamma, train.lr_scheduler.milestones) == (0.999, ())
    assert train.adam.max_grad_norm == 1.0


def test_what_the_other_schedule_reads_is_inherited(tmp_path):
    path = write(tmp_path, scheduler="NoamLR", lr_scheduler={"num_warmup": 7})
    schedule = load_config(path).train.lr_scheduler

    assert (schedule.num_warmup, schedule.gamma, schedule.milestones) == (7, 0.1, (5,))


def test_the_resolved_configuration_is_read_again(tmp_path):
    config = load_config(write(tmp_path), ["train.scheduler=constant"])
    path = tmp_path / "config.json"
    path.write_text(json.dumps(plain_config(config)))

    assert load_config(path) == config


@pytest.mark.parametrize(
    ("train", "overrides"),
    [
        ({"lr_scheduler": {"power": 2.0}}, []),
        ({"scheduler": "linear", "lr_scheduler": {"power": 2.0}}, []),
        ({"lr_scheduler": {"power": 2.0}}, ["train.lr_scheduler.milestones=[3]"]),
        ({"scheduler": "linear"}, ["train.lr_scheduler.power=2"]),
        ({}, ["train.lr_scheduler.power=2", "train.scheduler=linear"]),
    ],
)
def test_a_key_set_with_its_schedule_or_after_it_must_have_an_effect(tmp_path, train, overrides):
    with pytest.raises(ConfigError, match=r"lr_scheduler\.power is 2, but scheduler \w+ does not"):
        load_config(write(tmp_path, **train), overrides)


def test_a_limit_of_the_gradient_that_only_lamb_reads_is_refused(tmp_path):
    path = write(tmp_path, optimizer="adamw", adam={"max_grad_norm": 3.0})
    with pytest.raises(ConfigError, match=r"max_grad_norm is 3, but only optimizer lamb reads it"):
        load_config(path)
