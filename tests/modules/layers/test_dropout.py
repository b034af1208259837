import pytest
import torch

from modules.layers.dropout import Dropout, drop


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.9])
def test_zeroes_the_share_and_keeps_the_mean(share):
    torch.manual_seed(0)
    values = drop(torch.ones(1_000_000), share)
    assert (values == 0).float().mean().item() == pytest.approx(share, abs=0.002)
    assert values.mean().item() == pytest.approx(1, abs=0.01)
    assert values.unique().numel() == 2


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 3, 4)])
def test_any_number_of_values_is_dropped_one_by_one(shape):
    torch.manual_seed(0)
    kept = torch.stack([drop(torch.ones(shape), 0.5) > 0 for _ in range(4000)]).float()
    assert kept.shape[1:] == shape
    assert (kept.mean(dim=0) - 0.5).abs().max() < 0.05
    correlations = torch.atleast_2d(torch.corrcoef(kept.flatten(1).T))
    assert (correlations - torch.eye(len(correlations))).abs().max() < 0.1


def test_gradients_pass_where_values_are_kept():
    torch.manual_seed(0)
    values = torch.randn(100, dtype=torch.bfloat16, requires_grad=True)
    dropped = drop(values, 0.2)
    dropped.sum().backward()
    assert dropped.dtype == torch.bfloat16
    assert torch.equal(values.grad, torch.where(dropped == 0, 0.0, 1.25).bfloat16())


def test_the_global_generator_decides():
    state = torch.get_rng_state()
    first = drop(torch.ones(100), 0.5)
    assert not torch.equal(drop(torch.ones(100), 0.5), first)
    torch.set_rng_state(state)
    assert torch.equal(drop(torch.ones(100), 0.5), first)


def test_almost_all_may_be_dropped():
    assert torch.isfinite(drop(torch.ones(1000), 1 - 1e-9)).all()


def test_nothing_is_dropped_in_eval_mode():
    layer, values = Dropout(0.5), torch.randn(50)
    assert not torch.equal(layer(values), values)
    assert torch.equal(layer.eval()(values), values)
