"""FastPitch (Łańcucki 2021, arXiv:2006.06873): versions 1.0 and 1.1 of its author at NVIDIA.

Both are this network. Version 1.0 (`model.variant`) has no energy and reads durations that
stage 1 stored; version 1.1 has energy, and learns the durations (`preprocess.aligner: "learned"`,
Badlani et al. 2021, arXiv:2108.10447). Either goes with stored and with learned durations.
Checkpoints of NVIDIA's code can be loaded. It departs from that code in that
- padding is masked before every convolution: an utterance gives the same result alone and in a
  batch (an utterance alone gives NVIDIA's numbers);
- pitch is normalised per speaker; controls multiply Hz and linear energy and may differ from phone
  to phone; speech has at least one frame;
- energy is that of the spectrum: more is louder. NVIDIA's is the norm of the log-mel, which falls
  as speech gets louder; its checkpoints keep it (`model.energy: "log_mel"`);
- with `model.harmonics`, the decoder is conditioned on the harmonics of F0, which one pitch value
  per phone does not determine (modules/harmonics.py);
- the aligner is a separate network (models/base/aligner.py), and its prior ends.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from models.base.acoustic import AcousticTask, contour_stats, durations_in
from models.base.assets import Assets
from models.base.graphs import feed_forward_graphs
from models.base.model import PROSODY, Model
from models.base.task import LossTerm, Update
from models.tts._feed_forward import FeedForwardNetwork, FeedForwardOutput
from models.tts.fastpitch.config import FastPitchConfig, FFTConfig
from modules.harmonics import F0Residual, HarmonicHead
from modules.layers.basic import Linear, PhoneEmbedding, length_mask, speaker_embedding
from modules.layers.transformer import FFTBlock, FFTStack, SelfAttention
from modules.losses import mse_sum
from modules.mel import MelConfig
from modules.variance.adaptor import VariancePredictor
from modules.variance.contours import ContourStats, convolved_contour
from processors.dataset.batch import TtsBatch


class FastPitch(FeedForwardNetwork):
    """Phones to mel: encoder, durations, pitch, energy, decoder.

    Args:
        n_phones: Size of the vocabulary, padding (id 0) included.
        pitch: Statistics of F0 in Hz, one value per speaker; mean and std are used.
    """

    def __init__(
        self, config: FastPitchConfig, n_phones: int, mel: MelConfig, pitch: ContourStats
    ) -> None:
        super().__init__(len(pitch.mean), mel.log_floor_value, config.max_phone_frames)
        hidden = config.hidden
        self.config = config
        if config.variant == "1.0" or config.energy == "log_mel":
            self.controls = PROSODY - {"energy"}
        self.phone_embedding = PhoneEmbedding(n_phones, hidden, padding_idx=0)
        self.speaker_embedding = speaker_embedding(self.n_speakers, hidden)
        self.encoder = _stack(config.encoder, hidden)
        self.duration_predictor = VariancePredictor(hidden, **vars(config.duration_predictor))
        predictor = VariancePredictor(hidden, **vars(config.pitch_predictor))
        self.pitch = convolved_contour(predictor, pitch, hidden, config.pitch_kernel_size)
        if config.variant == "1.1":
            predictor = VariancePredictor(hidden, **vars(config.energy_predictor))
            self.energy = convolved_contour(predictor, None, hidden, config.energy_kernel_size)
        self.decoder = _stack(config.decoder, hidden)
        self.mel_linear = Linear(hidden, mel.n_mels)
        if config.harmonics:
            self.harmonics = HarmonicHead(hidden, mel)
            self.f0_residual = F0Residual(hidden)

    @classmethod
    def build(cls, config: FastPitchConfig, assets: Assets) -> "FastPitch":
        """Builds the network for the phones, the speakers and the mel of a voice."""
        pitch = contour_stats(assets, "f0_frame")
        return cls(config, len(assets.required_vocabulary()), assets.mel, pitch)

    def scales(self) -> dict[str, str]:
        """Returns the tensors that make sense on one scale only, and their scales."""
        names = (name for name in self.state_dict() if name.startswith("energy."))
        return dict.fromkeys(names, self.config.energy)

    def inputs_of(self, batch: TtsBatch) -> tuple[Tensor, ...]:
        """Returns the arguments of `forward`, with the energy that this network is trained on."""
        if self.config.energy == "log_mel":
            norms = torch.linalg.vector_norm(batch.mel.float(), dim=1)  # (B, T)
            batch = batch._replace(energy=norms)
        return super().inputs_of(batch)

    def _encode(self, phone_ids: Tensor, mask: Tensor, speaker_ids: Tensor) -> Tensor:
        phones = self.phone_embedding(phone_ids)
        if self.speaker_embedding is not None:
            speakers = self.speaker_embedding(speaker_ids)[:, None]  # (B, 1, H)
            phones = phones + self.config.speaker_emb_weight * speakers
        return self.encoder(phones, mask)

    def _check_energy(self, energy: Tensor | None, control: float | Tensor) -> None:
        if self.energy is None and energy is not None:
            raise ValueError("this voice has no energy (FastPitch 1.0); leave energy out")
        if "energy" not in self.controls and (isinstance(control, Tensor) or control != 1):
            has = (
                "no energy (FastPitch 1.0)" if self.energy is None else "the energy of the log-mel"
            )
            raise ValueError(f"this voice has {has} and no energy_control; leave it out")


def _stack(sizes: FFTConfig, hidden: int) -> FFTStack:
    """Builds the encoder or the decoder."""
    attend = partial(SelfAttention, hidden, sizes.heads, sizes.head_size, sizes.attention_dropout)
    layers = hidden, sizes.filter_size, (sizes.kernel_size, sizes.kernel_size), sizes.dropout
    blocks = (FFTBlock(attend(output_bias=False), *layers) for _ in range(sizes.n_layers))
    return FFTStack(blocks, hidden, order="sines_first")


class FastPitchTask(AcousticTask[FastPitch]):
    """Training with the durations of stage 1 or learned ones."""

    def training_step(self, batch: TtsBatch) -> Iterator[Update]:
        """Yields squared errors of mel, ln(frames + 1), normalised pitch and ln(1 + energy).

        With harmonics also L1 of the residual of F0.
        """
        batch = yield from self.with_durations(batch)  # the aligner's update, if there is one
        network = self.network
        output: FeedForwardOutput = network(*network.inputs_of(batch))
        prosody = output.prosody
        phone_mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
        frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
        weights = network.config
        mel = mse_sum(output.mel_hat, batch.mel.mT, frame_mask)
        log_durations = durations_in(batch).float().log1p()
        durations = mse_sum(prosody.log_durations_hat, log_durations, phone_mask)
        losses = {"mel": LossTerm(mel, "frames")}
        losses["duration"] = LossTerm(durations, "phones", weights.duration_loss_weight)
        if prosody.f0_residual_l1 is not None:
            losses["f0_residual"] = LossTerm(prosody.f0_residual_l1, "frames")
        scales = {"pitch": weights.pitch_loss_weight, "energy": weights.energy_loss_weight}
        for name, target in prosody.contours.items():
            total = mse_sum(prosody.contours_hat[name], target, phone_mask)
            losses[name] = LossTerm(total, "phones", scales[name])
        yield Update("model", losses)


MODEL = Model(
    config=FastPitchConfig,
    network=FastPitch,
    task=FastPitchTask,
    aligner=lambda model: model.aligner,
    cpu_precision="bf16",
    graphs=feed_forward_graphs,
)
