import json
import logging
import os
import random
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState

from config.train import DataLoaderConfig
from models.base.task import Sample
from models.checkpoint.folders import latest_checkpoint, steps_of
from models.training.observing.scoring import PeriodicScoring
from models.training.processes import random_states, restore_random_states
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from tests.models.training import small_tasks
from tests.models.training.small_tasks import TinyGan, TinyTask, make_processed, make_trainer
from tests.processes import Process
from utils.errors import InputError


@pytest.fixture(autouse=True)
def _accelerate():
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_processed(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def whole(store, tmp_path_factory):
    """What a run gives that nothing interrupts."""
    return run(store, tmp_path_factory.mktemp("whole"))


AVERAGED = {"optimizer": "lamb", "ema_decay": 0.9, "scheduler": "NoamLR"}


def options(**changes):
    """Batches of crops, so that the data draw random numbers, too."""
    defaults = {"batch_size": 4, "crop_phones": 4, "max_steps": 11}
    return small_tasks.train_config(**(defaults | changes))


def everything(trainer):
    """Weights, optimizer states and random generators, as plain comparable values."""
    weights = {
        f"{name}.{key}": value.tolist()
        for name, network in trainer.run.task.networks.items()
        for key, value in network.state_dict().items()
    }
    optimizers = {
        f"{name}.{index}.{key}": value.tolist()
        for name, optimizer in trainer._updater.optimizers.items()
        for index, state in optimizer.state_dict()["state"].items()
        for key, value in state.items()
    }
    if trainer._average is not None:
        average = trainer._average.state_dict()
        weights |= {f"average.{key}": value.tolist() for key, value in average.items()}
    states = random_states()
    states["torch"] = states["torch"].tolist()
    return weights, optimizers, states, trainer.position


def run(store, folder, task=None, resume=False, scoring=None, **changes):
    task = task or TinyTask(dropout=0.3)
    trainer = make_trainer(store, folder, options(**changes), task, scoring=scoring)
    if resume:
        trainer.checkpointer.resume(latest_checkpoint(folder))
    trainer.fit()
    return everything(trainer)


@pytest.mark.parametrize("stop", [1, 3, 4, 8])
def test_a_resumed_run_is_bit_equal_to_an_uninterrupted_one(store, whole, tmp_path, stop):
    run(store, tmp_path / "parts", max_steps=stop)
    random.seed(99)
    parts = run(store, tmp_path / "parts", resume=True)
    assert parts == whole


def test_a_resumed_run_restarts_neither_average_nor_warm_up(store, tmp_path):
    whole = run(store, tmp_path / "whole", valid_steps=3, **AVERAGED)
    run(store, tmp_path / "parts", max_steps=4, valid_steps=3, **AVERAGED)
    parts = run(store, tmp_path / "parts", resume=True, valid_steps=3, **AVERAGED)
    assert parts[:3] == whole[:3]
    assert whole[0]["average.mel.weight"] != whole[0]["model.mel.weight"]


def test_resuming_is_bit_equal_with_worker_processes(store, whole, tmp_path):
    workers = {"dataloader": DataLoaderConfig(num_worker=1)}
    run(store, tmp_path / "parts", max_steps=5, **workers)
    assert run(store, tmp_path / "parts", resume=True, **workers) == whole


@pytest.mark.parametrize("optimizer", [{}, AVERAGED])
def test_resuming_is_bit_equal_with_accumulation_and_two_networks(store, tmp_path, optimizer):
    changes = {"gradient_accumulation_step": 2, "max_steps": 6, **optimizer}
    whole = run(store, tmp_path / "whole", TinyGan(torch.float32), **changes)
    stopped = changes | {"max_steps": 3}
    run(store, tmp_path / "parts", TinyGan(torch.float32), **stopped)
    resumed = run(store, tmp_path / "parts", TinyGan(torch.float32), resume=True, **changes)
    # the run that stopped was validated at its end, which may have found its best there
    assert resumed[:3] == whole[:3]


@pytest.mark.parametrize("changes", [{}, AVERAGED])
def test_validation_between_updates_does_not_change_the_run(store, tmp_path, changes):
    weights, *_ = run(store, tmp_path / "whole", **changes)
    assert run(store, tmp_path / "validated", valid_steps=2, **changes)[0] == weights


class Rambling(TinyTask):
    """Says something else each time, with random numbers from everywhere."""

    def samples(self, batch):
        assert not self.networks["model"].training
        random.seed(int(torch.randint(99, ())))
        np.random.seed(random.randint(0, 99))  # noqa: NPY002
        wav = torch.from_numpy(np.random.normal(0, 0.1, 2000))  # noqa: NPY002
        yield Sample(batch.ids[0], {"synthesised": wav.float()}, {})


def scoring_of(store):
    data = small_tasks.make_data(store, options())
    recorded = LabelledSpeech(0.1 * torch.randn(2000).numpy(), 8000, "", "")
    batches = [data.validation_batch(item) for item in range(2)]
    utterances, mel = [(batch, recorded) for batch in batches], small_tasks.PREPROCESS.mel
    return PeriodicScoring(utterances, ["mcd", "v_uv_f1"], mel, seconds=99)


def test_scores_between_updates_do_not_change_the_run(store, tmp_path):
    """Weights, states of the optimizers and random generators are bit for bit the same."""
    plain = run(store, tmp_path / "plain", Rambling(dropout=0.3))
    scoring = scoring_of(store)
    scored = run(store, tmp_path / "run", Rambling(dropout=0.3), scoring=scoring, score_steps=2)
    assert scored == plain
    assert scoring.utterances  # nothing failed


def test_a_run_with_scores_is_resumed_exactly(store, tmp_path):
    plain = run(store, tmp_path / "plain", Rambling(dropout=0.3))
    scored = {"scoring": scoring_of(store), "score_steps": 2}
    run(store, tmp_path / "parts", Rambling(dropout=0.3), max_steps=5, **scored)
    resumed = run(store, tmp_path / "parts", Rambling(dropout=0.3), resume=True, **scored)
    assert resumed[:3] == plain[:3]


def test_the_best_loss_survives(store, tmp_path):
    run(store, tmp_path / "run", max_steps=4, valid_steps=2)
    trainer = make_trainer(store, tmp_path / "run", options(), TinyTask(dropout=0.3))
    trainer.checkpointer.resume(latest_checkpoint(tmp_path / "run"))
    assert trainer.position.best is not None
    assert trainer.position.best_step in (2, 4)


def test_other_batches_restart_the_epoch_with_a_warning(store, tmp_path, caplog):
    run(store, tmp_path / "run", max_steps=4)
    trainer = make_trainer(store, tmp_path / "run", options(batch_size=2), TinyTask(dropout=0.3))
    with caplog.at_level(logging.WARNING):
        trainer.checkpointer.resume(latest_checkpoint(tmp_path / "run"))
    assert trainer.position.batch == 0
    assert trainer.position.step == 4
    assert "begins again" in caplog.text


def test_weights_of_another_model_are_refused(store, tmp_path):
    run(store, tmp_path / "run", max_steps=1)
    task = TinyTask()
    task.networks["model"].mel = torch.nn.Linear(6, 9)
    trainer = make_trainer(store, tmp_path / "run", options(), task)
    message = r"saved by another model than that of this config .*size mismatch"
    with pytest.raises(InputError, match=message):
        trainer.checkpointer.resume(latest_checkpoint(tmp_path / "run"))


POSITION, STATE = "trainer_state.json", "training_state.pt"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (POSITION, b"{}", r"state.json .*\(KeyError\('random'\)\); remove this checkpoint"),
        (POSITION, b"[]", r"trainer_state\.json or another file is damaged"),
        (POSITION, b'{"random": [], "step": "x"}', 'step is "x", expected a whole numb'),
        (STATE, b"", "not a file of tensors .*; remove this checkpoint"),
        (STATE, None, "not a file of tensors .*; remove this checkpoint"),
    ],
)
def test_a_damaged_state_is_an_error_that_names_it(store, tmp_path, name, content, message):
    run(store, tmp_path / "run", max_steps=1)
    trainer = make_trainer(store, tmp_path / "run", options(), TinyTask(dropout=0.3))
    checkpoint = latest_checkpoint(tmp_path / "run")
    whole = (checkpoint / name).read_bytes()
    (checkpoint / "measured.json").unlink()  # as of a run that was stopped before validation
    (checkpoint / name).write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(InputError, match=message):
        trainer.checkpointer.resume(checkpoint)


