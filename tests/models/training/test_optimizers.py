import math

import pytest
import torch
from torch import nn

from config.train import AdamConfig, ScheduleConfig
from models.training.optimizers import Lamb, WeightAverage, build_optimizer, learning_rate
from modules.layers.postnet import MaskedBatchNorm
from tests.models.training.small_tasks import train_config


@pytest.mark.parametrize(
    ("name", "kind"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW), ("lamb", Lamb)]
)
def test_the_optimizer_has_the_config_and_leaves_frozen_parameters_out(name, kind):
    network = nn.Linear(2, 2)
    network.bias.requires_grad_(False)
    norm = {"max_grad_norm": 3.0} if name == "lamb" else {}
    adam = AdamConfig(lr=0.1, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.2, **norm)
    config = train_config(optimizer=name, adam=adam)
    optimizer = build_optimizer(network, config)
    (group,) = optimizer.param_groups
    assert type(optimizer) is kind
    assert group["params"] == [network.weight]
    assert (group["lr"], group["betas"], group["eps"]) == (0.1, (0.8, 0.9), 1e-6)
    assert group["weight_decay"] == 0.2
    assert group["max_grad_norm"] == 3.0 if name == "lamb" else group["fused"]


class EveryKind(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(3, 4)
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 4, 1))
        self.lstm = nn.LSTM(4, 4)
        self.layer_norm = nn.LayerNorm(4)
        self.batch_norm = nn.BatchNorm1d(4)
        self.masked_norm = MaskedBatchNorm(4)
        self.bias_map = nn.Linear(4, 4, bias=False)


@pytest.mark.parametrize("name", ["adam", "adamw", "lamb"])
def test_weights_decay_and_biases_and_norms_do_not(name):
    network = EveryKind()
    config = train_config(optimizer=name, adam=AdamConfig(lr=0.1, weight_decay=0.2))
    decays = {
        parameter: group["weight_decay"]
        for group in build_optimizer(network, config).param_groups
        for parameter in group["params"]
    }
    decayed = {key for key, parameter in network.named_parameters() if decays[parameter]}
    conv = {f"conv.parametrizations.weight.original{n}" for n in (0, 1)}
    lstm = {"lstm.weight_ih_l0", "lstm.weight_hh_l0"}
    assert decayed == {"embedding.weight", "bias_map.weight", *conv, *lstm}
    assert set(decays.values()) == {0.0, 0.2}
    assert decays.keys() == set(network.parameters())


def test_without_a_gradient_adamw_shrinks_weights_only():
    network = nn.Linear(2, 2)
    config = train_config(optimizer="adamw", adam=AdamConfig(lr=0.1, weight_decay=0.2))
    before = [parameter.detach().clone() for parameter in network.parameters()]
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    build_optimizer(network, config).step()
    torch.testing.assert_close(network.weight.detach(), before[0] * (1 - 0.1 * 0.2))
    assert torch.equal(network.bias.detach(), before[1])


def test_without_weight_decay_there_is_one_group():
    network = EveryKind()
    (group,) = build_optimizer(network, train_config()).param_groups
    assert group["params"] == list(network.parameters())


SETTINGS = {"lr": 0.02, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 1e-2}
SETTINGS["max_grad_norm"] = 1.0


def norm(values):
    return math.sqrt(sum(value**2 for value in values))


class ScalarLamb:
    """LAMB one number at a time, over tensors as lists of numbers."""

    def __init__(self, tensors, lr, betas, eps, weight_decay, max_grad_norm):
        self.tensors, self.lr, self.betas = tensors, lr, betas
        self.eps, self.decay, self.max_norm = eps, weight_decay, max_grad_norm
        self.m = [[0.0] * len(tensor) for tensor in tensors]
        self.v = [[0.0] * len(tensor) for tensor in tensors]
        self.t = 0

    def step(self, gradients):
        self.t += 1
        total = norm(g for gradient in gradients for g in gradient)
        divisor = max(1.0, total / self.max_norm) if self.max_norm else 1.0
        beta_1, beta_2 = self.betas
        for k, (tensor, gradient) in enumerate(zip(self.tensors, gradients, strict=True)):
            updates = []
            for i, g in enumerate(gradient):
                self.m[k][i] = beta_1 * self.m[k][i] + (1 - beta_1) * g / divisor
                self.v[k][i] = beta_2 * self.v[k][i] + (1 - beta_2) * (g / divisor) ** 2
                m_hat = self.m[k][i] / (1 - beta_1**self.t)
                v_hat = self.v[k][i] / (1 - beta_2**self.t)
                updates.append(m_hat / (math.sqrt(v_hat) + self.eps) + self.decay * tensor[i])
            size, length = norm(tensor), norm(updates)
            ratio = size / length if size and length else 1.0
            for i, update in enumerate(updates):
                tensor[i] -= self.lr * ratio * update


