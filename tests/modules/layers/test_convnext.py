import torch
from torch.nn import functional as F

from modules.execution.prepared import packed
from modules.layers.convnext import ConvNeXtBlock


def make_block() -> ConvNeXtBlock:
    torch.manual_seed(0)
    return ConvNeXtBlock(8, 12, 7, scale=0.5, eps=1e-6)


def test_a_block_computes_the_layers_of_the_paper():
    block, frames = make_block(), torch.randn(2, 10, 8)
    conv = F.conv1d(frames.mT, block.conv.weight, block.conv.bias, padding=3, groups=8).mT
    normal = (conv - conv.mean(2, keepdim=True)) / (conv.var(2, False, keepdim=True) + 1e-6).sqrt()
    inner = F.gelu(normal @ block.up.weight.T + block.up.bias)
    expected = frames + 0.5 * (inner @ block.down.weight.T + block.down.bias)
    assert torch.allclose(block(frames), expected, atol=1e-5)


def test_padding_does_not_reach_valid_frames():
    block, frames = make_block(), torch.randn(1, 10, 8)
    mask = torch.arange(10)[None] < 6
    assert torch.allclose(block(frames, mask)[:, :6], block(frames[:, :6]), atol=1e-6)


def test_packed_it_computes_the_same():
    block, frames = make_block().eval(), torch.randn(1, 10, 8)
    with torch.no_grad():
        assert torch.allclose(packed(block)(frames), block(frames), atol=1e-5)
