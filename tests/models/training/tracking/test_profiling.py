import json
import logging

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from config.train import ProfileConfig
from models.training.tracking.profiling import (
    Operation,
    UpdateProfiler,
    operations,
    table_of,
)
from tests.models.training.small_tasks import make_processed, make_trainer, train_config

CPU = torch.device("cpu")


def train_profiled(folder, steps, max_steps=4):
    store = make_processed(folder / "data")
    config = train_config(max_steps=max_steps, profile=ProfileConfig(steps))
    trainer = make_trainer(store, folder / "run" / "checkpoints", config)
    trainer.fit()
    weights = trainer._task.networks["model"].state_dict()
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
    assert names.count("update") == 2
    assert "aten::addmm" in names
    assert len(table.splitlines()) == 12
    assert table.startswith("operation")
    assert table in caplog.text
    assert "profile of updates 2 to 3 of this run" in caplog.text
    assert not (folder / "memory.pickle").exists()


def test_a_run_that_ends_early_writes_what_it_has(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        folder, _ = train_profiled(tmp_path, (3, 9))

    assert (folder / "trace.json").exists()
    assert "profile of updates 3 to 4" in caplog.text


def test_a_run_that_will_end_before_the_profile_is_a_warning(tmp_path, caplog):
    folder, _ = train_profiled(tmp_path, (9, 12), max_steps=2)

    assert "no profile: train.profile.steps begins at 9, and 2 updates are left" in caplog.text
    assert not folder.exists()


def test_costs_are_means_per_update_without_what_an_operation_calls():
    a, b = torch.randn(40, 40), torch.randn(40, 40)
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        for _ in range(6):
            torch.mm(a, b)
    found = operations(recorded, 2, on_gpu=False)

    costs = {operation.name: operation for operation in found}
    assert costs["aten::mm"].calls == 3
    assert sum(operation.share for operation in found) == pytest.approx(1)
    assert [operation.ms for operation in found] == sorted(
        (operation.ms for operation in found), reverse=True
    )
    events = {event.key: event for event in recorded.key_averages()}
    assert costs["aten::mm"].ms == pytest.approx(events["aten::mm"].self_cpu_time_total / 2000)


def test_the_table_has_ten_operations_and_their_sum():
    found = [Operation(f"op{number}", 2.0, 12.0 - number, 0.1) for number in range(12)]
    lines = table_of(found, on_gpu=True).splitlines()

    assert "GPU ms/update" in lines[0]
    assert lines[1].split() == ["op0", "12.000", "10.0%", "2.0"]
    assert len(lines) == 12
    assert lines[-1].split() == ["all", "operations", "78.000", "100.0%"]


def test_without_steps_nothing_is_recorded(tmp_path):
    with UpdateProfiler((), tmp_path, CPU) as profiler, profiler.update():
        pass

    assert list(tmp_path.iterdir()) == []
