import torch
from torch.nn import functional as F

from modules.layers.basic import ConvNeXtBlock


def test_a_block_computes_the_layers_of_the_paper():
    torch.manual_seed(0)
    block, frames = ConvNeXtBlock(8, 12, 7, scale=0.5, eps=1e-6), torch.randn(2, 10, 8)
    conv = F.conv1d(frames.mT, block.conv.weight, block.conv.bias, padding=3, groups=8).mT
    normal = (conv - conv.mean(2, keepdim=True)) / (conv.var(2, False, keepdim=True) + 1e-6).sqrt()
    inner = F.gelu(normal @ block.up.weight.T + block.up.bias)
    expected = frames + 0.5 * (inner @ block.down.weight.T + block.down.bias)
    assert torch.allclose(block(frames), expected, atol=1e-5)
