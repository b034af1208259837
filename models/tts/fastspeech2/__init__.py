"""FastSpeech 2 (Ren et al. 2021, "FastSpeech 2: Fast and High-Quality ...", arXiv:2006.04558).

Sizes and layers are those of Amphion and ming024/FastSpeech2, whose checkpoints can be loaded. As
they do, it departs from the paper in that
- pitch is the mean F0 of each phone in linear bins, or the interpolated F0 of each frame, not a
  wavelet spectrogram: simpler, and easier to control;
- it has six decoder blocks, dropout 0.2, and Tacotron 2's postnet, for a sharper mel.
It departs from these projects in that
- padding is masked before every convolution and in the batch normalisation: an utterance gives the
  same result alone and in a batch;
- pitch and energy are normalised per speaker; controls multiply Hz and linear energy, not the
  normalised value (at the mean, they had no effect), and may differ from phone to phone;
- duration_control multiplies before rounding (it cut 6.5 frames to 6), and the result has at least
  one frame;
- the target of a phone without frames is the speaker's mean, not silence or 0 Hz;
- positions beyond max_seq_len are computed when needed, in training too;
- with `model.harmonics`, the decoder is conditioned on the harmonics of F0, which one pitch value
  per phone does not determine: their depth in the mel is that of recordings. F0 inside phones is
  predicted for them (modules/harmonics.py);
- with `variance_predictor.own_encoder`, durations, pitch and energy have an encoder of their own
  (modules/variance/prosody_encoder.py), for little speech;
- the vectors of pitch and energy bins start in proportion to their values: random ones let the
  decoder memorise training sentences (0.63 instead of 0.59 nats of mel L1 on unseen ones).
`variance_embedding.kind` "convolution" with mish is TensorFlowTTS's network; the dropout of the
contours' vectors, which that keeps in synthesis, ends with training here.
"""

from collections.abc import Iterator
from functools import partial

from models.base.acoustic import AcousticTask, contour_stats, durations_in
from models.base.assets import Assets
from models.base.graphs import feed_forward_graphs
from models.base.model import Model
from models.base.task import LossTerm, Unit, Update
from models.tts._feed_forward import LONGEST_PHONE_FRAMES, FeedForwardNetwork, FeedForwardOutput
from models.tts.fastspeech2.config import FastSpeech2Config
from modules.harmonics import F0Residual, HarmonicHead
from modules.layers.basic import Linear, PhoneEmbedding, length_mask, speaker_embedding
from modules.layers.postnet import PostNet
from modules.layers.transformer import FFTBlock, FFTStack, SelfAttention
from modules.losses import l1_sum, mse_sum
from modules.mel import MelConfig
from modules.variance.adaptor import VariancePredictor
from modules.variance.contours import Contour, ContourStats, binned_contour, convolved_contour
from modules.variance.prosody_encoder import ProsodyEncoder, duration_loss_sum, pitch_loss_sum
from processors.dataset.batch import TtsBatch


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
        self.duration_predictor = predictor()
        if bins.is_convolved:
            layer = hidden, bins.kernel_size, bins.dropout
            self.pitch = convolved_contour(predictor(), pitch, *layer)
            self.energy = convolved_contour(predictor(), energy, *layer)
        else:
            contour = partial(binned_contour, hidden=hidden, n_bins=bins.n_bins)
            self.pitch = contour(predictor(), pitch, config.pitch_level, bins.pitch_quantization)
            quantization = bins.energy_quantization
            self.energy = contour(predictor(), energy, config.energy_level, quantization)
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
    attend = partial(SelfAttention, hidden, heads, dropout=sizes.attention_dropout)
    layers = hidden, sizes.conv_filter_size, sizes.conv_kernel_size, dropout, sizes.activation
    blocks, stored = (FFTBlock(attend(), *layers) for _ in range(n_layers)), config.stored_positions
    return FFTStack(blocks, hidden, max_length=config.max_seq_len, stored_positions=stored)


class FastSpeech2Task(AcousticTask[FastSpeech2]):
    """Training with the durations of stage 1 or learned ones."""

    def training_step(self, batch: TtsBatch) -> Iterator[Update]:
        """Yields five losses of weight 1 (Amphion's; section 2.2 of the paper with an L1 mel loss).

        L1 of the mels, squared error of ln(frames + 1) and of normalised pitch and energy; with
        harmonics also L1 of the residual of F0. With `own_encoder`, the losses of durations and
        pitch are `duration_loss_sum` and `pitch_loss_sum`.
        """
        batch = yield from self.with_durations(batch)  # the aligner's update, if there is one
        network = self.network
        output: FeedForwardOutput = network(*network.inputs_of(batch))
        prosody = output.prosody
        phone_mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
        frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
        mel = batch.mel.mT  # (B, T, M)
        losses = {"mel": LossTerm(l1_sum(output.mel_hat, mel, frame_mask), "frames")}
        if output.refined_mel_hat is not None:
            total = l1_sum(output.refined_mel_hat, mel, frame_mask)
            losses["refined_mel"] = LossTerm(total, "frames")
        if prosody.f0_residual_l1 is not None:
            losses["f0_residual"] = LossTerm(prosody.f0_residual_l1, "frames")
        for name, contour in (("pitch", network.pitch), ("energy", network.energy)):
            mask = phone_mask if contour.level == "phone" else frame_mask
            unit: Unit = "phones" if contour.level == "phone" else "frames"
            total = mse_sum(prosody.contours_hat[name], prosody.contours[name], mask)
            losses[name] = LossTerm(total, unit)
        durations = durations_in(batch)
        if network.prosody_encoder is None:
            total = mse_sum(prosody.log_durations_hat, durations.float().log1p(), phone_mask)
        else:
            total = duration_loss_sum(prosody.log_durations_hat, durations, phone_mask)
            pitch = prosody.contours_hat["pitch"], prosody.contours["pitch"], batch.f0, durations
            losses["pitch"] = LossTerm(pitch_loss_sum(*pitch), "phones")
        losses["duration"] = LossTerm(total, "phones")
        yield Update("model", losses)


MODEL = Model(
    config=FastSpeech2Config,
    network=FastSpeech2,
    task=FastSpeech2Task,
    aligner=lambda model: model.aligner,
    cpu_precision="bf16",
    graphs=feed_forward_graphs,
)
