"""FlowSpeech: the prosody of FastSpeech 2, and a mel by flow matching.

A regression of the mel averages over all ways to speak a text, and sounds blurred; here the mel is
drawn from their distribution. Phones, durations, pitch and energy are those of FastSpeech 2 (Ren et
al. 2021, arXiv:2006.04558) with `variance_predictor.own_encoder`; the decoder is conditional flow
matching as in Matcha-TTS (Mehta et al. 2024, arXiv:2309.03199). It departs from Matcha-TTS in that
- durations are known in training, and pitch and energy are predicted and can be controlled;
- the estimator is a stack of ConvNeXt blocks at frame rate (network.py), not a U-Net with
  attention: it costs a fifth, and long mels are computed in windows;
- the estimator also reads the hidden vectors of the frames and the ripple that the harmonics of F0
  have in the mel (modules/harmonics.py); the mean mel ("prior") is one more condition, detached
  from the flow loss;
- noise is a function of seed, phones and frame: a sentence sounds the same alone and in a batch;
  in training, noise and time are functions of the update and the phones;
- times of training are logit-normal, as in Esser et al. 2024, arXiv:2403.03206, not uniform;
- mels are scaled by fixed numbers, not by statistics of the corpus;
- synthesis takes 4 steps with noise of standard deviation 0.3 by default, not 10 with 0.667;
- a second part of the training (`model.lambda_adversarial`) trains the estimator alone, also by
  discriminators of the mels that it synthesises in these steps.
"""

from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor

from config.preprocess import PreprocessConfig
from models.base.acoustic import AcousticTask, durations_in
from models.base.adversarial import (
    BandDiscriminator,
    Discriminators,
    adversarial_losses,
    discriminator_losses,
    frozen,
)
from models.base.aligner import JointAligner
from models.base.assets import Assets
from models.base.graphs import feed_forward_graphs
from models.base.model import Model
from models.base.task import LossTerm, Update
from models.tts.flowspeech.config import FlowSpeechConfig
from models.tts.flowspeech.network import MEL_MEAN, MEL_STD, FlowOutput, FlowSpeech
from modules.layers.basic import length_mask
from modules.losses import mse_sum
from modules.variance.prosody_encoder import duration_loss_sum, pitch_loss_sum
from processors.dataset.batch import TtsBatch

_SHARES = ((0.0, 0.35), (0.25, 0.7), (0.6, 1.0))  # of the bands, from and to
_CHANNELS = 48
_LAYERS = (((5, 3), (2, 1)), ((5, 3), (2, 1)), ((3, 3), (2, 2)), ((3, 3), (1, 1)))
_SEGMENT_FRAMES = 128  # 1.5 s, of each utterance, for the discriminators


