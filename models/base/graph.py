"""What a model file tells the exporter: its network as functions of named tensors."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor, nn


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
EXAMPLE_LENGTH = 400  # of phones and frames: several windows of Griffin-Lim


def vocoder_graphs(module: nn.Module, n_mels: int) -> Graphs:
    """The graph "vocoder" of a module that turns a mel (1, M, T) into a wav (1, T * hop_length)."""
    inputs = {"mel": torch.zeros(1, n_mels, EXAMPLE_LENGTH)}
    return {"vocoder": Graph(module, inputs, ("wav",), {"mel": {2: "n_frames"}})}
