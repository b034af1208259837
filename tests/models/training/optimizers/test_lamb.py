import math

import pytest
import torch
from torch import nn

from models.training.optimizers.lamb import Lamb

SETTINGS = {
    "lr": 0.02,
    "betas": (0.9, 0.98),
    "eps": 1e-9,
    "weight_decay": 1e-2,
    "max_grad_norm": 1.0,
}


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


def test_a_tensor_whose_update_is_zero_stays():
    (parameter,) = parameters_of((3,))
    parameter.grad = torch.zeros_like(parameter)
    before = parameter.detach().clone()
    Lamb([parameter], **SETTINGS | {"weight_decay": 0.0}).step()

    assert torch.equal(parameter, before)


def test_a_parameter_without_a_gradient_stays():
    trained, idle = parameters_of((3,), (3,))
    before = idle.detach().clone()
    optimizer = Lamb([trained, idle], **SETTINGS)
    optimizer.step()
    trained.grad = torch.ones_like(trained)
    optimizer.step()

    assert torch.equal(idle, before)
    assert set(optimizer.state) == {trained}


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