@pytest.mark.parametrize("content", [b"[]", b"{"])
def test_a_damaged_record_of_a_validation_is_repeated(store, tmp_path, content, caplog):
    run(store, tmp_path / "run", max_steps=1)
    trainer = make_trainer(store, tmp_path / "run", options(), TinyTask(dropout=0.3))
    checkpoint = latest_checkpoint(tmp_path / "run")
    (checkpoint / "measured.json").write_bytes(content)
    trainer.checkpointer.resume(checkpoint)
    assert (trainer.position.step, trainer.position.validated) == (1, 0)
    assert "measured.json is damaged: validation and scores are repeated" in caplog.text


def test_restored_generators_give_the_same_numbers():
    states = random_states()
    first = [random.random(), np.random.rand(), torch.rand(2).tolist()]  # noqa: NPY002
    restore_random_states(states)
    assert [random.random(), np.random.rand(), torch.rand(2).tolist()] == first  # noqa: NPY002


_START = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from config.train import DataLoaderConfig
from tests.models.training.small_tasks import FeatureStore, TinyTask, make_trainer
from tests.models.training.test_checkpointer import options
store, folder = FeatureStore(Path(sys.argv[1])), Path(sys.argv[2])
"""
_TRAINING = """
class Talking(TinyTask):
    def training_step(self, batch):
        print("update", flush=True)
        yield from super().training_step(batch)

