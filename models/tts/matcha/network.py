"""Matcha's network: the text encoder, and the flow that ends in a mel."""

from typing import Any, ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from config.schema import AcousticPrecision
from config.train import CompileMode
from models.base.assets import Assets
from models.base.model import Control, TtsOutput, finished_mel, resolve_speakers
from models.tts._feed_forward import LONGEST_PHONE_FRAMES, PartsInHalf
from models.tts.matcha.config import FRAMES_AT_ONCE, MatchaConfig
from models.tts.matcha.encoder import TextEncoder
from models.tts.matcha.unet import FrameMasks, UNet
from modules.alignment.search import monotonic_durations
from modules.execution.prepared import packed
from modules.flow import frame_noise, path_point, seeds_of_phones, solve
from modules.layers.basic import length_mask, speaker_embedding
from modules.variance.adaptor import regulate, round_durations
from processors.dataset.batch import TtsBatch

_SEGMENTS = 2**32  # added to the seed of an update for the positions of its segments
_PARTS = 2**32  # of a frame, in which a product of float32 is a whole number


class Drawn(NamedTuple):
    """Random numbers of a batch in training."""

    noise: Tensor  # normal, (B, T', M)
    times: Tensor  # of the flow, from 0 to 1, (B,)
    positions: Tensor  # of the segment within the mel, from 0 to 1, (B,)


class MatchaOutput(NamedTuple):
    """Predictions for a batch and their targets; mels, scaled, are those of the segments."""

    log_durations_hat: Tensor  # (B, N) ln(frames)
    durations: Tensor  # (B, N) frames
    prior: Tensor  # (B, T', M), the mean mel
    mel: Tensor  # (B, T', M)
    velocity_hat: Tensor  # (B, T', M)
    velocity: Tensor  # (B, T', M), its target
    mask: Tensor  # (B, T')