def parameters_of(*shapes, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(s, generator=generator, dtype=dtype)) for s in shapes]


def gradients_of(parameters, step, scale=1.0):
    generator = torch.Generator().manual_seed(step)
    return [scale * torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in parameters]


def take_steps(optimizer, parameters, steps, scale=1.0):
    for step in steps:
        for parameter, grad in zip(parameters, gradients_of(parameters, step, scale), strict=True):
            parameter.grad = grad
        optimizer.step()


def numbers(tensors):
    return [tensor.detach().flatten().tolist() for tensor in tensors]


@pytest.mark.parametrize(
    ("scale", "changes"),
    [
        (1.0, {}),  # the gradient is clipped
        (0.01, {}),  # it is shorter than the limit
        (100.0, {"max_grad_norm": 0.0}),
        (1.0, {"weight_decay": 0.0, "eps": 0.1}),
    ],
)
def test_steps_are_those_of_the_definition_one_number_at_a_time(scale, changes):
    settings = SETTINGS | changes
    parameters = parameters_of((4, 3), (5,), (2, 1, 2))
    with torch.no_grad():
        parameters[1].zero_()  # its norm is 0: the ratio is 1
    reference = ScalarLamb(numbers(parameters), **settings)
    optimizer = Lamb(parameters, **settings)
    for step in range(6):
        take_steps(optimizer, parameters, [step], scale)
        reference.step(numbers(gradients_of(parameters, step, scale)))
    for found, expected in zip(numbers(parameters), reference.tensors, strict=True):
        assert found == pytest.approx(expected, rel=1e-10)


def test_the_first_step_changes_each_tensor_by_the_learning_rate():
    """Without weight decay, whatever the size of the gradient."""
    parameters = parameters_of((40, 30), (7,))
    before = [parameter.detach().clone() for parameter in parameters]
    take_steps(Lamb(parameters, **SETTINGS | {"weight_decay": 0.0}), parameters, [0], scale=1e-5)
    for old, new in zip(before, parameters, strict=True):
        assert ((new - old).norm() / old.norm()).item() == pytest.approx(0.02, rel=1e-6)


def test_a_tensor_without_a_gradient_or_with_an_update_of_zero_stays():
    trained, idle, still = parameters_of((3,), (3,), (3,))
    before = [parameter.detach().clone() for parameter in (idle, still)]
    groups = [{"params": [trained, idle]}, {"params": [still], "weight_decay": 0.0}]
    optimizer = Lamb(groups, **SETTINGS)
    optimizer.step()
    trained.grad = torch.ones_like(trained)
    still.grad = torch.zeros_like(still)
    optimizer.step()
    assert all(map(torch.equal, (idle, still), before))
    assert set(optimizer.state) == {trained, still}


def test_a_restored_state_continues_bit_for_bit():
    whole, parts = parameters_of((4, 3), (5,)), parameters_of((4, 3), (5,))
    take_steps(Lamb(whole, **SETTINGS), whole, range(5))
    first = Lamb(parts, **SETTINGS)
    take_steps(first, parts, range(3))
    second = Lamb(parts, **SETTINGS | {"lr": 9.0})
    second.load_state_dict(first.state_dict())
    take_steps(second, parts, range(3, 5))
    assert numbers(parts) == numbers(whole)


def test_groups_share_one_norm_of_the_gradient():
    """Two groups of the same weight decay take the steps of one."""
    whole, parts = parameters_of((4, 3), (5,)), parameters_of((4, 3), (5,))
    take_steps(Lamb(whole, **SETTINGS), whole, range(3))
    groups = [{"params": [parameter]} for parameter in parts]
    take_steps(Lamb(groups, **SETTINGS), parts, range(3))
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=0)


def test_each_group_has_its_own_weight_decay():
    apart, same = parameters_of((4,), (4,)), parameters_of((4,), (4,))
    settings = SETTINGS | {"max_grad_norm": 0.0}
    groups = [{"params": apart[:1]}, {"params": apart[1:], "weight_decay": 0.0}]
    take_steps(Lamb(groups, **settings), apart, range(2))
    take_steps(Lamb(same, **settings), same, range(2))
    assert torch.equal(apart[0], same[0])
    assert not torch.equal(apart[1], same[1])


