import logging
import math
import os
import signal
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file

from config.train import AdamConfig, ScheduleConfig
from models.base.task import Sample
from models.checkpoint.folders import fault_of, latest_checkpoint, steps_of, write_checkpoint
from models.training.observing.scoring import ScoringResult, Validation, validate
from models.training.run import Run
from models.training.trainer import Trainer
from tests.models.training import small_tasks
from tests.models.training.small_tasks import TinyTask, make_processed, make_trainer, train_config
from utils.errors import InputError

VALIDATE = "models.training.trainer.validate"


@pytest.fixture
def store(tmp_path):
    return make_processed(tmp_path / "data")


@pytest.fixture
def checkpoints(tmp_path):
    AcceleratorState._reset_state(reset_partial_state=True)
    return tmp_path / "run" / "checkpoints"


def weights_of(trainer):
    return trainer.run.task.networks[trainer.run.task.exported].state_dict()


def test_training_fits_a_small_corpus(store, checkpoints):
    trainer = make_trainer(store, checkpoints, train_config(max_steps=150, valid_steps=150))
    before = validate(trainer.run.task, trainer.run.data.valid, torch.device("cpu")).loss
    assert trainer.fit() is None
    assert trainer.position.step == 150
    assert trainer.position.best < before / 5


def test_max_steps_and_max_epoch_both_end_training(store, checkpoints):
    by_steps = make_trainer(store, checkpoints, train_config(max_steps=3))
    by_steps.fit()
    by_epochs = make_trainer(store, checkpoints, train_config(max_steps=0, max_epoch=2))
    n_batches = len(by_epochs.run.data.sampler.plan(0)) + len(by_epochs.run.data.sampler.plan(1))
    by_epochs.fit()
    first = make_trainer(store, checkpoints, train_config(max_steps=3, max_epoch=9))
    first.fit()
    assert by_steps.position.step == first.position.step == 3
    assert (by_epochs.position.epoch, by_epochs.position.step) == (2, n_batches)


def test_steps_count_updates_not_micro_batches(store, checkpoints):
    config = train_config(max_steps=4, gradient_accumulation_step=2)
    trainer = make_trainer(store, checkpoints, config)
    trainer.fit()
    assert trainer.position.step == 4
    per_epoch = len(trainer.run.data.sampler.plan(0))
    assert trainer.position.epoch * per_epoch + trainer.position.batch == 8


def test_the_rate_of_each_update_is_that_of_the_schedule(store, checkpoints):
    schedule, adam = ScheduleConfig(num_warmup=2), AdamConfig(lr=0.4)
    config = train_config(max_steps=3, scheduler="linear", adam=adam, lr_scheduler=schedule)
    rates = []

    class RateRecorder(TinyTask):
        def training_step(self, batch):
            rates.append(trainer._updater.optimizers["model"].param_groups[0]["lr"])
            yield from super().training_step(batch)

    trainer = make_trainer(store, checkpoints, config, RateRecorder())
    trainer.fit()
    assert rates == pytest.approx([0.2, 0.4, 0.0])


def test_a_gan_trains_both_networks_and_exports_one(store, checkpoints):
    task = small_tasks.TinyGan(torch.float32)
    parameters = {name: list(network.parameters()) for name, network in task.networks.items()}
    before = {name: [p.clone() for p in values] for name, values in parameters.items()}
    make_trainer(store, checkpoints, train_config(max_steps=2), task).fit()
    for name, values in parameters.items():
        assert not all(map(torch.equal, before[name], values)), name
    saved = {path.name for path in (checkpoints / "step-00000002").iterdir()}
    assert {"model.safetensors", "discriminator.safetensors"} < saved