class FlowSpeechTask(AcousticTask[FlowSpeech]):
    """Training with the durations of stage 1 or learned ones, or adversarial training."""

    def __init__(
        self, network: FlowSpeech, assets: Assets, aligner: JointAligner | None = None
    ) -> None:
        super().__init__(network, assets, aligner)
        if network.config.lambda_adversarial:
            M = network.n_mels
            parts = (slice(int(low * M), int(high * M)) for low, high in _SHARES)
            self.networks["discriminator"] = Discriminators(
                BandDiscriminator(part, _CHANNELS, _LAYERS, 0.0, 1.0) for part in parts
            )  # of scaled mels, (B, 2, M, T)
            network.requires_grad_(False)
            network.estimator.requires_grad_(True)
        self._adversarial_weights = (0.0, 0.0)

    def begin_update(self, step: int) -> None:
        """Sets noise and loss weights for the update after `step` completed updates."""
        super().begin_update(step)
        config = self.network.config
        weights = (config.lambda_adversarial, config.lambda_feature)
        self._adversarial_weights = weights if step >= config.adversarial_start else (0.0, 0.0)

    def training_step(self, batch: TtsBatch) -> Iterator[Update]:
        """Yields the losses of flow (Lipman et al. 2023, eq. 23), mean mel and prosody."""
        batch = yield from self.with_durations(batch)  # the aligner's update, if there is one
        network = self.network
        mel = (batch.mel.mT - MEL_MEAN) / MEL_STD  # (B, T, M)
        drawn = network.draw(batch.phone_ids, mel.shape[1])
        output: FlowOutput = network(mel, *drawn, *network.inputs_of(batch))
        phone_mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
        frame_mask = length_mask(batch.mel_lengths, mel.shape[1])
        flow = mse_sum(output.velocity_hat, output.velocity, frame_mask)
        if output.mel_hat is not None:
            images = torch.stack([mel, output.mel_hat, output.prior], dim=1)  # (B, 3, T, M)
            starts = network.seeds(batch.phone_ids)
            segments = _segments(images, batch.mel_lengths, starts).mT  # (B, 3, M, segment)
            recorded, synthesised = segments[:, [0, 2]].detach(), segments[:, [1, 2]]
            discriminator = self.networks["discriminator"]
            losses = discriminator_losses(discriminator, recorded, synthesised.detach())
            yield Update("discriminator", losses)
            # the loss of the flow alone chooses among checkpoints
            weights = self._adversarial_weights if network.training else (0.0, 0.0)
            with frozen(discriminator):
                adversarial = adversarial_losses(discriminator, recorded, synthesised, *weights)
                yield Update("model", {"flow": LossTerm(flow, "frames")} | adversarial)
            return
        prosody, durations = output.prosody, durations_in(batch)
        pitch = prosody.contours_hat["pitch"], prosody.contours["pitch"], batch.f0, durations
        energy = prosody.contours_hat["energy"], prosody.contours["energy"], phone_mask
        duration = duration_loss_sum(prosody.log_durations_hat, durations, phone_mask)
        losses = {
            "flow": LossTerm(flow, "frames"),
            "prior": LossTerm(mse_sum(output.prior, mel, frame_mask), "frames"),
            "duration": LossTerm(duration, "phones"),
            "pitch": LossTerm(pitch_loss_sum(*pitch), "phones"),
            "energy": LossTerm(mse_sum(*energy), "phones"),
            "f0_residual": LossTerm(cast("Tensor", prosody.f0_residual_l1), "frames"),
        }
        yield Update("model", losses)


def _segments(mels: Tensor, lengths: Tensor, starts: Tensor) -> Tensor:
    """Cuts a segment of each item, (B, C, T, M) -> (B, C, _SEGMENT_FRAMES, M), zeros beyond it.

    `starts` are numbers from 0, (B,), which are reduced to the valid frames, `lengths`, (B,).
    """
    B, C, T, M = mels.shape
    first = starts % (lengths - _SEGMENT_FRAMES + 1).clamp(min=1)
    frames = first[:, None] + torch.arange(_SEGMENT_FRAMES, device=mels.device)  # (B, segment)
    chosen = frames.clamp(max=T - 1)[:, None, :, None].expand(B, C, -1, M)
    return mels.gather(2, chosen) * (frames < lengths[:, None])[:, None, :, None]


def _check(model: FlowSpeechConfig, preprocess: PreprocessConfig) -> None:
    """Refuses adversarial training with durations that are still to be learned."""
    if model.lambda_adversarial and preprocess.aligner == "learned":
        found = "trains the estimator alone, and preprocess.aligner is 'learned'"
        remedy = "import durations (docs/durations.md), or set another aligner"
        raise ValueError(f"model.lambda_adversarial {found}; {remedy}")


MODEL = Model(
    config=FlowSpeechConfig,
    network=FlowSpeech,
    task=FlowSpeechTask,
    aligner=lambda model: model.aligner,
    check=_check,
    options=("steps", "temperature"),
    cpu_precision="bf16",
    graphs=feed_forward_graphs,
)
