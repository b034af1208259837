"""Tacotron 2 (Shen et al. 2018, "Natural TTS Synthesis by Conditioning ...", arXiv:1712.05884).

Sizes and layers are those of NVIDIA's implementations, whose checkpoints can be loaded. As they do,
it departs from the paper in that
- the LSTMs have dropout 0.1 on their hidden states instead of zoneout, for no loss of quality;
- attention also sees the weights of the previous step, not only their sum.
It departs from these implementations in that
- padding is masked before every convolution, in the batch normalisation and in the losses: an
  utterance gives the same result alone and in a batch;
- the prenet's dropout is seeded by the text outside training, so that synthesis, validation and
  teacher-forced mels can be repeated;
- mels are normalised inside the network, where a configuration says so;
- several frames per step are possible (the reduction factor of Wang et al. 2017,
  arXiv:1703.10135), as is guided attention (Tachibana et al. 2018, arXiv:1710.08969);
- a voice may have several speakers; their embedding is added to the encoded phones.
"""

import math
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from config.checks import require_at_least, require_odd, require_share
from config.schema import AcousticPrecision, Config
from config.train import CompileMode
from models.base.acoustic import AcousticTask
from models.base.assets import Assets
from models.base.graphs import Graphs
from models.base.model import Control, Model, TtsOutput, finished_mel, resolve_speakers
from models.base.task import LossTerm
from models.tts._tacotron2_decoding import DecodedFrames, DecoderWeights, Precision, decode
from models.tts._tacotron2_graphs import (
    GATE_THRESHOLD,
    EncoderGraph,
    PostNetGraph,
    decoder_graphs,
    encoder_graph,
)
from models.tts._tacotron2_network import (
    PRENET_DROPOUT,
    Decoder,
    DecoderConfig,
    Encoder,
    EncoderConfig,
    PrenetMasks,
)
from modules.alignment.search import attended_durations
from modules.layers.basic import PhoneEmbedding, clear_padding, length_mask, speaker_embedding
from modules.layers.postnet import PostNet
from modules.losses import guided_attention_sum, mse_sum
from modules.mel import MelConfig
from processors.dataset.batch import TtsBatch
from utils.errors import InputError
from utils.seed import derived_seed


@dataclass(frozen=True)
class PostNetConfig:
    """Convolutions that refine the mel."""

    channels: int = 512
    kernel_size: int = 5  # odd
    n_layers: int = 5
    dropout: float = 0.5

    def __post_init__(self) -> None:
        require_at_least(self, 1, "channels")
        require_at_least(self, 2, "n_layers")
        require_odd(self, "kernel_size")
        require_share(self, "dropout")


@dataclass(frozen=True)
class Tacotron2Config:
    """The `model` section."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    postnet: PostNetConfig = field(default_factory=PostNetConfig)
    # Weight of the attention far from the diagonal, between 0 and 1 per frame; 0: no such loss. It
    # helps small corpora and batches to align at all.
    guided_attention: float = 0.0
    guided_width: float = 0.2  # of the diagonal, in shares of text and speech
    # The network reads and predicts (mel - mel_mean) / mel_std. Near the mean and deviation of
    # log-mels, it learns in a fraction of the updates; NVIDIA's networks have 0 and 1.
    mel_mean: float = 0.0
    mel_std: float = 1.0

    def __post_init__(self) -> None:
        require_at_least(self, 0, "guided_attention")
        for key in ("guided_width", "mel_std"):
            if not getattr(self, key) > 0:
                raise ValueError(f"{key} is {getattr(self, key):g}, expected more than 0")


class Tacotron2Output(NamedTuple):
    """The network's predictions for a batch, with teacher forcing."""

    mel_hat: Tensor  # (B, T, M) before the postnet
    refined_mel_hat: Tensor  # (B, T, M) after it
    gate_logits: Tensor  # (B, T); above 0: this frame is the last
    alignment: Tensor  # (B, T, N): weights of the phones in each frame


