"""What the processes of a run exchange, by runs of one process and of two."""

import os
import signal

import pytest
import torch
from torch import nn

from models.training import processes
from models.training.processes import Interrupts, check_agreement, sum_gradients, sum_over_processes
from tests.models.training.small_tasks import make_processed
from tests.processes import Process, run_together
from utils.errors import InputError

_UPDATES = """
import sys
from pathlib import Path
import torch
from accelerate import Accelerator
from models.training.optimizers import WeightAverage
from models.training.data import ProcessRank, windows
from tests.models.training.small_tasks import FeatureStore, TinyGan, TinyTask, make_data
from tests.models.training.small_tasks import train_config
from tests.models.training.test_updates import updater_of
from utils.cli import leave

accelerator = Accelerator(cpu=True)
place = ProcessRank(accelerator.process_index, accelerator.num_processes)
result = []
for task, optimizer in (
    (TinyTask(dtype=torch.float64), "adam"), (TinyGan(), "adam"), (TinyGan(), "lamb")
):
    config = train_config(gradient_accumulation_step=int(sys.argv[3]))
    data = make_data(FeatureStore(Path(sys.argv[1])), config, place)
    updater = updater_of(task, optimizer, max_norm=0.5)
    average = WeightAverage(task.networks[task.exported], decay=0.5)
    for n_updates, window in enumerate(windows(data.train, config.gradient_accumulation_step), 1):
        updater.run(window)
        average.update(n_updates)
    result += [p.detach().flatten() for n in task.networks.values() for p in n.parameters()]
    result += [tensor.flatten() for tensor in average.state_dict().values()]
if accelerator.is_main_process:
    torch.save(torch.cat(result), sys.argv[2])
accelerator.end_training()
leave(0)
"""

CPU = torch.device("cpu")


def test_two_processes_make_the_updates_of_one(tmp_path):
    data = make_processed(tmp_path / "data").folder
    alone = Process("-c", _UPDATES, data, tmp_path / "one.pt", 2).finish()
    assert alone.returncode == 0, alone.stderr
    run_together(2, "-c", _UPDATES, data, tmp_path / "two.pt", 1)
    one, two = (torch.load(tmp_path / f"{name}.pt") for name in ("one", "two"))
    assert one.dtype == torch.float64
    assert torch.allclose(one, two, rtol=0, atol=1e-12)


def test_gradients_of_one_process_are_left_alone():
    parameter = nn.Parameter(torch.zeros(2))
    sum_gradients([parameter])
    assert parameter.grad is None


def test_sums_of_one_process_are_its_own_in_double_precision():
    summed = sum_over_processes([1.0, 2.5], torch.device("cpu"))
    assert (summed.tolist(), summed.dtype) == ([1.0, 2.5], torch.float64)


def test_one_process_agrees_with_itself():
    check_agreement({"train.max_steps": 5, "data of stage 1": "ab"})


def test_all_values_that_differ_anywhere_are_named(monkeypatch):
    facts = {"train.adam.lr": 0.1, "data of stage 1": "ab", "seed": None}
    others = [{("train.adam.lr", "0.1"), ("data of stage 1", "'cd'")}]
    monkeypatch.setattr(processes, "gather_object", lambda own: [*own, *others, *own])
    with pytest.raises(InputError, match=r"differ in data of stage 1, seed: give every machine"):
        check_agreement(facts)
    monkeypatch.setattr(processes, "gather_object", lambda own: [*own, *own])
    check_agreement(facts)


def test_a_second_sigterm_does_not_cut_off_the_save_and_handlers_are_restored():
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts(CPU) as interrupts:
        assert signal.getsignal(signal.SIGTERM) is not before
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupts.received == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.fixture
def _ctrl_c_interrupts():
    """As in a terminal: a background process may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c_interrupts")
def test_a_second_ctrl_c_interrupts_at_once():
    with Interrupts(CPU) as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.received == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_terminal_that_closes_is_recorded_unless_nohup_ignores_it():
    with Interrupts(CPU) as interrupts:
        os.kill(os.getpid(), signal.SIGHUP)
        assert interrupts.received == signal.SIGHUP
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts(CPU) as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupts.received == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