workers = DataLoaderConfig(num_worker=int(sys.argv[3]))
changes = json.loads(sys.argv[4])
config = options(max_steps=1000000, save_steps=1, dataloader=workers, **changes)
received = make_trainer(store, folder, config, Talking(dropout=0.3)).fit()
raise SystemExit(128 + received if received else 0)
"""


def interrupted(store, folder, number, n_workers=0, **changes):
    """Trains in other processes, and sends all of them a signal in the fifth update."""
    arguments = [str(n_workers), json.dumps(changes)]
    return killed(_TRAINING, store, folder, number, *arguments, lines=5)


def killed(program, store, folder, number, *arguments, lines):
    """Runs a program until it has printed so many lines; sends a signal, and ends its input."""
    process = Process("-c", _START + program, store.folder, folder, *arguments)
    for _ in range(lines):
        assert process.stdout.readline()
    os.killpg(process.pid, number)
    return process.finish().returncode


@pytest.mark.parametrize("changes", [{}, AVERAGED])
def test_a_killed_run_resumes_bit_equal_to_an_uninterrupted_one(store, tmp_path, changes):
    assert interrupted(store, tmp_path / "parts", signal.SIGKILL, **changes) == -signal.SIGKILL
    end = steps_of(tmp_path / "parts")[-1] + 3
    parts = run(store, tmp_path / "parts", resume=True, max_steps=end, **changes)
    assert parts == run(store, tmp_path / "whole", max_steps=end, **changes)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_run_saves_and_resumes_bit_equal(store, tmp_path, number):
    """A terminal sends Ctrl-C and SIGHUP, and a cluster SIGTERM, to the loader's processes too."""
    assert interrupted(store, tmp_path / "parts", number, n_workers=1) == 128 + number
    end = steps_of(tmp_path / "parts")[-1] + 3
    parts = run(store, tmp_path / "parts", resume=True, max_steps=end)
    assert parts == run(store, tmp_path / "whole", max_steps=end)


_SCORING = """
def score(synthesise):
    print("scoring", flush=True)
    sys.stdin.read()  # until the signal was sent

scoring = SimpleNamespace(run=score)
trainer = make_trainer(store, folder, options(), TinyTask(dropout=0.3), scoring=scoring)
raise SystemExit(128 + (trainer.fit() or 0))
"""


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_the_end_of_the_process_in_the_last_scoring_costs_no_weights(
    store, tmp_path, number, status
):
    """SIGKILL is also what the kernel sends when memory runs out."""
    assert killed(_SCORING, store, tmp_path / "parts", number, lines=1) == status
    checkpoint = latest_checkpoint(tmp_path / "parts")
    assert checkpoint.name == "step-00000011"
    whole = run(store, tmp_path / "whole")
    before = {path.name: path.stat().st_mtime_ns for path in checkpoint.iterdir()}
    scored = []
    scoring = SimpleNamespace(run=scored.append)
    assert run(store, tmp_path / "parts", resume=True, scoring=scoring) == whole
    assert len(scored) == (1 if number == signal.SIGKILL else 0)
    after = {path.name: path.stat().st_mtime_ns for path in checkpoint.iterdir()}
    assert {name for name in after if after[name] != before[name]} <= {"measured.json"}
