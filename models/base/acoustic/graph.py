"""The graph of acoustic models that read all phones at once and predict durations."""

from typing import Any, cast

import torch
from torch import Tensor, nn

from models.base.acoustic.output import TtsOutput
from models.base.graph import EXAMPLE_LENGTH, Graph, Graphs

_FACTORS = ("duration", "pitch", "energy")


class FeedForward(nn.Module):
    """Phones to mel, with factors on durations, pitch and energy.

    Args:
        network: Its `infer` takes a control for each of `factors`.
        factors: Names of controls.
    """

    def __init__(self, network: nn.Module, factors: tuple[str, ...]) -> None:
        super().__init__()
        self.network = network
        self.factors = factors

    def forward(
        self, phone_ids: Tensor, speaker_id: Tensor, *factors: Tensor
    ) -> tuple[Tensor, ...]:
        """Synthesises one item: (1, N), (1,), factors (1, N) -> (1, M, T), durations (1, N)."""
        infer = cast("Any", self.network).infer
        names = (f"{factor}_control" for factor in self.factors)
        output: TtsOutput = infer(
            phone_ids,
            torch.full((1,), phone_ids.shape[1]),
            speaker_ids=speaker_id,
            **dict(zip(names, factors, strict=True)),
        )
        return output.mel, output.durations


def feed_forward_graphs(network: Any) -> Graphs:  # noqa: ANN401  # a network with `controls`
    """The graph "acoustic" of a network, with those factors that the network has."""
    factors = tuple(name for name in _FACTORS if name in network.controls)
    phone_ids = torch.ones(1, EXAMPLE_LENGTH, dtype=torch.int64)
    inputs = {"phone_ids": phone_ids, "speaker_id": torch.zeros(1, dtype=torch.int64)}
    inputs |= {name: torch.ones(1, EXAMPLE_LENGTH) for name in factors}
    lengths = {name: {1: "n_phones"} for name in ("phone_ids", *factors)}
    lengths["mel"] = {2: "n_frames"}
    outputs, shapes = ("mel", "durations"), dict.fromkeys(factors, "phone_ids")
    return {"acoustic": Graph(FeedForward(network, factors), inputs, outputs, lengths, shapes)}
