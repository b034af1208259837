"""FastPitch's network: two stacks of transformer blocks, and the contours between them."""

import torch
from torch import Tensor

from models.base.acoustic import contour_stats
from models.base.assets import Assets
from models.base.model import PROSODY
from models.tts._feed_forward import FeedForwardNetwork
from models.tts.fastpitch.config import FastPitchConfig, FFTConfig
from modules.harmonics import F0Residual, HarmonicHead
from modules.layers.basic import Linear, PhoneEmbedding, speaker_embedding
from modules.layers.transformer import FFTBlock, FFTStack, SelfAttention
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
        pitch_predictor = VariancePredictor(hidden, **vars(config.pitch_predictor))
        self.pitch = convolved_contour(pitch_predictor, pitch, hidden, config.pitch_kernel_size)
        if config.variant == "1.1":
            energy_predictor = VariancePredictor(hidden, **vars(config.energy_predictor))
            self.energy = convolved_contour(
                energy_predictor, None, hidden, config.energy_kernel_size
            )
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
            kind = (
                "no energy (FastPitch 1.0)" if self.energy is None else "the energy of the log-mel"
            )
            raise ValueError(f"this voice has {kind} and no energy_control; leave it out")


def _stack(sizes: FFTConfig, hidden: int) -> FFTStack:
    """Builds the encoder or the decoder."""

    def block() -> FFTBlock:
        attention = SelfAttention(
            hidden, sizes.heads, sizes.head_size, sizes.attention_dropout, output_bias=False
        )
        kernels = sizes.kernel_size, sizes.kernel_size
        return FFTBlock(attention, hidden, sizes.filter_size, kernels, sizes.dropout)

    return FFTStack((block() for _ in range(sizes.n_layers)), hidden, order="sines_first")
