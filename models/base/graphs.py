"""Networks as graphs for ONNX: modules with examples of their inputs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

EXAMPLE_LENGTH = 400  # of phones and frames: several windows of Griffin-Lim


class Graph(NamedTuple):
    """A module whose `forward` takes tensors in the order of `inputs` and returns `outputs`."""

    module: nn.Module
    inputs: Mapping[str, Tensor]  # examples, by name
    outputs: tuple[str, ...]
    # inputs, and outputs of other lengths: the dimension that varies, and the name of the length
    lengths: Mapping[str, Mapping[int, str]]
    # inputs that may also have the length 1, for all positions; with the one whose shape they get
    broadcast: Mapping[str, str] = MappingProxyType({})


# by name of the file. An acoustic model has "acoustic", a vocoder "vocoder"; others have several
Graphs = Mapping[str, Graph]


def vocoder_graphs(module: nn.Module, n_mels: int) -> Graphs:
    """Makes the graph "vocoder" of a module: mel (1, M, T) -> wav (1, T * hop_length)."""
    inputs = {"mel": torch.zeros(1, n_mels, EXAMPLE_LENGTH)}
    return {"vocoder": Graph(module, inputs, ("wav",), {"mel": {2: "n_frames"}})}


class FeedForward(nn.Module):
    """Phones to mel, with more arguments of `infer`, by name."""

    def __init__(self, network: nn.Module, arguments: tuple[str, ...]) -> None:
        super().__init__()
        self.network, self.arguments = network, arguments

    def forward(self, phone_ids: Tensor, speaker_id: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        """Synthesises one item: (1, N), (1,), arguments -> (1, M, T), durations (1, N)."""
        arguments = dict(zip(self.arguments, values, strict=True))
        infer = cast("Any", self.network).infer
        lengths = torch.full((1,), phone_ids.shape[1])
        output = infer(phone_ids, lengths, speaker_ids=speaker_id, **arguments)
        return output.mel, output.durations


def feed_forward_graphs(network: Any) -> Graphs:  # noqa: ANN401  # a network with `controls`
    """Makes the graph "acoustic" of a network, with those factors that the network has.

    That of a flow has temperature and seed of its noise, (1,) each; steps are the configuration's.
    """
    factors = [name for name in ("duration", "pitch", "energy") if name in network.controls]
    arguments = tuple(f"{name}_control" for name in factors)
    phone_ids = torch.ones(1, EXAMPLE_LENGTH, dtype=torch.int64)
    inputs = {"phone_ids": phone_ids, "speaker_id": torch.zeros(1, dtype=torch.int64)}
    inputs |= {name: torch.ones(1, EXAMPLE_LENGTH) for name in factors}
    if "temperature" in network.controls:
        inputs |= {"temperature": torch.ones(1), "seed": torch.zeros(1, dtype=torch.int64)}
        arguments += ("temperature", "seed")
    lengths = {name: {1: "n_phones"} for name in ("phone_ids", *factors)}
    lengths["mel"] = {2: "n_frames"}
    module, shapes = FeedForward(network, arguments), dict.fromkeys(factors, "phone_ids")
    return {"acoustic": Graph(module, inputs, ("mel", "durations"), lengths, shapes)}
