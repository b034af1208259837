import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from modules.layers import transformer
from modules.layers.basic import length_mask
from modules.layers.transformer import FFTBlock, FFTStack, SelfAttention, matrix_attention


def test_positions_are_the_papers():
    table = transformer.sinusoids(1001, 8)
    for position, column in ((0, 0), (0, 1), (3, 4), (49, 7), (1000, 1), (1000, 2)):
        angle = position / 10000 ** (2 * (column // 2) / 8)
        expected = math.sin(angle) if column % 2 == 0 else math.cos(angle)
        assert table[position, column] == pytest.approx(expected, abs=1e-7)
    ordered = transformer.sinusoids(1001, 8, order="sines_first")
    assert torch.equal(ordered, torch.cat([table[:, ::2], table[:, 1::2]], dim=1))


def test_attention_is_pytorchs():
    torch.manual_seed(0)
    attention, reference = SelfAttention(8, 2), nn.MultiheadAttention(8, 2, batch_first=True)
    (weight, bias), output = attention.qkv.parameters(), attention.fc.state_dict()
    projection = {"in_proj_weight": weight, "in_proj_bias": bias}
    reference.load_state_dict(projection | {f"out_proj.{name}": output[name] for name in output})
    frames, mask = torch.randn(2, 6, 8), length_mask(torch.tensor([6, 4]))
    expected, _ = reference(frames, frames, frames, key_padding_mask=~mask)
    torch.testing.assert_close(attention(frames, mask), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_attention_by_matrices_has_the_values_and_gradients_of_the_kernel(dtype):
    torch.manual_seed(0)
    inputs = [torch.randn(2, 3, 7, 4, dtype=torch.float64) for _ in range(3)]  # (B, heads, T, D)
    mask = length_mask(torch.tensor([7, 4]))[:, None, None, :]
    direction = torch.randn(2, 3, 7, 4, dtype=torch.float64)

    def results(attend, dtype):
        given = [tensor.to(dtype).requires_grad_() for tensor in inputs]
        context = attend(*given, mask)
        gradients = torch.autograd.grad((context * direction).sum(), given)
        return [context, *gradients]

    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.1}[dtype]
    expected = results(F.scaled_dot_product_attention, torch.float64)
    for found, exact in zip(results(matrix_attention, dtype), expected, strict=True):
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), exact, rtol=0, atol=tolerance)


def test_attention_drops_in_training_only_and_in_bf16_on_a_cpu_is_computed_by_matrices(monkeypatch):
    calls = []

    def spy(*arguments):
        calls.append(arguments[0].dtype)
        return matrix_attention(*arguments)

    monkeypatch.setattr("modules.layers.transformer.matrix_attention", spy)
    attention = SelfAttention(hidden=8, heads=2, dropout=0.5)
    frames, mask = torch.randn(2, 6, 8), length_mask(torch.tensor([6, 4]))
    assert not torch.equal(attention(frames, mask), attention(frames, mask))
    assert calls == []
    with torch.autocast("cpu", dtype=torch.bfloat16):
        dropped = attention(frames, mask)
        with torch.no_grad():
            kept = attention.eval()(frames, mask)
    assert calls == [torch.bfloat16] * 2
    assert not torch.allclose(dropped, kept)
    assert torch.equal(attention(frames, mask), attention(frames, mask))
    torch.testing.assert_close(kept.float(), attention(frames, mask), rtol=0, atol=0.02)


@pytest.mark.parametrize("heads", [1, 3])
def test_heads_of_any_size_that_is_given_attend_each_for_itself(heads):
    with pytest.raises(ValueError, match="8 is not a multiple of 3 heads"):
        SelfAttention(8, 3)
    torch.manual_seed(0)
    attention = SelfAttention(8, heads, head_size=5, output_bias=False)
    frames, valid = torch.randn(1, 6, 8), 4
    mask = length_mask(torch.tensor([valid]), 6)
    attended = []
    for head in range(heads):
        rows = [slice(k * heads * 5 + head * 5, k * heads * 5 + head * 5 + 5) for k in range(3)]
        q, k, v = (
            frames[0] @ attention.qkv.weight[part].T + attention.qkv.bias[part] for part in rows
        )
        attended.append(torch.softmax(q @ k[:valid].T / 5**0.5, dim=1) @ v[:valid])
    expected = torch.cat(attended, dim=1) @ attention.fc.weight.T
    torch.testing.assert_close(attention(frames, mask)[0], expected)
    assert attention.fc.bias is None


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


def test_stored_positions_are_part_of_the_weights_and_do_not_limit_the_length():
    frames, mask = torch.randn(1, 30, 8), torch.ones(1, 30, dtype=torch.bool)
    torch.testing.assert_close(stack(10)(frames, mask), stack(100)(frames, mask))
    assert "positions" not in stack(10).state_dict()
    assert stack(10, stored_positions=True).state_dict()["positions"].shape == (10, 8)
