import math

import pytest
import torch
from torch import nn

from modules.masking import length_mask
from modules.transformer import FFTBlock, FFTStack, SelfAttention, sinusoids


def test_positions_are_the_papers():
    table = sinusoids(1001, 8)
    for position, column in ((0, 0), (0, 1), (3, 4), (49, 7), (1000, 1), (1000, 2)):
        angle = position / 10000 ** (2 * (column // 2) / 8)
        expected = math.sin(angle) if column % 2 == 0 else math.cos(angle)
        assert table[position, column] == pytest.approx(expected, abs=1e-7)


def test_attention_is_pytorchs():
    torch.manual_seed(0)
    attention = SelfAttention(hidden=8, heads=2)
    reference = nn.MultiheadAttention(8, 2, batch_first=True)
    reference.in_proj_weight.data = attention.qkv.weight.data
    reference.in_proj_bias.data = attention.qkv.bias.data
    reference.out_proj.weight.data = attention.fc.weight.data
    reference.out_proj.bias.data = attention.fc.bias.data
    frames, mask = torch.randn(2, 6, 8), length_mask(torch.tensor([6, 4]))
    expected, _ = reference(frames, frames, frames, key_padding_mask=~mask)
    torch.testing.assert_close(attention(frames, mask), expected)


def test_block_normalises_after_each_residual():
    torch.manual_seed(0)
    block = FFTBlock(SelfAttention(8, 2), 8, 16, kernel_size=(3, 1), dropout=0.0)
    frames, mask = torch.randn(1, 5, 8), torch.ones(1, 5, dtype=torch.bool)
    middle = block.attention_norm(frames + block.attention(frames, mask))
    expected = block.conv_norm(middle + block.conv_2(block.conv_1(middle).relu()))
    torch.testing.assert_close(block(frames, mask), expected)


def stack(max_length: int, **options) -> FFTStack:
    torch.manual_seed(0)
    blocks = (FFTBlock(SelfAttention(8, 2), 8, 16, (3, 3), 0.0) for _ in range(2))
    return FFTStack(blocks, 8, max_length=max_length, **options)


def test_more_padding_does_not_change_valid_frames():
    frames = torch.randn(2, 9, 8)
    lengths = torch.tensor([5, 9])
    padded = torch.cat([frames, torch.full((2, 4, 8), 1e3)], dim=1)
    short = stack(20)(frames, length_mask(lengths))
    long = stack(20)(padded, length_mask(lengths, 13))
    torch.testing.assert_close(long[:, :9], short)
    assert (long[:, 9:] == 0).all()
    assert (short[0, 5:] == 0).all()


def test_stored_positions_do_not_limit_the_length():
    frames, mask = torch.randn(1, 30, 8), torch.ones(1, 30, dtype=torch.bool)
    torch.testing.assert_close(stack(10)(frames, mask), stack(100)(frames, mask))


def test_positions_are_part_of_the_weights_only_when_they_are_stored():
    assert "positions" not in stack(10).state_dict()
    assert stack(10, stored_positions=True).state_dict()["positions"].shape == (10, 8)


def test_heads_must_divide_the_hidden_size():
    with pytest.raises(ValueError, match="8 is not a multiple of 3 heads"):
        SelfAttention(8, 3)
