import json
import logging

import torch

from config.train import ProfileConfig
from models.training.observing.profiling import profiled
from tests.models.training.small_tasks import make_processed, make_trainer, train_config

CPU = torch.device("cpu")


def train_profiled(folder, steps, max_steps=4):
    store = make_processed(folder / "data")
    config = train_config(max_steps=max_steps, profile=ProfileConfig(steps))
    trainer = make_trainer(store, folder / "run" / "checkpoints", config)
    trainer.fit()
    weights = trainer.run.task.networks["model"].state_dict()
    return folder / "run" / "profile", weights


def test_a_profiled_run_has_a_trace_and_a_table_and_the_same_weights(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        folder, weights = train_profiled(tmp_path / "a", (2, 3))
    other, plain = train_profiled(tmp_path / "b", ())
    trace = json.loads((folder / "trace.json").read_text())
    names = [event.get("name") for event in trace["traceEvents"]]
    table = (folder / "operations.txt").read_text()

    assert all(torch.equal(weights[name], plain[name]) for name in plain)
    assert not other.exists()
    assert [n for n in names if n.startswith("ProfilerStep")][:2] == [
        "ProfilerStep#1",
        "ProfilerStep#2",
    ]
    assert "aten::addmm" in names
    assert "Self CPU" in table
    assert table.count("aten::") > 3
    assert table in caplog.text
    assert not (folder / "memory.pickle").exists()


def test_a_run_that_ends_early_writes_what_it_has(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        folder, _ = train_profiled(tmp_path, (3, 9))

    assert (folder / "trace.json").exists()
    assert f"profile in {folder}" in caplog.text


def test_without_steps_nothing_is_recorded(tmp_path):
    with profiled((), tmp_path, CPU) as end_update:
        end_update()

    assert list(tmp_path.iterdir()) == []
