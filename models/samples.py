"""What a model sounds and looks like while it trains: by acoustic models, and by vocoders."""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from torch import Tensor

from models.acoustic import TtsOutput
from models.assets import Assets
from models.task import Sample
from models.vocoder.griffin_lim import GriffinLim
from modules.mel import MelConfig
from processors.batch import TtsBatch, VocoderBatch
from utils.plots import plot_mels, plot_synthesis

_GRIFFIN_LIM_ITERATIONS = 30  # enough to judge a voice by, at half the time of synthesis


class AcousticModel(Protocol):
    """What every acoustic model has."""

    def infer(
        self, phone_ids: Tensor, phone_lengths: Tensor, *, speaker_ids: Tensor | None = None
    ) -> TtsOutput:
        """Phones to mel."""


def spoken_samples(network: AcousticModel, batch: TtsBatch, assets: Assets) -> Iterator[Sample]:
    """Speaks utterances from their phones by Griffin-Lim, and draws mel, f0 and energy.

    Args:
        network: In evaluation mode, on the batch's device.
        batch: Its phones and speakers are used.
        assets: Mel definition and vocabulary.

    Raises:
        ValueError: If there is no vocabulary.
    """
    if assets.vocabulary is None:
        raise ValueError("acoustic models need a vocabulary")
    symbols = assets.vocabulary.symbols
    out = network.infer(batch.phone_ids, batch.phone_lengths, speaker_ids=batch.speaker_ids)
    vocoder = GriffinLim(assets.mel, _GRIFFIN_LIM_ITERATIONS)
    wavs = vocoder.infer(out.mel.float().cpu(), out.mel_lengths.cpu())  # (B, S)
    f0, energy = out.contours_per_frame()  # (B, T) each
    for item, id in enumerate(batch.ids):
        T, N = int(out.mel_lengths[item]), int(batch.phone_lengths[item])
        figure = plot_synthesis(
            None,
            _plain(out.mel[item, :, :T]),
            [symbols[phone] for phone in batch.phone_ids[item, :N].tolist()],
            _plain(out.durations[item, :N]),
            _plain(f0[item, :T]),
            _plain(energy[item, :T]),
            title=id,
            frame_s=_frame_s(assets.mel),
        )
        wav = wavs[item, : T * assets.mel.hop_length]
        yield Sample(id, {"synthesised": wav}, {"mel": figure})


def copied_samples(
    batch: VocoderBatch, wav_hat: Tensor, mel: MelConfig, mel_of: Callable[[Tensor], Tensor]
) -> Iterator[Sample]:
    """Recordings beside their copies, and both mels one over the other.

    Args:
        batch: Recordings.
        wav_hat: The copies, (B, S).
        mel: Definition of the mels.
        mel_of: Computes them, (B, S) -> (B, M, T).
    """
    for item, id in enumerate(batch.ids):
        S = int(batch.mel_lengths[item]) * mel.hop_length
        wavs = {"recorded": batch.wav[item, :S], "synthesised": wav_hat[item, :S].float()}
        mels = {name: _plain(mel_of(wav[None])[0]) for name, wav in wavs.items()}
        figure = plot_mels(None, mels, title=id, frame_s=_frame_s(mel))
        yield Sample(id, {name: wav.cpu() for name, wav in wavs.items()}, {"mels": figure})


def _frame_s(mel: MelConfig) -> float:
    return mel.hop_length / mel.sample_rate


def _plain(values: Tensor) -> np.ndarray:
    return values.float().cpu().numpy()
