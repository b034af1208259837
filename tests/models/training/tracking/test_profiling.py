import json
import logging
from types import SimpleNamespace

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from config.train import ProfileConfig
from models.training.tracking.profiling import UpdateProfiler, table_of
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


def test_the_table_has_the_ten_most_expensive_operations_per_update_and_the_sum_of_all():
    a, b = torch.randn(40, 40), torch.randn(40, 40)
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        for _ in range(6):
            torch.softmax(torch.mm(a, b).relu().exp().tanh() + b.cos() * a.sin(), 1).sum().item()
    lines = [line.split() for line in table_of(recorded, 2, on_gpu=False).splitlines()]
    events = {event.key: event for event in recorded.key_averages()}
    total_ms = sum(event.self_cpu_time_total for event in events.values()) / 2000

    assert lines[0] == ["operation", "CPU", "ms/update", "share", "calls/update"]
    assert len(lines) == 12
    assert float(lines[-1][2]) == pytest.approx(total_ms, abs=1e-3)
    costs = [float(line[1]) for line in lines[1:-1]]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == pytest.approx(
        max(event.self_cpu_time_total for event in events.values()) / 2000, abs=1e-3
    )
    for name, ms, share, calls in lines[1:-1]:
        assert float(ms) == pytest.approx(events[name].self_cpu_time_total / 2000, abs=1e-3)
        assert float(share[:-1]) == pytest.approx(100 * float(ms) / total_ms, abs=0.6)
        assert float(calls) == events[name].count / 2


def test_events_of_one_key_are_rows_of_their_own_and_labels_of_updates_are_none():
    def event(key, device_us, count):
        return SimpleNamespace(
            key=key, self_device_time_total=device_us, self_cpu_time_total=9e6, count=count
        )

    events = [event("copy", 3000, 4), event("update", 9e6, 2), event("copy", 1000, 2)]
    events += [event("mm", 4000, 8)]
    recorded = SimpleNamespace(key_averages=lambda: events)
    lines = [line.split() for line in table_of(recorded, 2, on_gpu=True).splitlines()]

    assert lines[0][:3] == ["operation", "GPU", "ms/update"]
    assert lines[1:] == [
        ["mm", "2.000", "50.0%", "4.0"],
        ["copy", "1.500", "37.5%", "2.0"],
        ["copy", "0.500", "12.5%", "1.0"],
        ["all", "operations", "4.000", "100.0%"],
    ]


def test_without_steps_nothing_is_recorded(tmp_path):
    with UpdateProfiler((), tmp_path, CPU) as profiler, profiler.update():
        pass

    assert list(tmp_path.iterdir()) == []
