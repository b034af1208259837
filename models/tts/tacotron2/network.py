"""Tacotron 2's network: encoder, decoder with attention, and postnet (section 2.2 of the paper)."""

import math
from copy import copy
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from config.schema import AcousticPrecision
from config.train import CompileMode
from models.base.assets import Assets
from models.base.model import Control, TtsOutput, finished_mel, resolve_speakers
from models.tts.tacotron2.config import EncoderConfig, Tacotron2Config
from models.tts.tacotron2.decoder import PRENET_DROPOUT, Decoder, PrenetMasks
from models.tts.tacotron2.decoding import DecodedFrames, DecoderWeights, Precision, decode
from modules.alignment.search import attended_durations
from modules.layers.basic import (
    Dropout,
    MaskedConv1d,
    PhoneEmbedding,
    clear_padding,
    length_mask,
    speaker_embedding,
)
from modules.layers.postnet import MaskedBatchNorm, PostNet
from modules.mel import MelConfig
from processors.dataset.batch import TtsBatch
from utils.errors import InputError
from utils.seed import derived_seed

GATE_THRESHOLD = 0.5  # probability at which speech ends


class Encoder(nn.Module):
    """Phones to hidden vectors (section 2.2)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        sizes = [config.hidden] * (config.n_convolutions + 1)
        self.convs = nn.ModuleList(
            MaskedConv1d(size, next_size, config.kernel_size) for size, next_size in pairwise(sizes)
        )
        self.norms = nn.ModuleList(MaskedBatchNorm(size) for size in sizes[1:])
        self.dropout = Dropout(config.dropout)
        self.lstm = nn.LSTM(config.hidden, config.hidden // 2, batch_first=True, bidirectional=True)
        for conv in self.convs:
            nn.init.xavier_uniform_(conv.get_parameter("weight"), nn.init.calculate_gain("relu"))

    def forward(self, phones: Tensor, lengths: Tensor) -> Tensor:
        """Encodes phones: embeddings (B, N, H) and lengths -> (B, N, H) float32, 0 for padding."""
        _, N, _ = phones.shape
        phones = self.convolved(phones, length_mask(lengths, N))
        with torch.autocast(phones.device.type, enabled=False):
            packed = pack_padded_sequence(phones.float(), lengths.cpu(), True, enforce_sorted=False)
            encoded, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=N)
        return encoded

    def convolved(self, phones: Tensor, mask: Tensor) -> Tensor:
        """Computes the input of the LSTM: embeddings (B, N, H) and mask (B, N) -> (B, N, H)."""
        for conv, norm in zip(self.convs, self.norms, strict=True):
            phones = self.dropout(norm(conv(phones, mask), mask).relu())
        return phones


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
        self.config, self.n_speakers, self.log_floor = config, n_speakers, mel.log_floor_value
        self.phone_embedding = PhoneEmbedding(n_phones, hidden)
        nn.init.xavier_uniform_(self.phone_embedding.weight, gain=math.sqrt(2))
        self.encoder = Encoder(config.encoder)
        self.speaker_embedding = speaker_embedding(n_speakers, hidden)
        self.decoder = Decoder(config.decoder, hidden, mel.n_mels)
        self._prepared: DecoderWeights | None = None
        self.postnet = PostNet(mel.n_mels, **vars(config.postnet))

    @classmethod
    def build(cls, config: Tacotron2Config, assets: Assets) -> "Tacotron2":
        """Builds the network for the phones, the speakers and the mel of a voice."""
        n_phones, n_speakers = len(assets.required_vocabulary()), max(1, len(assets.speakers))
        return cls(config, n_phones, assets.mel, n_speakers)

    @property
    def frames_per_step(self) -> int:
        """Frames that share the attention of a step (the reduction factor)."""
        return self.config.decoder.n_frames_per_step

    def scales(self) -> dict[str, str]:
        """Returns the tensors that read or predict mels, and their normalisation."""
        of_mels = ("decoder.prenet.0.", "decoder.mel_linear.", "postnet.")
        names = [name for name in self.state_dict() if name.startswith(of_mels)]
        return dict.fromkeys(names, f"{self.config.mel_mean:g}, {self.config.mel_std:g}")

    def compile(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  (of torch)
        """Compiles the postnet only: of the decoder, each frame would become a graph."""
        self.postnet.compile(*args, **kwargs)

    def forward(self, batch: TtsBatch) -> Tacotron2Output:
        """Predicts each frame from the phones, (B, N), and the true frames before it, (B, M, T)."""
        phones, N = (batch.phone_ids, batch.phone_lengths), batch.phone_ids.shape[1]
        memory = self._encode(*phones, batch.speaker_ids)  # (B, N, H)
        masks = None if self.training else _prenet_masks(self.config, *phones)
        normalised = (batch.mel.mT - self.config.mel_mean) / self.config.mel_std
        output = self.decoder(memory, length_mask(batch.phone_lengths, N), normalised, masks)
        frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
        refined_mel_hat = self.postnet(output.mel_hat, frame_mask)
        mels = self._restored(output.mel_hat), self._restored(refined_mel_hat)
        return Tacotron2Output(*mels, output.gate_logits, output.alignment)

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
            reason = "Tacotron 2 decodes in a loop over frames, which is not compiled"
            raise InputError(f"inference.compile is {compiled}: {reason}; set it to off")
        prepared = copy(self)
        prepared._prepared = DecoderWeights(self.decoder, cast("Precision", precision))
        return prepared

    @torch.no_grad()
    def teacher_forced_mel(self, batch: TtsBatch) -> Tensor:
        """Predicts the mel (B, M, T) from the true frames before each; call `eval()` first."""
        frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
        return finished_mel(self(batch).refined_mel_hat, frame_mask, self.log_floor)

    @torch.no_grad()
    def teacher_forced_attention(self, batch: TtsBatch) -> Tensor:
        """Computes weights of the phones in each true frame, (B, T, N); call `eval()` first.

        All frames of a step share its weights; those in the padding have no meaning.
        """
        return self(batch).alignment

    def _encode(self, phone_ids: Tensor, phone_lengths: Tensor, speaker_ids: Tensor) -> Tensor:
        """Encodes phones (B, N), lengths (B,), speakers (B,) -> (B, N, H), 0 for padding."""
        memory = self.encoder(self.phone_embedding(phone_ids), phone_lengths)
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
    """Builds masks that depend on the seed and the phones of an item; None without dropout."""
    if dropout == 0:
        return None
    texts = zip(phone_ids.tolist(), phone_lengths.tolist(), strict=True)
    seeds = [derived_seed("prenet", seed, *phones[:length]) for phones, length in texts]
    return PrenetMasks(seeds, dropout, config.decoder.prenet_size)
