import pytest
import torch
from torch import nn

from models.training.optimizers.averaging import WeightAverage


def make_network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def change(network, step):
    with torch.no_grad():
        for tensor in network.state_dict().values():
            tensor.add_(step) if tensor.is_floating_point() else tensor.fill_(step)


def test_the_average_follows_weights_and_buffers_from_the_initial_ones_on():
    network = make_network()
    expected = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    average = WeightAverage(network, decay=0.75)
    for step in (1, 2, 3):
        change(network, step)
        average.update()
        for name, tensor in network.state_dict().items():
            if tensor.is_floating_point():
                expected[name] = 0.75 * expected[name] + 0.25 * tensor
            else:
                expected[name] = tensor.clone()

    found = average.state_dict()
    assert found.keys() == expected.keys()
    assert found["1.num_batches_tracked"] == 3
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor)


def test_the_network_has_the_average_within_a_block_and_its_own_weights_afterwards():
    network = make_network()
    average = WeightAverage(network, decay=0.5)
    change(network, 1)
    average.update()
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
    first.update()
    second.load_state_dict({name: t.clone() for name, t in first.state_dict().items()})
    for average in (first, second):
        average.update()

    assert all(torch.equal(first.state_dict()[n], t) for n, t in second.state_dict().items())


def test_the_average_of_another_network_is_refused():
    average = WeightAverage(make_network(), decay=0.9)

    with pytest.raises(ValueError, match=r"missing: 1\.weight.* shape: 0\.weight \(4, 2\)"):
        average.load_state_dict(nn.Sequential(nn.Linear(2, 4)).state_dict())
