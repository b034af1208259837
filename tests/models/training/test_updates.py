import math

import pytest
import torch
from torch import nn

from models.base.task import Update
from models.training.optimizers import build_optimizer
from models.training.trainer import Updater
from processors.dataset.batch import collate
from processors.dataset.sampler import Draw
from tests.models.training import small_tasks
from tests.models.training.small_tasks import TinyGan, TinyTask, make_processed, train_config

CPU = torch.device("cpu")


@pytest.fixture
def items(tmp_path):
    data = small_tasks.make_data(make_processed(tmp_path), train_config())
    return [data.train.dataset.items[Draw(0, i)] for i in range(4)]


def updater_of(task, optimizer="adam", **options):
    config = train_config(optimizer=optimizer)
    optimizers = {name: build_optimizer(network, config) for name, network in task.networks.items()}
    return Updater(task, optimizers, CPU, **options)


def weights_after(task, windows, **options):
    updater = updater_of(task, **options)
    for window in windows:
        updater.run(window)
    return torch.cat([p.detach().flatten() for n in task.networks.values() for p in n.parameters()])


def in_batches(items, size):
    return [collate(items[i : i + size], -11.5) for i in range(0, len(items), size)]


@pytest.mark.parametrize("optimizer", ["adam", "lamb"])
@pytest.mark.parametrize("task", [lambda: TinyTask(dtype=torch.float64), TinyGan])
def test_any_split_into_micro_batches_gives_the_same_updates(items, task, optimizer):
    options = {"optimizer": optimizer, "max_norm": 0.5}
    splits = ([in_batches(items, size)] * 3 for size in (4, 2, 1))
    whole, halves, quarters = (weights_after(task(), split, **options) for split in splits)
    assert torch.allclose(whole, halves, rtol=0, atol=1e-12)
    assert torch.allclose(whole, quarters, rtol=0, atol=1e-12)
    assert not torch.allclose(whole, weights_after(task(), []))


def test_losses_are_means_over_the_valid_elements_of_the_window(items):
    task = TinyTask(dtype=torch.float64)
    report = updater_of(TinyTask(dtype=torch.float64)).run(in_batches(items, 1))
    with torch.no_grad():
        losses = task.losses(collate(items, -11.5))
    frames = sum(item.mel.shape[1] for item in items)
    phones = sum(len(item.phone_ids) for item in items)
    assert report.counts == {"frames": frames, "phones": phones, "items": 4}
    assert report.losses["mel"] == pytest.approx(losses["mel"].total.item() / frames)
    assert report.losses["duration"] == pytest.approx(losses["duration"].total.item() / phones)


def test_the_gradient_norm_is_reported_before_it_is_clipped(items):
    tasks = TinyTask(), TinyTask()
    updaters = (updater_of(task, max_norm=n) for task, n in zip(tasks, (0, 0.01), strict=True))
    free, clipped = (updater.run(in_batches(items, 4)) for updater in updaters)
    assert clipped.norms["model"] == pytest.approx(free.norms["model"])
    assert free.norms["model"] > 0.01
    gradients = [p.grad.flatten() for p in tasks[1].networks["model"].parameters()]
    assert torch.cat(gradients).norm().item() == pytest.approx(0.01, rel=1e-3)


def test_each_update_of_a_gan_moves_its_own_network_with_its_own_gradient(items):
    """The same two steps written out by hand, with plain autograd and Adam."""
    batch = collate(items, -11.5)
    weights = weights_after(TinyGan(), [[batch], [batch]])
    task = TinyGan()
    optimizers = {
        name: torch.optim.Adam(n.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-8)
        for name, n in task.networks.items()
    }
    for _ in range(2):
        for update in task.training_step(batch):
            (term,) = update.losses.values()
            parameters = list(task.networks[update.network].parameters())
            loss = term.total / int(batch.mel_lengths.sum())
            gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient
            optimizers[update.network].step()
    expected = [p.detach().flatten() for n in task.networks.values() for p in n.parameters()]
    assert torch.allclose(weights, torch.cat(expected), rtol=0, atol=1e-12)


class Poisoned(TinyTask):
    """A task whose loss is NaN for chosen utterances, with a network that keeps a running mean."""

    def __init__(self, bad_ids=(), gradient_only=False):
        super().__init__()
        self.bad_ids = bad_ids
        self.gradient_only = gradient_only
        self.networks["model"].norm = nn.BatchNorm1d(1)

    def losses(self, batch):
        losses = super().losses(batch)
        self.networks["model"].norm(batch.energy.reshape(-1, 1))
        if set(self.bad_ids) & set(batch.ids):
            parameter = self.networks["model"].mel.bias.sum()
            poison = ((parameter * 0).sqrt() - 1) if self.gradient_only else parameter * math.nan
            losses["mel"] = losses["mel"]._replace(total=losses["mel"].total + poison)
        return losses


def test_a_loss_that_is_not_finite_skips_the_step_and_names_the_utterance(items):
    task = Poisoned(bad_ids=(items[2].id,))
    before = {name: t.clone() for name, t in task.networks["model"].state_dict().items()}
    report = updater_of(task).run(in_batches(items, 1))
    assert report.faults == {"model": "loss mel"}
    assert report.updated == set()
    assert report.utterances == [items[2].id]
    after = task.networks["model"].state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_gradient_that_is_not_finite_skips_the_step_and_names_the_window(items):
    task = Poisoned(bad_ids=(items[2].id,), gradient_only=True)
    before = task.networks["model"].mel.weight.clone()
    report = updater_of(task).run(in_batches(items, 1))
    assert report.faults == {"model": "gradient norm"}
    assert report.utterances == [item.id for item in items]
    assert torch.equal(task.networks["model"].mel.weight, before)


def test_a_skipped_step_does_not_change_the_next_one(items):
    task = Poisoned(bad_ids=(items[0].id,))
    updater = updater_of(task)
    updater.run(in_batches(items, 4))
    task.bad_ids = ()
    updater.run(in_batches(items, 4))
    undisturbed = Poisoned()
    updater_of(undisturbed).run(in_batches(items, 4))
    weight = undisturbed.networks["model"].mel.weight
    assert torch.equal(task.networks["model"].mel.weight, weight)


def test_scaled_losses_give_the_same_update_and_an_overflow_lowers_the_scale(items):
    """What fp16 needs, in fp32: the scale is a power of 2 and changes no result."""
    plain, scaled = TinyTask(), TinyTask()
    weights = weights_after(plain, [in_batches(items, 2)], max_norm=0.5)
    same = weights_after(scaled, [in_batches(items, 2)], max_norm=0.5, half=True)
    assert torch.allclose(same, weights)

    class Large(TinyTask):
        def losses(self, batch):
            return {name: t._replace(weight=1e3) for name, t in super().losses(batch).items()}

    updater = updater_of(Large(), half=True)
    updater.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    report = updater.run(in_batches(items, 4))
    assert not math.isfinite(report.norms["model"])
    assert (report.faults, report.updated) == ({}, set())
    assert updater.scaler.get_scale() == 2.0**126


def test_a_task_that_yields_differently_per_batch_is_a_bug(items):
    class Uneven(TinyTask):
        def training_step(self, batch):
            if items[0].id in batch.ids:
                yield Update("model", self.losses(batch))

    with pytest.raises(RuntimeError, match="the same networks for every batch"):
        updater_of(Uneven()).run(in_batches(items, 2))
