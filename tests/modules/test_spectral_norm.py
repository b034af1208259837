import torch
from torch import nn
from torch.nn.utils import parametrizations

from modules.spectral_norm import refine_norms, spectral_norm


def conv() -> nn.Conv1d:
    torch.manual_seed(1)
    return nn.Conv1d(4, 6, 5, groups=2)


def largest_singular_value(weight):
    return torch.linalg.svdvals(weight.detach().flatten(1))[0].item()


def test_the_largest_singular_value_becomes_one():
    layer = spectral_norm(conv())
    assert abs(largest_singular_value(layer.weight) - 1) < 0.01  # from the start
    for _ in range(200):
        refine_norms(layer)

    assert abs(largest_singular_value(layer.weight) - 1) < 1e-6
    assert largest_singular_value(layer.parametrizations.weight.original) < 0.9


def test_it_is_that_of_torch_between_updates_and_stores_the_same_names():
    ours, theirs = spectral_norm(conv()), parametrizations.spectral_norm(conv()).eval()
    ours.load_state_dict(theirs.state_dict())
    wav = torch.randn(2, 4, 20)
    gradients = [
        torch.autograd.grad(layer(wav).square().sum(), list(layer.parameters()))
        for layer in (ours, theirs)
    ]

    assert torch.allclose(ours(wav), theirs(wav), atol=1e-6)
    for own, other in zip(*gradients, strict=True):
        assert torch.allclose(own, other, rtol=1e-4, atol=1e-6)


def test_the_iterations_of_torch_and_ours_are_the_same():
    ours, theirs = spectral_norm(conv()), parametrizations.spectral_norm(conv())
    ours.load_state_dict(theirs.state_dict())
    refine_norms(ours)
    theirs.train().weight  # noqa: B018  (reading it iterates once)

    for name, buffer in theirs.named_buffers():
        assert torch.allclose(ours.get_buffer(name), buffer, atol=1e-6), name


def test_a_forward_pass_leaves_the_norm_alone():
    layer = spectral_norm(conv()).train()
    before = {name: buffer.clone() for name, buffer in layer.named_buffers()}
    layer(torch.randn(1, 4, 20))

    assert len(before) == 2
    assert all(torch.equal(layer.get_buffer(name), buffer) for name, buffer in before.items())


def test_an_iteration_before_the_backward_pass_does_not_change_its_gradients():
    layer, wav = spectral_norm(conv()), torch.randn(1, 4, 20)
    weight = layer.parametrizations.weight.original
    (expected,) = torch.autograd.grad(layer(wav).square().sum(), [weight])
    loss = layer(wav).square().sum()
    for _ in range(5):
        refine_norms(layer)

    assert torch.equal(torch.autograd.grad(loss, [weight])[0], expected)


def test_the_norm_follows_the_weight_after_an_update():
    layer = spectral_norm(conv())
    with torch.no_grad():
        layer.parametrizations.weight.original.mul_(3).add_(0.1)
    off = abs(largest_singular_value(layer.weight) - 1)
    for _ in range(20):
        refine_norms(layer)

    assert abs(largest_singular_value(layer.weight) - 1) < 1e-3 < off


def test_half_precision_leaves_the_norm_whole():
    layer = spectral_norm(conv())
    with torch.autocast("cpu", torch.bfloat16):
        weight = layer.weight

    assert weight.dtype == torch.float32
    assert torch.equal(weight, layer.weight)
