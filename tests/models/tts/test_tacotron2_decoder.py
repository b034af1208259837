import torch

from models.tts.tacotron2.config import DecoderConfig
from models.tts.tacotron2.decoder import LocationAttention

SIZES = DecoderConfig(
    attention_lstm_size=5, attention_size=3, location_filters=2, location_kernel_size=3
)


def test_attention_weighs_by_query_keys_and_location():
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
    weights = attention(
        state,
        attention.key(memory),
        past,
        attention.location_kernel(),
        torch.ones(1, 6, dtype=torch.bool),
    )
    torch.testing.assert_close(weights[0], torch.stack(energies).softmax(dim=0))
