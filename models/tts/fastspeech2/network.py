"""FastSpeech 2's network: encoder, variance adaptor and decoder (section 2 of the paper)."""

from functools import partial

from models.base.acoustic import contour_stats
from models.base.assets import Assets
from models.tts._feed_forward import LONGEST_PHONE_FRAMES, FeedForwardNetwork
from models.tts.fastspeech2.config import FastSpeech2Config
from modules.harmonics import F0Residual, HarmonicHead
from modules.layers.basic import Linear, PhoneEmbedding, speaker_embedding
from modules.layers.postnet import PostNet
from modules.layers.transformer import FFTBlock, FFTStack, SelfAttention
from modules.mel import MelConfig
from modules.variance.adaptor import VariancePredictor
from modules.variance.contours import (
    Contour,
    ContourStats,
    Level,
    Quantization,
    binned_contour,
    convolved_contour,
)
from modules.variance.prosody_encoder import ProsodyEncoder


class FastSpeech2(FeedForwardNetwork):
    """Phones to mel: encoder, variance adaptor, decoder."""

    energy: Contour

    def __init__(
        self,
        config: FastSpeech2Config,
        n_phones: int,
        mel: MelConfig,
        pitch: ContourStats,
        energy: ContourStats,
    ) -> None:
        super().__init__(len(pitch.mean), mel.log_floor_value, LONGEST_PHONE_FRAMES)
        sizes, bins = config.transformer, config.variance_embedding
        hidden = sizes.encoder_hidden
        self.phone_embedding = PhoneEmbedding(n_phones, hidden, padding_idx=0)
        encoder = sizes.n_encoder_layers, sizes.encoder_head, sizes.encoder_dropout
        self.encoder = _stack(config, *encoder)
        self.speaker_embedding = speaker_embedding(self.n_speakers, hidden)
        variance = config.variance_predictor
        layers = variance.filter_size, variance.kernel_size, variance.dropout
        predictor = partial(VariancePredictor, hidden, *layers)
        if variance.own_encoder:
            speakers = speaker_embedding(self.n_speakers, variance.filter_size)
            self.prosody_encoder = ProsodyEncoder(n_phones, speakers, *layers)
            predictor = partial(VariancePredictor, variance.filter_size, *layers, n_layers=0)
        self.contours_read_prosody = variance.own_encoder or bins.is_convolved

        def contour(stats: ContourStats, level: Level, quantization: Quantization) -> Contour:
            if bins.is_convolved:
                return convolved_contour(predictor(), stats, hidden, bins.kernel_size, bins.dropout)
            return binned_contour(
                predictor(), stats, level, quantization, hidden=hidden, n_bins=bins.n_bins
            )

        self.duration_predictor = predictor()
        self.pitch = contour(pitch, config.pitch_level, bins.pitch_quantization)
        self.energy = contour(energy, config.energy_level, bins.energy_quantization)
        decoder = sizes.n_decoder_layers, sizes.decoder_head, sizes.decoder_dropout
        self.decoder = _stack(config, *decoder)
        self.mel_linear = Linear(hidden, mel.n_mels)
        if config.harmonics:
            self.harmonics = HarmonicHead(hidden, mel)
            if config.pitch_level == "phone":
                self.f0_residual = F0Residual(hidden)
        if config.use_postnet:
            self.postnet = PostNet(mel.n_mels, centred=config.centred_postnet)

    @classmethod
    def build(cls, config: FastSpeech2Config, assets: Assets) -> "FastSpeech2":
        """Builds the network for the phones, the speakers and the mel of a voice."""
        levels = config.pitch_level, config.energy_level
        if config.variance_embedding.is_convolved:  # normalised by frame
            levels = "frame", "frame"
        pitch = contour_stats(assets, f"f0_{levels[0]}")
        energy = contour_stats(assets, f"energy_{levels[1]}")
        return cls(config, len(assets.required_vocabulary()), assets.mel, pitch, energy)


def _stack(config: FastSpeech2Config, n_layers: int, heads: int, dropout: float) -> FFTStack:
    """Builds the encoder or the decoder."""
    sizes, hidden = config.transformer, config.transformer.encoder_hidden
    convolutions = hidden, sizes.conv_filter_size, sizes.conv_kernel_size

    def block() -> FFTBlock:
        attention = SelfAttention(hidden, heads, dropout=sizes.attention_dropout)
        return FFTBlock(attention, *convolutions, dropout, sizes.activation)

    blocks, stored = (block() for _ in range(n_layers)), config.stored_positions
    return FFTStack(blocks, hidden, max_length=config.max_seq_len, stored_positions=stored)