def rate(update, epoch=0, last=100, *, scheduler, **schedule):
    keys, adam = ScheduleConfig(**schedule), AdamConfig(lr=0.5)
    config = train_config(adam=adam, scheduler=scheduler, lr_scheduler=keys)
    return learning_rate(config, update, epoch, last)


def test_noam_rises_linearly_and_falls_with_the_square_root():
    # Amphion's peak: 0.0625 * 4000 ** -0.5
    config = train_config(adam=AdamConfig(lr=0.0625), scheduler="NoamLR")
    assert learning_rate(config, 4000, 0, 0) == pytest.approx(9.88e-4, rel=1e-3)
    assert learning_rate(config, 1000, 0, 0) == pytest.approx(9.88e-4 / 4, rel=1e-3)
    assert learning_rate(config, 16000, 0, 0) == pytest.approx(9.88e-4 / 2, rel=1e-3)


def test_noam_is_the_schedule_of_nvidias_fastpitch():
    """0.1 * n / 1000^1.5 up to update 1000, then 0.1 / sqrt(n)."""
    adam, warmup = AdamConfig(lr=0.1), ScheduleConfig(num_warmup=1000)
    config = train_config(adam=adam, scheduler="NoamLR", lr_scheduler=warmup)
    found = {n: learning_rate(config, n, 0, 0) for n in (1, 500, 999, 1000, 1001, 4000, 230_000)}
    for n, rate in found.items():
        expected = 0.1 * n / 1000**1.5 if n <= 1000 else 0.1 / math.sqrt(n)
        assert rate == pytest.approx(expected, rel=1e-12)
    assert found[1] == pytest.approx(3.16e-6, rel=1e-3)
    assert max(found.values()) == found[1000] == pytest.approx(3.16e-3, rel=1e-3)


def test_exponential_falls_by_epoch():
    for epoch, expected in ((0, 0.5), (1, 0.25), (3, 0.0625)):
        assert rate(5, epoch, scheduler="exponential", gamma=0.5) == expected


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


EIGHTH = 1 + math.cos(math.pi / 4)  # of a turn
TO_A_TENTH = {"num_warmup": 20, "decay_steps": 40, "end_lr": 0.1}
SQUARED = {"num_warmup": 20, "decay_steps": 60, "end_lr": 0.1, "power": 2.0}
BY_STEPS = {"gamma": 0.5, "num_warmup": 4, "decay_steps": 10}
IN_STEPS = {"num_warmup": 4, "gamma": 0.3, "milestones": (9, 20)}


@pytest.mark.parametrize(
    ("scheduler", "keys", "rates"),
    [
        ("constant", {}, {1: 0.5, 99: 0.5}),
        ("linear", {"num_warmup": 20}, {10: 0.25, 20: 0.5, 60: 0.25, 100: 0, 200: 0}),
        ("polynomial", {"num_warmup": 20}, {10: 0.25, 20: 0.5, 60: 0.25, 100: 0, 200: 0}),
        ("polynomial", SQUARED, {10: 0.25, 20: 0.5, 50: 0.1 + 0.4 * 0.5**2, 80: 0.1, 99: 0.1}),
        ("NoamLR", {"num_warmup": 4}, {1: 0.0625, 4: 0.25, 16: 0.125}),
        ("cosine", {"num_warmup": 20}, {10: 0.25, 20: 0.5, 40: 0.25 * EIGHTH, 60: 0.25, 100: 0}),
        (
            "cosine",
            TO_A_TENTH,
            {10: 0.25, 20: 0.5, 30: 0.1 + 0.2 * EIGHTH, 40: 0.3, 60: 0.1, 90: 0.1},
        ),
        ("exponential", {"gamma": 0.5}, {5: 0.0625}),  # of epoch 3
        ("exponential", BY_STEPS, {1: 0.125, 4: 0.5, 14: 0.25, 19: 0.5 * 0.5**1.5, 24: 0.125}),
        ("multistep", {"gamma": 0.1, "milestones": (10,)}, {10: 0.5, 11: 0.05}),
        ("NoamLR", IN_STEPS, {9: 0.5 / 3, 16: 0.5 / 4 * 0.3, 25: 0.5 / 5 * 0.09}),
    ],
)
def test_rates_are_those_of_the_schedule(scheduler, keys, rates):
    found = [rate(update, 3, scheduler=scheduler, **keys) for update in rates]
    assert found == pytest.approx([*rates.values()])


