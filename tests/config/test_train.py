import json

import pytest

from config.train import AdamConfig, ScheduleConfig, TrainConfig
from models.base.registry import load_config
from models.training.run import plain_config

SCHEDULE = ScheduleConfig(num_warmup=7, gamma=0.5, milestones=(3,))


def test_the_resolved_configuration_is_read_again(tmp_path):
    schedule = {"scheduler": "multistep", "lr_scheduler": {"milestones": [5]}}
    base = {"task": "tts", "model_type": "FastSpeech2", "train": {"max_steps": 9, **schedule}}
    base |= {"dataset": ["a"], "dataset_path": {"a": "a"}, "log_dir": "ckpts"}
    (tmp_path / "base.json").write_text(json.dumps(base))
    config = load_config(tmp_path / "base.json", ["train.scheduler=constant"])
    path = tmp_path / "config.json"
    path.write_text(json.dumps(plain_config(config)))

    assert load_config(path) == config


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "lamb"])
def test_a_limit_of_the_gradient_is_read_by_lamb_only(optimizer):
    train = TrainConfig(max_steps=9, optimizer=optimizer, adam=AdamConfig(max_grad_norm=2.0))

    assert train.unread_keys == ([] if optimizer == "lamb" else ["train.adam.max_grad_norm"])
