import torch
from torch import nn

from models.tts.tacotron2.config import DecoderConfig
from models.tts.tacotron2.decoder import LocationAttention, StepLinear, StepMixture, lstm_state

SIZES = DecoderConfig(
    attention_lstm_size=5, attention_size=3, location_filters=2, location_kernel_size=3
)


def test_attention_weighs_by_query_keys_and_location_and_padding_changes_nothing():
    torch.manual_seed(0)
    attention = LocationAttention(SIZES, 4)
    state, memory, past = torch.randn(1, 5), torch.randn(1, 6, 4), torch.rand(1, 2, 6)
    energies = []
    for n in range(6):
        window = torch.zeros(2, 3)
        for offset in (-1, 0, 1):
            if 0 <= n + offset < 6:
                window[:, offset + 1] = past[0, :, n + offset]
        features = (attention.location_conv.weight * window).sum(dim=(1, 2))  # (2,)
        inner = attention.query.weight @ state[0] + attention.key.weight @ memory[0, n]
        inner = inner + attention.location.weight @ features
        energies.append(attention.energy.weight[0] @ torch.tanh(inner))
    kernel, everything = attention.location_kernel(), torch.ones(1, 6, dtype=torch.bool)
    weights = attention(state, attention.key(memory), past, kernel, everything)
    torch.testing.assert_close(weights[0], torch.stack(energies).softmax(dim=0))
    past[:, :, 4:] = 0  # weights of padding
    mask = torch.arange(6)[None] < 4
    padded = attention(state, attention.key(memory), past, kernel, mask)
    alone = attention(state, attention.key(memory[:, :4]), past[:, :, :4], kernel, mask[:, :4])
    assert padded[0, 4:].tolist() == [0, 0]
    torch.testing.assert_close(padded[:, :4], alone)


B, T, N, H = 2, 5, 4, 3


def test_a_linear_map_in_a_loop_gets_the_gradients_that_autograd_finds():
    torch.manual_seed(0)
    tensors = torch.randn(H, H), torch.randn(T, B, H)

    def gradients(deferred: bool) -> tuple[torch.Tensor, torch.Tensor]:
        own_weight, own_offsets = (tensor.clone().requires_grad_() for tensor in tensors)
        step = StepLinear(own_weight)
        bound = step.bind(own_offsets) if deferred else own_offsets
        state, states = torch.zeros(B, H), []
        for offset in bound:
            product = step(state) if deferred else state @ own_weight.T
            state = torch.tanh(offset + product)
            states.append(state)
        torch.stack(states).square().sum().backward()
        return own_weight.grad, own_offsets.grad

    torch.testing.assert_close(gradients(deferred=True), gradients(deferred=False))


def test_a_linear_map_in_bfloat16_gets_nearly_the_gradients_of_float32():
    torch.manual_seed(0)
    weight, offsets = torch.randn(64, 64) / 8, torch.randn(T, B, 64)

    def gradients(dtype: torch.dtype) -> list[torch.Tensor]:
        own_weight, own_offsets = weight.clone().requires_grad_(), offsets.clone().requires_grad_()
        step = StepLinear(own_weight, dtype)
        state, total = torch.zeros(B, 64), torch.zeros(())
        for offset in step.bind(own_offsets):
            state = torch.tanh(offset + step(state))
            total = total + state.square().sum()
        total.backward()
        assert own_weight.grad.dtype == own_offsets.grad.dtype == torch.float32
        return [own_weight.grad, own_offsets.grad]

    for half, exact in zip(gradients(torch.bfloat16), gradients(torch.float32), strict=True):
        assert not torch.equal(half, exact)
        assert (half - exact).norm() < 0.02 * exact.norm()


def test_a_mixture_in_a_loop_gets_the_gradients_that_autograd_finds():
    torch.manual_seed(0)
    queries, values = torch.randn(T, B, N), torch.randn(B, N, H)
    memory, plain = (values.clone().requires_grad_() for _ in range(2))
    mixture = StepMixture(memory)
    steps = zip(mixture.bind(T), queries, strict=True)
    mixed = [zeros + mixture(q.softmax(1)) for zeros, q in steps]
    expected = [(q.softmax(1)[:, :, None] * plain).sum(dim=1) for q in queries]
    torch.testing.assert_close(mixed, expected)
    for outputs in (mixed, expected):
        torch.stack(outputs).pow(3).sum().backward()
    torch.testing.assert_close(memory.grad, plain.grad)


def test_the_state_of_an_lstm_is_that_of_torch():
    torch.manual_seed(0)
    cell = nn.LSTMCell(H, 4)
    inputs, hidden, memory = torch.randn(B, H), torch.randn(B, 4), torch.randn(B, 4)
    gates = inputs @ cell.weight_ih.T + hidden @ cell.weight_hh.T + cell.bias_ih + cell.bias_hh
    torch.testing.assert_close(lstm_state(gates, memory), cell(inputs, (hidden, memory)))