class Matcha(nn.Module):
    """Phones to mel: text encoder, flow."""

    controls: ClassVar[frozenset[Control]] = frozenset({"duration", "steps", "temperature"})
    HALF: ClassVar[PartsInHalf] = {"fp32": (), "bf16": ("unet",)}
    PRECISIONS: ClassVar[tuple[AcousticPrecision, ...]] = tuple(HALF)
    frames_per_step: ClassVar[int] = 1
    mel_mean: Tensor
    mel_std: Tensor

    def __init__(
        self, config: MatchaConfig, n_phones: int, n_speakers: int, n_mels: int, log_floor: float
    ) -> None:
        super().__init__()
        self.config, self.n_speakers = config, n_speakers
        self.n_mels, self.log_floor = n_mels, log_floor
        self._update = 0  # number of the current update, seeds its noise
        speaker_size = config.speaker_size if n_speakers > 1 else 0
        self.speaker_embedding = speaker_embedding(n_speakers, speaker_size)
        self.encoder = TextEncoder(config.encoder, n_phones, speaker_size, n_mels)
        self.unet = UNet(config.decoder, n_mels + speaker_size, n_mels)
        self.register_buffer("mel_mean", torch.tensor(config.mel_mean))
        self.register_buffer("mel_std", torch.tensor(config.mel_std))

    @classmethod
    def build(cls, config: MatchaConfig, assets: Assets) -> "Matcha":
        """Builds the network for the phones, the speakers and the mel of a voice."""
        n_phones, n_speakers = len(assets.required_vocabulary()), max(1, len(assets.speakers))
        return cls(config, n_phones, n_speakers, assets.mel.n_mels, assets.mel.log_floor_value)

    def compile(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  (of torch)
        """Compiles encoder and U-Net; the search for the alignment is no graph."""
        self.encoder.compile(*args, **kwargs)
        self.unet.compile(*args, **kwargs)

    def forward(self, batch: TtsBatch) -> MatchaOutput:
        """Predicts durations, mean mel, and the velocity at drawn points of the flow.

        Without durations in the batch, they are those of the most likely alignment.
        """
        phone_ids, durations, mel_lengths = batch.phone_ids, batch.durations, batch.mel_lengths
        T = batch.mel.shape[2]
        noise, times, positions = self.draw(phone_ids, T)
        scaled = self._scaled(batch.mel)  # (B, T, M)
        mask = length_mask(batch.phone_lengths, phone_ids.shape[1])
        prior, log_durations_hat = self._encode(phone_ids, mask, batch.speaker_ids)
        if durations is None:
            durations = _aligned(prior, scaled, batch.phone_lengths, mel_lengths)
        n_frames = noise.shape[1]
        starts = (positions * (mel_lengths - n_frames + 1).clamp(min=1)).long()  # (B,)
        frames = (starts[:, None] + torch.arange(n_frames, device=scaled.device)).clamp(max=T - 1)
        frames = frames.unsqueeze(2).expand(-1, -1, self.n_mels)  # (B, T', M)
        target = scaled.gather(1, frames)
        mean = regulate(prior, durations, T).gather(1, frames)
        masks = FrameMasks.of_lengths(mel_lengths.clamp(max=n_frames), n_frames)
        point, velocity = path_point(noise, target, times)
        condition = self._conditions(mean, batch.speaker_ids)
        velocity_hat = self._velocity(point, *masks, condition, times)
        segments = mean, target, velocity_hat, velocity, masks.valid
        return MatchaOutput(log_durations_hat, durations, *segments)

    def begin_update(self, step: int) -> None:
        """Chooses the noise of the update after `step` completed updates."""
        self._update = step + 1

    def draw(self, phone_ids: Tensor, n_frames: int) -> Drawn:
        """Draws noise, times and segments for a batch whose mels have n_frames.

        They are functions of the update and the phones, (B, N), so that batches may be split in any
        way; in eval mode, of the phones alone, and of whole mels.
        """
        update = self._update if self.training else 0
        seeds = seeds_of_phones(phone_ids, update)
        positions = seeds_of_phones(phone_ids, update + _SEGMENTS).float() / 2**32
        if self.training and self.config.out_size:
            n_frames = min(n_frames, self.config.out_size)
        n_frames = -(-n_frames // FRAMES_AT_ONCE) * FRAMES_AT_ONCE
        noise = frame_noise(seeds, n_frames, self.n_mels)
        return Drawn(noise, seeds.float() / 2**32, positions.clamp(max=1 - 2**-24))

    @torch.no_grad()
    def infer(
        self,
        phone_ids: Tensor,
        phone_lengths: Tensor,
        *,
        speaker_ids: Tensor | None = None,
        seed: int | Tensor = 0,
        duration_control: float | Tensor = 1.0,
        max_frames: Tensor | None = None,
        durations: Tensor | None = None,
        steps: int | None = None,
        temperature: float | Tensor | None = None,
        noise: Tensor | None = None,
    ) -> TtsOutput:
        """Synthesises mels; call `eval()` first.

        Arguments are those of `AcousticModel.infer` and of its `controls`.

        Args:
            seed: Seed of the noise, one for all or (B,); the noise is the same in any batch.
            duration_control: Factor on frames, one for all or one per phone, (B, N).
            durations: Frames, (B, N), instead of the predicted ones.
            temperature: Factor on the noise, a number or (1,).
            noise: Normal, (B, M, T) of at least the frames of the mel, instead of that of the seed.
        """
        speaker_ids = resolve_speakers(speaker_ids, self.n_speakers, phone_lengths)
        mask = length_mask(phone_lengths, phone_ids.shape[1])
        phone_mels, log_durations = self._encode(phone_ids, mask, speaker_ids)
        if durations is None:
            durations = log_durations.float().exp().nan_to_num(0).ceil()
            durations = durations.clamp(max=float(LONGEST_PHONE_FRAMES))
        durations = round_durations(_paced(durations * mask, duration_control), max_frames)
        mel_lengths = durations.sum(dim=1)
        n_frames = _padded_length(mel_lengths)  # T'
        masks = FrameMasks.of_lengths(mel_lengths, n_frames)
        mean = regulate(phone_mels, durations, n_frames)  # (B, T', M)
        if noise is None:
            drawn = frame_noise(seeds_of_phones(phone_ids, seed), n_frames, self.n_mels)
        else:
            drawn = _checked_noise(noise, mel_lengths, n_frames, self.n_mels)
        start = (self.config.temperature if temperature is None else temperature) * drawn
        conditions = *masks, self._conditions(mean, speaker_ids)
        n_steps = self.config.steps if steps is None else steps
        scans = torch.compiler.is_exporting()
        scaled = solve(self._velocity, start, conditions, n_steps, scans=scans)
        frame_mask = length_mask(mel_lengths)
        rows = torch.arange(frame_mask.shape[1], device=scaled.device)  # a slice cannot be exported
        mels = torch.stack([scaled, mean]).index_select(2, rows) * self.mel_std + self.mel_mean
        mel, prior = (finished_mel(part, frame_mask, self.log_floor) for part in mels)
        return TtsOutput(mel, mel_lengths, durations, prior=prior)

    @torch.no_grad()
    def teacher_forced_mel(self, batch: TtsBatch) -> Tensor:
        """Draws the mel (B, M, T) of true durations, or of the most likely alignment."""
        phones, durations = (batch.phone_ids, batch.phone_lengths), self.durations_of(batch)
        output = self.infer(*phones, speaker_ids=batch.speaker_ids, durations=durations)
        missing = batch.mel.shape[2] - output.mel.shape[2]
        return F.pad(output.mel, (0, missing), value=self.log_floor)

    @torch.no_grad()
    def durations_of(self, batch: TtsBatch) -> Tensor:
        """Returns the durations of a batch, or else those of the most likely alignment, (B, N)."""
        if batch.durations is not None:
            return batch.durations
        mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
        prior, _ = self._encode(batch.phone_ids, mask, batch.speaker_ids)
        return _aligned(prior, self._scaled(batch.mel), batch.phone_lengths, batch.mel_lengths)

    def teacher_forced_attention(self, batch: TtsBatch) -> Tensor:
        """Returns the alignment with a recording as attention, (B, T, N) of 0 and 1."""
        durations = self.durations_of(batch._replace(durations=None))
        B, N = durations.shape
        each_phone = torch.eye(N, device=durations.device).expand(B, N, N)
        return regulate(each_phone, durations, batch.mel.shape[2])

    def for_inference(
        self, precision: AcousticPrecision = "fp32", compiled: CompileMode = "off"
    ) -> "Matcha":
        """Returns a copy that is faster and cannot be trained; call `eval()` first.

        "bf16" has the U-Net in bfloat16; if compiled, encoder and U-Net are graphs.
        """
        return packed(self, self.HALF[precision], ("_encode", "_velocity"), compiled)

    def _scaled(self, mel: Tensor) -> Tensor:
        """Normalises a mel for the flow, (B, M, T) -> (B, T, M)."""
        return (mel.mT - self.mel_mean) / self.mel_std

    def _encode(
        self, phone_ids: Tensor, mask: Tensor, speaker_ids: Tensor
    ) -> tuple[Tensor, Tensor]:
        embed = self.speaker_embedding
        return self.encoder(phone_ids, mask, None if embed is None else embed(speaker_ids))

    def _conditions(self, mean: Tensor, speaker_ids: Tensor) -> Tensor:
        """Appends the vector of one of several speakers to each frame of mean mels, (B, T, M)."""
        if self.speaker_embedding is None:
            return mean
        speakers = self.speaker_embedding(speaker_ids)[:, None].expand(-1, mean.shape[1], -1)
        return torch.cat([mean, speakers], dim=2)

    def _velocity(
        self, point: Tensor, valid: Tensor, read: Tensor, condition: Tensor, times: Tensor
    ) -> Tensor:
        return self.unet(point, FrameMasks(valid, read), condition, times)


@torch.no_grad()
def _aligned(prior: Tensor, mel: Tensor, phone_lengths: Tensor, mel_lengths: Tensor) -> Tensor:
    """Finds the durations, (B, N), of the most likely alignment of a mel with mean mels of phones.

    Kim et al. 2020, arXiv:2005.11129, section 3.2: the mel, (B, T, M), is normal around the mean
    mels, (B, N, M), with a variance of 1.
    """
    with torch.autocast(mel.device.type, enabled=False):
        prior, mel = prior.float(), mel.float()
        products = mel @ prior.mT  # (B, T, N)
        log_likelihood = products - prior.square().sum(dim=2)[:, None] / 2
    return monotonic_durations(log_likelihood, phone_lengths, mel_lengths)


def _paced(durations: Tensor, control: float | Tensor) -> Tensor:
    """Multiplies frames, (B, N), by a factor and rounds the end of each phone up to a frame."""
    # sums of whole numbers are exact; onnxruntime's of floats end some phones a frame off
    slowed = (durations * control * _PARTS).long()
    ends = slowed.cumsum(dim=1).float() / _PARTS  # (B, N)
    total = ends[:, -1:].floor().clamp(min=1)
    ends = ends.ceil().minimum(total)
    return ends.diff(dim=1, prepend=torch.zeros_like(total))


def _padded_length(mel_lengths: Tensor) -> int:
    """Returns the length of the longest mel, padded to a multiple of 4."""
    n_fours = cast("int", ((mel_lengths + FRAMES_AT_ONCE - 1) // FRAMES_AT_ONCE).max().item())
    torch._check(n_fours >= 1)  # an exported graph knows only what is checked
    return FRAMES_AT_ONCE * n_fours


def _checked_noise(noise: Tensor, mel_lengths: Tensor, n_frames: int, n_mels: int) -> Tensor:
    """Returns given noise, (B, M, T), as (B, T', M)."""
    longest = int(mel_lengths.max())
    if noise.shape[:2] != (len(mel_lengths), n_mels) or noise.shape[2] < longest:
        raise ValueError(
            f"the noise has the shape {tuple(noise.shape)}, expected {len(mel_lengths)} items of"
            f" {n_mels} bands and {longest} frames or more"
        )
    frames = noise.float().mT[:, :n_frames]
    return F.pad(frames, (0, 0, 0, n_frames - frames.shape[1]))