@pytest.mark.parametrize(
    "scheduler",
    ["NoamLR", "constant", "linear", "cosine", "polynomial", "exponential", "multistep"],
)
def test_keys_that_a_schedule_reads_change_its_rates(scheduler):
    """All others, and no others, are named by `unread_keys`."""
    changes = {"num_warmup": 30, "decay_steps": 25, "end_lr": 0.2, "power": 3.0}
    changes |= {"gamma": 0.4, "milestones": (35,)}
    start = {
        "multistep": {"milestones": (12,)},
        "NoamLR": {"num_warmup": 4, "milestones": (12,)},
        "exponential": {"num_warmup": 4, "decay_steps": 20},
    }.get(scheduler, {"num_warmup": 4})
    before = [rate(update, scheduler=scheduler, **start) for update in (7, 20, 40, 60)]
    for key, value in changes.items():
        options = start | {key: value}
        after = [rate(update, scheduler=scheduler, **options) for update in (7, 20, 40, 60)]
        schedule = ScheduleConfig(**options)
        config = train_config(adam=AdamConfig(lr=0.5), scheduler=scheduler, lr_scheduler=schedule)
        assert (after == before) == (f"train.lr_scheduler.{key}" in config.unread_keys), key


def make_network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def change(network, step):
    with torch.no_grad():
        for tensor in network.state_dict().values():
            tensor.add_(step) if tensor.is_floating_point() else tensor.fill_(step)


def test_the_average_follows_weights_and_buffers_with_its_decay_after_a_warm_up():
    network = make_network()
    expected = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    average = WeightAverage(network, decay=0.25)
    for step, kept in ((1, 2 / 11), (2, 0.25), (3, 0.25)):  # 3 / 12 after two updates
        change(network, step)
        average.update(step)
        for name, tensor in network.state_dict().items():
            if tensor.is_floating_point():
                expected[name] = kept * expected[name] + (1 - kept) * tensor
            else:
                expected[name] = tensor.clone()
    found = average.state_dict()
    assert found.keys() == expected.keys()
    assert found["1.num_batches_tracked"] == 3
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor)


def initial_shares(n_updates, **options):
    """The share of the initial weights in the average after each update."""
    layer = nn.Linear(1, 1)
    nn.init.ones_(layer.weight)
    average = WeightAverage(layer, **options)
    nn.init.zeros_(layer.weight)
    for n in range(1, n_updates + 1):
        average.update(n)
        yield average.state_dict()["weight"].item()


def test_the_average_forgets_the_initial_weights_long_before_a_thousand_updates():
    shares = list(initial_shares(500, decay=0.999))
    assert shares[0] == pytest.approx(2 / 11)
    assert shares[9] == pytest.approx(math.prod((1 + n) / (10 + n) for n in range(1, 11)))
    assert shares[9] < 1e-4
    assert shares[-1] < 1e-15  # 0.61 without a warm-up
    *_, without_warmup = initial_shares(100, decay=0.99, warmup=False)
    assert without_warmup == pytest.approx(0.99**100, rel=1e-4)


def test_the_network_has_the_average_within_a_block_and_its_own_weights_afterwards():
    network = make_network()
    average = WeightAverage(network, decay=0.5)
    change(network, 1)
    average.update(8)  # 9 / 18: its decay
    own = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    with average.in_network():
        assert torch.equal(network[0].weight, average.state_dict()["0.weight"])
        network[1].running_mean.fill_(9)
    assert all(torch.equal(own[name], t) for name, t in network.state_dict().items())
    assert torch.equal(average.state_dict()["0.weight"], own["0.weight"] - 0.5)
    assert not (average.state_dict()["1.running_mean"] == 9).any()


def test_a_restored_average_continues():
    network = make_network()
    first, second = (WeightAverage(network, decay=0.9) for _ in range(2))
    change(network, 1)
    first.update(1)
    second.load_state_dict({name: t.clone() for name, t in first.state_dict().items()})
    for average in (first, second):
        average.update(2)
    assert all(torch.equal(first.state_dict()[n], t) for n, t in second.state_dict().items())


def test_the_average_of_another_network_is_refused():
    average = WeightAverage(make_network(), decay=0.9)
    with pytest.raises(ValueError, match=r"missing: 1\.weight.* shape: 0\.weight \(4, 2\)"):
        average.load_state_dict(nn.Sequential(nn.Linear(2, 4)).state_dict())
