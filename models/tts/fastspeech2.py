"""FastSpeech 2 (Ren et al. 2021, "FastSpeech 2: Fast and High-Quality ...", arXiv:2006.04558).

In the shape of Amphion and ming024/FastSpeech2, whose checkpoints it can hold. It departs from the
paper as they do:
- Pitch is the mean F0 of each phone in linear bins, or the interpolated F0 of each frame, not a
  wavelet spectrogram: simpler, and easier to control.
- Six decoder blocks, dropout 0.2, and Tacotron 2's postnet, for a sharper mel.
It departs from them where results depended on accidents:
- Padding is masked before every convolution and in the batch normalisation: an utterance gives the
  same result alone and in a batch.
- Pitch and energy are normalised per speaker; controls multiply Hz and linear energy, not the
  normalised value (at the mean, they had no effect), and may differ from phone to phone.
- duration_control multiplies before rounding (it cut 6.5 frames to 6), and the result has at least
  one frame.
- The target of a phone without frames is the speaker's mean, not silence or 0 Hz.
- Positions beyond max_seq_len are computed when needed, in training too.

This file is its training; what it can be set to stands in _fastspeech2_config.py, the network in
_fastspeech2_network.py.
"""

from collections.abc import Iterator, Mapping
from typing import cast

import torch
from torch import nn

from config.schema import Config
from models.base.acoustic import contour_stats, count_valid, durations_in
from models.base.assets import Assets
from models.base.joint_aligner import ALIGNER, AlignerTraining, build_aligner_training
from models.base.samples import add_alignment_figures, synthesis_samples
from models.base.task import LossTerm, Sample, Unit, Update
from models.tts._fastspeech2_config import (
    FastSpeech2Config,
    TransformerConfig,
    VarianceEmbeddingConfig,
    VariancePredictorConfig,
)
from models.tts._fastspeech2_network import FastSpeech2, TrainingOutput
from modules.losses import l1_sum, mse_sum
from modules.masking import length_mask
from processors.dataset.batch import TtsBatch

__all__ = [
    "CONFIG",
    "FastSpeech2",
    "FastSpeech2Config",
    "FastSpeech2Task",
    "TrainingOutput",
    "TransformerConfig",
    "VarianceEmbeddingConfig",
    "VariancePredictorConfig",
    "build_network",
    "build_task",
]


class FastSpeech2Task:
    """Training: one step, five losses of weight 1 (Amphion's; section 2.2 with an L1 mel loss).

    Args:
        network: Trains.
        assets: Mel definition and vocabulary, for the samples.
        aligner_training: Learns the durations; None where the batches have them.
    """

    exported = "model"

    def __init__(
        self, network: FastSpeech2, assets: Assets, aligner_training: AlignerTraining | None = None
    ) -> None:
        self.network = network
        self.assets = assets
        self.aligner_training = aligner_training
        self.networks: dict[str, nn.Module] = {"model": network}
        if aligner_training is not None:
            self.networks[ALIGNER] = aligner_training.network

    def begin_update(self, step: int) -> None:
        """Sets the weights of the losses for the update after so many."""
        if self.aligner_training is not None:
            self.aligner_training.step = step

    def counts(self, batch: TtsBatch) -> dict[Unit, int]:
        """Valid elements of the batch, by unit."""
        return count_valid(batch)

    def training_step(self, batch: TtsBatch) -> Iterator[Update]:
        """One update of the network, after one of the aligner where it is trained along."""
        if self.aligner_training is not None:
            found = self.aligner_training.align(batch)
            yield Update(ALIGNER, self.aligner_training.losses(found, batch))
            batch = batch._replace(durations=found.durations)
        yield Update("model", self.losses(batch))

    @torch.no_grad()
    def validation_step(self, batch: TtsBatch) -> Mapping[str, LossTerm]:
        """The losses of training, teacher-forced."""
        if self.aligner_training is None:
            return self.losses(batch)
        found = self.aligner_training.align(batch)
        losses = self.losses(batch._replace(durations=found.durations))
        return losses | self.aligner_training.validation_losses(found, batch)

    def samples(self, batch: TtsBatch) -> Iterator[Sample]:
        """Speaks from the phones alone."""
        spoken = synthesis_samples(self.network, batch, self.assets)
        if self.aligner_training is None:
            return spoken
        durations = self.aligner_training.align(batch).durations
        return add_alignment_figures(spoken, batch, durations, self.assets)

    def losses(self, batch: TtsBatch) -> dict[str, LossTerm]:
        """L1 of the mels, squared error of ln(frames + 1) and of normalised pitch and energy."""
        true_durations = durations_in(batch)
        output: TrainingOutput = self.networks["model"](
            batch.phone_ids,
            batch.phone_lengths,
            batch.speaker_ids,
            true_durations,
            batch.mel_lengths,
            batch.f0,
            batch.energy,
        )
        phone_mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
        frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
        mel = batch.mel.mT  # (B, T, M)
        losses = {"mel": LossTerm(l1_sum(output.mel_hat, mel, frame_mask), "frames")}
        if output.refined_mel_hat is not None:
            refined_mel = l1_sum(output.refined_mel_hat, mel, frame_mask)
            losses["refined_mel"] = LossTerm(refined_mel, "frames")
        log_durations = true_durations.float().log1p()
        durations = mse_sum(output.log_durations_hat, log_durations, phone_mask)
        losses["duration"] = LossTerm(durations, "phones")
        for name, contour in (("pitch", self.network.pitch), ("energy", self.network.energy)):
            mask = phone_mask if contour.level == "phone" else frame_mask
            unit: Unit = "phones" if contour.level == "phone" else "frames"
            total = mse_sum(output.contours_hat[name], output.contours[name], mask)
            losses[name] = LossTerm(total, unit)
        return losses


CONFIG = FastSpeech2Config


def build_network(config: Config, assets: Assets) -> FastSpeech2:
    """The network of an experiment, with fresh weights.

    Raises:
        InputError: If the vocabulary or the statistics of a speaker are missing.
    """
    model = cast("FastSpeech2Config", config.model)
    return FastSpeech2(
        model,
        n_phones=len(assets.required_vocabulary()),
        n_mels=assets.mel.n_mels,
        pitch=contour_stats(assets, f"f0_{model.pitch_level}"),
        energy=contour_stats(assets, f"energy_{model.energy_level}"),
        log_floor=assets.mel.log_floor_value,
    )


def build_task(config: Config, assets: Assets) -> FastSpeech2Task:
    """What the trainer trains."""
    model = cast("FastSpeech2Config", config.model)
    network = build_network(config, assets)
    return FastSpeech2Task(network, assets, build_aligner_training(config, assets, model.aligner))
