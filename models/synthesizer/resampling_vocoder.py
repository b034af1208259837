"""A vocoder of another mel and sample rate than the acoustic model's, made to fit."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor, nn

from models.base.interfaces import Vocoder
from modules.mel import MelConfig
from modules.mel_conversion import MelConverter


class ResamplingVocoder(nn.Module):
    """Converts mels to those of a vocoder, and its sound to the rate of an acoustic model.

    Args:
        vocoder: Speaks mels of its own definition.
        source: Definition of the mels that come; also the sample rate of the wav.
        target: The vocoder's.
    """

    def __init__(self, vocoder: Vocoder, source: MelConfig, target: MelConfig) -> None:
        super().__init__()
        self.vocoder = vocoder
        self.source = source
        self.target = target
        self.convert = MelConverter(source, target)

    @torch.no_grad()
    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None) -> Tensor:
        """Speaks.

        Args:
            mel: Natural log, (B, M, T).
            mel_lengths: (B,); without them every item has T frames.

        Returns:
            (B, T * hop_length) on the CPU, 0 beyond the lengths.
        """
        B, _, T = mel.shape
        if mel_lengths is None:
            mel_lengths = torch.full((B,), T, device=mel.device)
        converted = self.convert(mel, mel_lengths)
        lengths = self.convert.lengths(mel_lengths)
        wavs = self.vocoder.infer(converted, lengths).cpu().numpy()
        result = torch.zeros(B, T * self.source.hop_length)
        for item, (n_frames, n_theirs) in enumerate(
            zip(mel_lengths.tolist(), lengths.tolist(), strict=True)
        ):
            whole = wavs[item, : n_theirs * self.target.hop_length]
            n_samples = n_frames * self.source.hop_length
            pieces = list(self._resampled([whole], n_samples))
            result[item, :n_samples] = torch.from_numpy(np.concatenate(pieces))
        return result

    @torch.no_grad()
    def generate(
        self, mel: Tensor | Iterable[Tensor], chunk_frames: int | None = None
    ) -> Iterator[Tensor]:
        """Speaks piece by piece. The mel is converted first, all of it.

        Args:
            mel: Natural log, (1, M, T); or its pieces one after another.
            chunk_frames: Frames of a piece, of the vocoder's; None: as many as it likes.

        Yields:
            (1, n) on the CPU, T * hop_length samples in all.
        """
        whole = mel if isinstance(mel, Tensor) else torch.cat(list(mel), dim=2)
        T = whole.shape[2]
        converted = self.convert(whole, torch.tensor([T], device=whole.device))
        generated = self.vocoder.generate(converted, chunk_frames)
        pieces = (piece[0].cpu().numpy() for piece in generated)
        for piece in self._resampled(pieces, T * self.source.hop_length):
            if len(piece):  # the resampler waits until it has seen enough
                yield torch.from_numpy(piece)[None]

    def _resampled(self, pieces: Iterable[np.ndarray], n_samples: int) -> Iterator[np.ndarray]:
        """The wav at the other rate, cut at or filled up to so many samples."""
        import soxr  # here: most vocoders need none

        resampler = soxr.ResampleStream(
            self.target.sample_rate, self.source.sample_rate, 1, dtype="float32"
        )
        for piece in pieces:
            made = resampler.resample_chunk(piece)[:n_samples]
            n_samples -= len(made)
            yield made
        made = resampler.resample_chunk(np.zeros(0, np.float32), last=True)[:n_samples]
        yield np.pad(made, (0, n_samples - len(made)))