class Tacotron2(nn.Module):
    """Phones to mel: encoder, decoder with attention, postnet.

    Args:
        n_phones: Size of the vocabulary, padding (id 0) included.
        mel: Gives the number of bands, and the log-mel of silence that pads the output of `infer`.
    """

    controls: ClassVar[frozenset[Control]] = frozenset()
    PRECISIONS: ClassVar[tuple[AcousticPrecision, ...]] = get_args(Precision)

    def __init__(
        self, config: Tacotron2Config, n_phones: int, mel: MelConfig, n_speakers: int = 1
    ) -> None:
        super().__init__()
        hidden = config.encoder.hidden
        self.config = config
        self.n_speakers = n_speakers
        self.log_floor = mel.log_floor_value
        self.phone_embedding = PhoneEmbedding(n_phones, hidden)
        nn.init.xavier_uniform_(self.phone_embedding.weight, gain=math.sqrt(2))
        self.encoder = Encoder(config.encoder)
        self.speaker_embedding = speaker_embedding(n_speakers, hidden)
        self.decoder = Decoder(config.decoder, hidden, mel.n_mels)
        self._prepared: DecoderWeights | None = None
        self.postnet = PostNet(mel.n_mels, **vars(config.postnet))

    @property
    def frames_per_step(self) -> int:
        """Frames that share the attention of a step (the reduction factor)."""
        return self.config.decoder.n_frames_per_step

    def scales(self) -> dict[str, str]:
        """Tensors that read or predict mels, and their normalisation."""
        of_mels = ("decoder.prenet.0.", "decoder.mel_linear.", "postnet.")
        names = [name for name in self.state_dict() if name.startswith(of_mels)]
        return dict.fromkeys(names, f"{self.config.mel_mean:g}, {self.config.mel_std:g}")

    def compile(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  (of torch)
        """Compiles the postnet only: of the decoder, each frame would become a graph."""
        self.postnet.compile(*args, **kwargs)

    def forward(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        speaker_ids: Tensor,
        mel: Tensor,
        mel_lengths: Tensor,
    ) -> Tacotron2Output:
        """Predicts each frame from the phones, (B, N), and the true frames before it, (B, M, T)."""
        _, N = phone_ids.shape
        memory = self._encode(phone_ids, phone_lengths, speaker_ids)  # (B, N, H)
        masks = None if self.training else _prenet_masks(self.config, phone_ids, phone_lengths)
        normalised = (mel.mT - self.config.mel_mean) / self.config.mel_std
        output = self.decoder(memory, length_mask(phone_lengths, N), normalised, masks)
        frame_mask = length_mask(mel_lengths, mel.shape[2])
        refined_mel_hat = self.postnet(output.mel_hat, frame_mask)
        return Tacotron2Output(
            self._restored(output.mel_hat),
            self._restored(refined_mel_hat),
            output.gate_logits,
            output.alignment,
        )

    @torch.no_grad()
    def infer(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        *,
        speaker_ids: Tensor | None = None,
        prenet_dropout: float = PRENET_DROPOUT,
        gate_threshold: float = GATE_THRESHOLD,
        max_decoder_steps: int = 2000,
        seed: int = 0,
        max_frames: Tensor | None = None,
    ) -> TtsOutput:
        """Synthesises mels; call `eval()` first.

        The frames of the step at which the gate opens are left out, as in NVIDIA's code, except in
        the first step. Other arguments are those of `AcousticModel.infer`.

        Args:
            prenet_dropout: Share of zeroed values in the prenet. Voices are trained with 0.5; with
                less they tend to drone or not to end.
            gate_threshold: Probability at which speech ends.
            max_decoder_steps: Where speech is cut off at the latest.
            seed: For the prenet's dropout, with the text.
        """
        r = self.frames_per_step
        speaker_ids = resolve_speakers(speaker_ids, self.n_speakers, phone_lengths)
        limits = torch.full_like(phone_lengths, max_decoder_steps)  # (B,)
        if max_frames is not None:
            limits = limits.minimum((max_frames + r - 1) // r)
        frames = decode(
            self._prepared or DecoderWeights(self.decoder),
            self._encode(phone_ids, phone_lengths, speaker_ids),
            length_mask(phone_lengths, phone_ids.shape[1]),
            _prenet_masks(self.config, phone_ids, phone_lengths, seed, prenet_dropout),
            gate_threshold=gate_threshold,
            limits=limits.clamp(min=1),
        )
        return self._output(frames, phone_lengths, max_frames)

    def for_inference(
        self, precision: AcousticPrecision = "fp32", compiled: CompileMode = "off"
    ) -> "Tacotron2":
        """Returns a network that shares these weights and has those of the decoder prepared.

        It does not follow later changes of the weights. The precision is of the decoder's LSTMs
        (`DecoderWeights`). An InputError refuses one that the device lacks, and compilation.
        """
        if compiled != "off":
            raise InputError(
                f"inference.compile is {compiled}: Tacotron 2 decodes in a loop over frames, which"
                " is not compiled; set it to off"
            )
        prepared = copy(self)
        prepared._prepared = DecoderWeights(self.decoder, cast("Precision", precision))
        return prepared

    @torch.no_grad()
    def teacher_forced_mel(self, batch: TtsBatch) -> Tensor:
        """Predicts the mel (B, M, T) from the true frames before each; call `eval()` first."""
        output: Tacotron2Output = self(*_inputs(batch))
        frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
        return finished_mel(output.refined_mel_hat, frame_mask, self.log_floor)

    @torch.no_grad()
    def teacher_forced_attention(self, batch: TtsBatch) -> Tensor:
        """Weights of the phones in each true frame, (B, T, N); call `eval()` first.

        All frames of a step share its weights; those in the padding have no meaning.
        """
        output: Tacotron2Output = self(*_inputs(batch))
        return output.alignment

    def _encode(self, phone_ids: Tensor, phone_lengths: Tensor, speaker_ids: Tensor) -> Tensor:
        """Phones (B, N), lengths (B,), speakers (B,) -> (B, N, H), 0 for padding."""
        memory: Tensor = self.encoder(self.phone_embedding(phone_ids), phone_lengths)
        if self.speaker_embedding is None:
            return memory
        mask = length_mask(phone_lengths, phone_ids.shape[1])
        return clear_padding(memory + self.speaker_embedding(speaker_ids)[:, None], mask)

    def _restored(self, mel: Tensor) -> Tensor:
        """Undoes the normalisation of the mels."""
        return mel * self.config.mel_std + self.config.mel_mean

    def _output(
        self, frames: DecodedFrames, phone_lengths: Tensor, max_frames: Tensor | None
    ) -> TtsOutput:
        """Refines decoded frames and cuts them off where speech ends."""
        r = self.frames_per_step
        mask = length_mask(frames.n_steps * r, frames.mel.shape[1])  # (B, T)
        # the postnet sees the frames of the last step, as it did in training
        mel_hat = self._restored(self.postnet(frames.mel, mask))
        mel_lengths = (frames.n_steps - frames.stopped.long()).clamp(min=1) * r
        if max_frames is not None:
            mel_lengths = mel_lengths.minimum(max_frames.clamp(min=1))
        mask = length_mask(mel_lengths)
        T = mask.shape[1]
        alignment = frames.alignment.repeat_interleave(r, dim=1)[:, :T] * mask[:, :, None]
        return TtsOutput(
            finished_mel(mel_hat[:, :T], mask, self.log_floor),
            mel_lengths,
            attended_durations(alignment, phone_lengths, mel_lengths),
            alignment=alignment,
            gate=frames.gate.repeat_interleave(r, dim=1)[:, :T] * mask,
            stopped=frames.stopped,
        )


def _prenet_masks(
    config: Tacotron2Config,
    phone_ids: Tensor,
    phone_lengths: Tensor,
    seed: int = 0,
    dropout: float = PRENET_DROPOUT,
) -> PrenetMasks | None:
    """Masks that depend on the seed and the phones of an item; None without dropout."""
    if dropout == 0:
        return None
    texts = zip(phone_ids.tolist(), phone_lengths.tolist(), strict=True)
    seeds = [derived_seed("prenet", seed, *phones[:length]) for phones, length in texts]
    return PrenetMasks(seeds, dropout, config.decoder.prenet_size)


def _inputs(batch: TtsBatch) -> tuple[Tensor, ...]:
    """Arguments of the network's `forward`."""
    return (batch.phone_ids, batch.phone_lengths, batch.speaker_ids, batch.mel, batch.mel_lengths)


def losses_of(network: Tacotron2, batch: TtsBatch) -> dict[str, LossTerm]:
    """Squared errors of the mels, cross-entropy of the gate (section 2.2), guided attention.

    The gate is to open in the step of the last frame; all frames of a step share it. `focus`, with
    weight 0, is the largest weight of the attention: near 1 where a frame belongs to one phone.
    """
    output: Tacotron2Output = network(*_inputs(batch))
    mel, frame_mask = batch.mel.mT, length_mask(batch.mel_lengths, batch.mel.shape[2])
    r = network.frames_per_step
    last_step = (batch.mel_lengths - 1) // r * r  # its first frame, (B,)
    ends = ~length_mask(last_step, batch.mel.shape[2])  # (B, T)
    gate = F.binary_cross_entropy_with_logits(
        output.gate_logits.float(), ends.float(), reduction="none"
    )
    focus = output.alignment.detach().amax(dim=2)  # (B, T)
    losses = {
        "mel": LossTerm(mse_sum(output.mel_hat, mel, frame_mask), "frames"),
        "refined_mel": LossTerm(mse_sum(output.refined_mel_hat, mel, frame_mask), "frames"),
        "gate": LossTerm((gate * frame_mask).sum(), "frames"),
        "focus": LossTerm((focus * frame_mask).sum(), "frames", weight=0.0),
    }
    if (weight := network.config.guided_attention) > 0:
        lengths, width = (batch.phone_lengths, batch.mel_lengths), network.config.guided_width
        total = guided_attention_sum(output.alignment, *lengths, width)
        losses["guided_attention"] = LossTerm(total, "frames", weight)
    return losses


def _network(model: Tacotron2Config, assets: Assets) -> Tacotron2:
    n_phones, n_speakers = len(assets.required_vocabulary()), max(1, len(assets.speakers))
    return Tacotron2(model, n_phones, assets.mel, n_speakers)


def _task(model: Tacotron2Config, _config: Config, assets: Assets) -> AcousticTask[Tacotron2]:
    return AcousticTask(_network(model, assets), assets, losses_of)


def _graphs(network: Tacotron2) -> Graphs:
    config, decoder = network.config, network.decoder
    encoder = EncoderGraph(
        network.phone_embedding, network.encoder, network.speaker_embedding, decoder
    )
    postnet = PostNetGraph(network.postnet, config.mel_mean, config.mel_std)
    graphs = decoder_graphs(decoder, config.encoder.hidden, postnet)
    return {"encoder": encoder_graph(encoder), **graphs}


MODEL = Model(
    config=Tacotron2Config,
    network=_network,
    task=_task,
    needs_durations=False,
    graphs=_graphs,
)