def test_the_last_checkpoints_and_the_best_are_kept(store, checkpoints, monkeypatch, caplog):
    config = train_config(max_steps=9, save_steps=2, valid_steps=1, keep_last=2)
    losses = iter([5.0, 4.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    monkeypatch.setattr(VALIDATE, lambda *_: Validation(next(losses), {}, {}))
    trainer = make_trainer(store, checkpoints, config)
    with caplog.at_level("INFO"):
        trainer.fit()
    assert trainer.position.best_step == 3
    still = "the best checkpoint is still that of update 3, with a validation loss of 1;"
    assert caplog.text.count(still) == 6
    assert steps_of(checkpoints) == [3, 8, 9]


def test_checkpoints_of_milestones_are_saved_and_kept_also_by_a_resumed_run(store, checkpoints):
    config = train_config(max_steps=6, save_steps=4, keep_last=1, keep_milestones=(2, 7))
    make_trainer(store, checkpoints, config).fit()
    assert steps_of(checkpoints)[0] == 2

    resumed = make_trainer(store, checkpoints, replace(config, max_steps=9))
    resumed.checkpointer.resume(latest_checkpoint(checkpoints))
    resumed.fit()
    assert steps_of(checkpoints) == [2, 7, 8, 9]


class Watched(TinyTask):
    """Remembers a weight in each update, validation and sample."""

    def __init__(self):
        super().__init__()
        self.seen = {"trained": [], "validated": [], "spoken": []}

    def weight(self):
        return self.networks["model"].mel.weight[0, 0].item()

    def training_step(self, batch):
        self.seen["trained"].append(self.weight())
        yield from super().training_step(batch)

    def validation_step(self, batch):
        self.seen["validated"].append(self.weight())
        return super().validation_step(batch)

    def samples(self, batch):
        self.seen["spoken"].append(self.weight())
        yield Sample(batch.ids[0], {}, {})


def test_the_average_is_validated_scored_and_saved_as_the_weights_to_speak_with(store, checkpoints):
    task = Watched()
    config = train_config(max_steps=3, ema_decay=0.8)

    def score(synthesise):
        synthesise(trainer.run.data.validation_batch(0))

    trainer = make_trainer(store, checkpoints, config, task, scoring=SimpleNamespace(run=score))
    trainer.fit()
    weights = [*task.seen["trained"], task.weight()]
    average = weights[0]
    for n, weight in enumerate(weights[1:], start=1):
        kept = (1 + n) / (10 + n)  # less than 0.8
        average = kept * average + (1 - kept) * weight
    assert set(task.seen["validated"]) == set(task.seen["spoken"])
    assert task.seen["spoken"] == [pytest.approx(average)]
    assert abs(average - weights[-1]) > 1e-4
    checkpoint = checkpoints / "step-00000003"
    saved, raw = (load_file(checkpoint / f"{name}.safetensors") for name in ("model", "raw_model"))
    assert saved["mel.weight"][0, 0].item() == pytest.approx(average)
    assert raw["mel.weight"][0, 0].item() == weights[-1]


def test_scores_come_every_few_updates_and_at_the_end(store, checkpoints, caplog):
    scored = []

    def score(synthesise):
        scored.append(synthesise(trainer.run.data.validation_batch(1)).id)
        return ScoringResult({"mcd": 6.5 + len(scored), "fpc": math.nan}, 1, 0.5)

    config = train_config(max_steps=5, score_steps=2)
    scoring = SimpleNamespace(run=score)
    trainer = make_trainer(store, checkpoints, config, Watched(), scoring=scoring)
    with caplog.at_level(logging.INFO):
        trainer.fit()
    assert scored == ["utt-011"] * 3
    assert [line for line in caplog.messages if "scores of" in line] == [
        "update 2: scores of 1 utterances: mcd 7.5, fpc nan (0.5 s)",
        "update 4: scores of 1 utterances: mcd 8.5, fpc nan (0.5 s)",
        "update 5: scores of 1 utterances: mcd 9.5, fpc nan (0.5 s)",
    ]
    assert trainer.checkpointer.scores["score/mcd"] == 9.5


class Exploding(TinyTask):
    """Its loss is NaN in the updates named."""

    def __init__(self, bad_updates):
        super().__init__()
        self.bad_updates = bad_updates
        self.updates = 0

    def training_step(self, batch):
        self.updates += 1
        for update in super().training_step(batch):
            if self.updates in self.bad_updates:
                update.losses["mel"].total.data.fill_(math.nan)
            yield update


def test_a_step_that_is_not_finite_is_skipped_and_training_continues(store, checkpoints, caplog):
    task = Exploding({2, 4})
    trainer = make_trainer(store, checkpoints, train_config(max_steps=5, max_bad_steps=2), task)
    with caplog.at_level(logging.WARNING):
        trainer.fit()
    assert trainer.position.step == 5
    assert all(bool(t.isfinite().all()) for t in weights_of(trainer).values())
    messages = [record.getMessage() for record in caplog.records]
    assert len([m for m in messages if "skipped, not finite: model: loss mel" in m]) == 2
    assert all("utterances: utt-" in m for m in messages)


def test_a_skipped_step_does_not_move_the_average(store, checkpoints):
    config = train_config(max_steps=3, ema_decay=0.5)
    trainer = make_trainer(store, checkpoints, config, Exploding({2, 3}))
    initial = weights_of(trainer)["mel.weight"].clone()
    trainer.fit()
    expected = torch.lerp(initial, weights_of(trainer)["mel.weight"], 9 / 11)
    torch.testing.assert_close(trainer._average.state_dict()["mel.weight"], expected)


@pytest.mark.parametrize(
    ("bad_updates", "message", "kept"),
    [
        (range(4, 8), r"update 6: 3 updates in a row .* utt-\d+; kept checkpoints: 2 ", [2]),
        (range(5, 9), r"kept checkpoints: 2, 4 \(--resume", [2, 4]),
    ],
)
def test_too_many_bad_steps_in_a_row_stop_training_with_the_last_good_checkpoints(
    store, checkpoints, bad_updates, message, kept
):
    config = train_config(max_steps=20, save_steps=2, max_bad_steps=3, keep_last=1)
    with pytest.raises(InputError, match=message):
        make_trainer(store, checkpoints, config, Exploding(bad_updates)).fit()
    assert steps_of(checkpoints) == kept


def test_what_is_due_while_updates_are_skipped_waits_for_the_next_good_one(
    store, checkpoints, monkeypatch
):
    task = Exploding({2, 3, 6})
    changes = {"save_steps": 2, "valid_steps": 3, "keep_last": 9, "max_steps": 7}
    trainer = make_trainer(store, checkpoints, train_config(**changes), task)
    validated = []

    def validate_at(*_arguments):
        validated.append(trainer.position.step)
        return Validation(1.0, {}, {})

    monkeypatch.setattr(VALIDATE, validate_at)
    trainer.fit()
    assert steps_of(checkpoints) == [4, 7]
    assert validated == [4, 7]


def test_a_signal_while_updates_are_skipped_is_obeyed_after_the_next_good_one(store, checkpoints):
    class Interrupted(Exploding):
        def training_step(self, batch):
            if self.updates == 1:
                os.kill(os.getpid(), signal.SIGTERM)
            yield from super().training_step(batch)

    trainer = make_trainer(store, checkpoints, train_config(max_steps=9), Interrupted({2, 3}))
    assert trainer.fit() == signal.SIGTERM
    assert steps_of(checkpoints) == [4]


class Overflowing(TinyTask):
    """Its weights become infinite in the third update."""

    def training_step(self, batch):
        yield from super().training_step(batch)
        self.updates = getattr(self, "updates", 0) + 1
        if self.updates == 3:
            self.networks["model"].mel.weight.data[0, 0] = math.inf


@pytest.mark.parametrize("due", ["save_steps", "valid_steps", "score_steps"])
def test_weights_that_are_not_finite_stop_training_before_they_are_used(
    store, checkpoints, monkeypatch, due
):
    config = train_config(max_steps=20, save_steps=2)
    make_trainer(store, checkpoints, replace(config, max_steps=2)).fit()
    monkeypatch.setattr(VALIDATE, lambda *_: pytest.fail("validated"))
    scoring = SimpleNamespace(run=lambda _: pytest.fail("scored"))
    config = replace(config, **{"save_steps": 0, due: 3})
    trainer = make_trainer(store, checkpoints, config, Overflowing(), scoring=scoring)
    match = r"update 3: these weights .*: model\.mel\.weight; .* kept checkpoints: 2 "
    with pytest.raises(InputError, match=match):
        trainer.fit()
    assert steps_of(checkpoints) == [2]


def test_the_first_skipped_update_stops_training_if_the_weights_are_not_finite(store, checkpoints):
    trainer = make_trainer(store, checkpoints, train_config(max_steps=20), Overflowing())
    with pytest.raises(InputError, match=r"at update 4: these weights .* kept checkpoints: none"):
        trainer.fit()


class Following(TinyTask):
    """Names what is done, and does `during` in one of these."""

    def __init__(self, events, during=None):
        super().__init__()
        self.events = events
        self.during = during or {}

    def does(self, what):
        self.events.append(what)
        self.during.pop(what, lambda: None)()

    def training_step(self, batch):
        self.does("update")
        yield from super().training_step(batch)

    def validation_step(self, batch):
        self.does("validate")
        return super().validation_step(batch)


def follow(store, checkpoints, config, during=None):
    """A trainer, and the list of what it does: validations have two batches."""
    events = []
    task = Following(events, during)

    def score(_synthesise):
        task.does("score")
        return ScoringResult({"mcd": 6.5}, 1, 0.5)

    scoring = SimpleNamespace(run=score)
    cards = []
    trainer = make_trainer(store, checkpoints, config, task, scoring=scoring)
    run = trainer.run._replace(
        write_card=lambda position, values: cards.append((position.step, dict(values)))
    )
    return Trainer(run), events, cards


@pytest.fixture
def logged_saves(monkeypatch):
    def write(folder, step, files):
        write.events.append("save")
        return write_checkpoint(folder, step, files)

    monkeypatch.setattr("models.training.checkpointer.write_checkpoint", write)
    return write


def test_the_checkpoint_comes_before_validation_and_scores(store, checkpoints, logged_saves):
    config = train_config(max_steps=3, valid_steps=2, score_steps=2)
    trainer, events, cards = follow(store, checkpoints, config)
    logged_saves.events = events
    trainer.fit()
    measured = ["update", "save", "validate", "validate", "score"]
    assert events == ["update", *measured, *measured]
    assert cards[-1][0] == 3
    assert cards[-1][1].keys() == {"mel", "duration", "score/mcd"}


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def run_out_of_memory():
    raise torch.OutOfMemoryError("out of memory")


@pytest.mark.parametrize(
    ("what", "left"),
    [("update", ["validate", "validate", "score"]), ("validate", ["score"]), ("score", [])],
)
def test_a_signal_at_the_end_costs_what_was_left_and_resuming_does_only_that(
    store, checkpoints, what, left
):
    config = train_config(max_steps=1)
    trainer, _, _ = follow(store, checkpoints, config, {what: terminate})
    assert trainer.fit() == signal.SIGTERM
    assert fault_of(checkpoints / "step-00000001") == ""
    resumed, events, cards = follow(store, checkpoints, config)
    resumed.checkpointer.resume(latest_checkpoint(checkpoints))
    assert resumed.fit() is None
    assert events == left
    if left:
        assert "score/mcd" in cards[-1][1]
    again, events, _ = follow(store, checkpoints, config)
    again.checkpointer.resume(latest_checkpoint(checkpoints))
    assert again.fit() is None
    assert events == []


def test_a_signal_saves_a_checkpoint_and_ends_training(store, checkpoints):
    trainer, _, _ = follow(store, checkpoints, train_config(max_steps=9), {"update": terminate})
    assert trainer.fit() == signal.SIGTERM
    assert steps_of(checkpoints) == [1]


@pytest.mark.parametrize("end", [{"max_steps": 4}, {"max_steps": 0, "max_epoch": 1}])
def test_an_error_in_a_validation_costs_no_update_and_resuming_repeats_it(store, checkpoints, end):
    config = train_config(**end, valid_steps=2)
    whole, events, _ = follow(store, checkpoints.parent / "whole", config)
    whole.fit()
    trainer, _, _ = follow(store, checkpoints, config, {"validate": run_out_of_memory})
    with pytest.raises(torch.OutOfMemoryError):
        trainer.fit()
    assert fault_of(checkpoints / "step-00000002") == ""
    resumed, rest, _ = follow(store, checkpoints, config)
    resumed.checkpointer.resume(latest_checkpoint(checkpoints))
    resumed.fit()
    assert rest == events[2:]
    assert resumed.position == whole.position
    assert weights_of(resumed)["mel.weight"].equal(weights_of(whole)["mel.weight"])


@pytest.mark.parametrize("end", [{"max_steps": 2}, {"max_steps": 0, "max_epoch": 1}])
def test_a_finished_run_does_nothing(store, checkpoints, end, caplog):
    config = train_config(**end)
    make_trainer(store, checkpoints, config).fit()
    trainer, events, _ = follow(store, checkpoints, config)
    trainer.checkpointer.resume(latest_checkpoint(checkpoints))
    with caplog.at_level(logging.INFO):
        assert trainer.fit() is None
    assert events == []
    assert "nothing is left to train" in caplog.text


def test_the_end_is_the_nearer_of_steps_and_epochs():
    window = {"gradient_accumulation_step": 2}
    data = SimpleNamespace(sampler=range(10))

    def last_update(**limits):
        return Run(None, data, train_config(**limits, **window), None, None, None).last_update

    assert last_update(max_steps=7, max_epoch=0) == 7
    assert last_update(max_steps=0, max_epoch=3) == 15
    assert last_update(max_steps=99, max_epoch=3) == 15
