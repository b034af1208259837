import pytest
import torch
from torch import nn

from modules.execution.prepared import packed
from modules.layers.basic import length_mask
from modules.layers.postnet import MaskedBatchNorm, PostNet


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(3, 8, 4) * 2 + 1, length_mask(torch.tensor([8, 3, 6]))


def test_batch_norm_takes_the_statistics_that_pytorch_takes_of_the_valid_frames():
    frames, mask = batch()
    norm, reference = MaskedBatchNorm(4), nn.BatchNorm1d(4)
    expected = reference(frames[mask])
    torch.testing.assert_close(norm(frames, mask)[mask], expected)
    torch.testing.assert_close(norm.running_mean, reference.running_mean)
    torch.testing.assert_close(norm.running_var, reference.running_var)
    torch.testing.assert_close(norm.eval()(frames, mask)[mask], reference.eval()(frames[mask]))
    assert list(norm.state_dict()) == list(reference.state_dict())
    torch.testing.assert_close(norm.state_dict(), reference.state_dict())


def test_more_padding_changes_neither_the_result_nor_the_statistics_in_training():
    frames, mask = batch()
    padded = torch.cat([frames, torch.full((3, 5, 4), 7.0)], dim=1)
    postnets, results = [], []
    for mel, mel_mask in ((frames, mask), (padded, length_mask(mask.sum(dim=1), 13))):
        torch.manual_seed(1)
        postnet = PostNet(4, channels=6, kernel_size=3, n_layers=3, dropout=0.0).train()
        results.append(postnet(mel, mel_mask)[:, :8][mask])
        postnets.append(postnet)
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(postnets[0].state_dict(), postnets[1].state_dict())


def test_postnet_adds_to_the_mel():
    frames, mask = batch()
    postnet = PostNet(4, channels=6, kernel_size=3, n_layers=2).eval()
    for norm in postnet.norms:
        nn.init.zeros_(norm.weight)
    torch.testing.assert_close(postnet(frames, mask), frames)


@pytest.mark.parametrize("prepare", [lambda network: network, packed], ids=["plain", "prepared"])
def test_a_centred_postnet_reads_the_mel_less_its_means(prepare):
    torch.manual_seed(0)
    sizes = {"channels": 6, "kernel_size": 3, "n_layers": 2}
    plain, centred = PostNet(4, **sizes).eval(), PostNet(4, **sizes, centred=True).eval()
    means = torch.tensor([-5.0, -4, -3, -2])
    centred.load_state_dict({**plain.state_dict(), "centre": means})
    mel, mask = torch.randn(1, 7, 4), torch.arange(7)[None] < 5
    network = prepare(nn.ModuleDict({"postnet": centred}))["postnet"]
    with torch.no_grad():
        torch.testing.assert_close(network(mel + means, mask), plain(mel, mask) + means)
