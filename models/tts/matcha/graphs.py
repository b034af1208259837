"""Matcha as a graph for ONNX: encoder and mean mel, then a loop over the steps of the flow."""

from typing import cast

import torch
from torch import Tensor, nn

from models.base.graphs import EXAMPLE_LENGTH, Graph, Graphs, Loop, feed_forward_graphs
from models.tts.matcha.config import FRAMES_AT_ONCE
from models.tts.matcha.network import Matcha
from models.tts.matcha.unet import FrameMasks


class Start(nn.Module):
    """What comes before the first step; frames of the U-Net are in fours."""

    def __init__(self, network: Matcha) -> None:
        super().__init__()
        self.network = network

    def forward(self, phone_ids: Tensor, speaker_id: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        """Computes the mean mel (1, M, T), durations, and (1, T' / 4, 4, M or C): where it starts.

        Args:
            phone_ids: (1, N).
            speaker_id: (1,).
            values: Factors on the durations, (1, N), temperature and seed, (1,) each.
        """
        lengths, (duration, temperature, seed) = torch.full((1,), phone_ids.shape[1]), values
        start = self.network.start(
            phone_ids, lengths, speaker_id, None, duration, None, None, seed, temperature
        )
        mel = self.network.finished(start.mean, start.durations.sum(dim=1))
        fours = (part.unflatten(1, (-1, FRAMES_AT_ONCE)) for part in start[2:])
        return mel, start.durations, *fours


class Step(nn.Module):
    """One step of Euler's method, and the mel of where it ends."""

    def __init__(self, network: Matcha) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, step: Tensor, durations: Tensor, point: Tensor, condition: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Follows the flow: (), (1, N), (1, T' / 4, 4, M or C) -> next point, mel (1, M, T)."""
        scaled, n_steps = point.flatten(1, 2), self.network.config.steps
        mel_lengths = durations.sum(dim=1)
        masks = FrameMasks.of_lengths(mel_lengths, scaled.shape[1])
        times = step.float().view(1) / n_steps
        velocity = self.network.unet(scaled, masks, condition.flatten(1, 2), times)
        scaled = scaled + cast("Tensor", velocity) / n_steps
        mel = self.network.finished(scaled, mel_lengths)
        return scaled.unflatten(1, (-1, FRAMES_AT_ONCE)), mel


def matcha_graphs(network: Matcha) -> Graphs:
    """Makes the graph "acoustic": as that of `feed_forward_graphs`, with the steps as a loop."""
    acoustic = feed_forward_graphs(network)["acoustic"]
    fours = torch.ones(1, EXAMPLE_LENGTH, FRAMES_AT_ONCE, 1)
    inputs = {
        "step": torch.tensor(0),
        "durations": acoustic.inputs["phone_ids"],
        "point": fours.repeat(1, 1, 1, network.n_mels),
        "condition": fours.repeat(1, 1, 1, network.unet.n_inputs - network.n_mels),
    }
    lengths = {"durations": {1: "n_phones"}, "point": {1: "n_fours"}, "condition": {1: "n_fours"}}
    step = Graph(Step(network), inputs, ("next_point", "next_mel"), lengths)
    return {
        "acoustic": acoustic._replace(
            module=Start(network),
            outputs=(*acoustic.outputs, "point", "condition"),
            loop=Loop(step, network.config.steps, acoustic.outputs),
        )
    }
