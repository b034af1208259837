"""What a model sounds and looks like while it trains: by acoustic models, and by vocoders."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from models.base.acoustic import TtsOutput
from models.base.assets import Assets
from models.base.interfaces import AcousticModel
from models.base.task import Sample
from modules.griffin_lim import GriffinLim
from modules.mel import MelConfig
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.records import timed_phones
from utils.plots import plot_mels, plot_synthesis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GRIFFIN_LIM_ITERATIONS = 30  # enough to judge a voice by, at half the time of synthesis


def synthesis_samples(network: AcousticModel, batch: TtsBatch, assets: Assets) -> Iterator[Sample]:
    """Speaks utterances from their phones by Griffin-Lim, and draws mel, f0 and energy.

    Args:
        network: In evaluation mode, on the batch's device.
        batch: Its phones and speakers are used.
        assets: Mel definition and vocabulary.

    Raises:
        ValueError: If there is no vocabulary.
    """
    out = network.infer(batch.phone_ids, batch.phone_lengths, speaker_ids=batch.speaker_ids)
    device = out.mel.device if out.mel.is_cuda else torch.device("cpu")
    vocoder = GriffinLim(assets.mel, _GRIFFIN_LIM_ITERATIONS).to(device)
    wavs = vocoder.infer(out.mel.float().to(device), out.mel_lengths.to(device)).cpu()  # (B, S)
    for item, id in enumerate(batch.ids):
        T, N = int(out.mel_lengths[item]), int(batch.phone_lengths[item])
        names = _names(assets, batch.phone_ids[item, :N])
        draw = partial(_drawn, out, item, names, title=id, frame_s=_frame_s(assets.mel))
        wav = wavs[item, : T * assets.mel.hop_length]
        phones = timed_phones(names, out.durations[item, :N].tolist(), _frame_s(assets.mel))
        yield Sample(id, {"synthesised": wav}, {"mel": draw}, phones)


def add_alignment_figures(
    samples: Iterator[Sample], batch: TtsBatch, durations: Tensor, assets: Assets
) -> Iterator[Sample]:
    """Adds pictures of the recordings, with the durations that an aligner finds in them.

    Args:
        samples: Of the batch, in its order.
        batch: Recordings.
        durations: Frames, (B, N).
        assets: Mel definition and vocabulary.
    """
    for item, sample in enumerate(samples):
        T, N = int(batch.mel_lengths[item]), int(batch.phone_lengths[item])
        draw = partial(
            plot_synthesis,
            None,
            _plain(batch.mel[item, :, :T]),
            _names(assets, batch.phone_ids[item, :N]),
            _plain(durations[item, :N]),
            _plain(batch.f0[item, :T]),
            _plain(batch.energy[item, :T]),
            title=sample.id,
            frame_s=_frame_s(assets.mel),
        )
        yield sample._replace(figures={**sample.figures, "alignment": draw})


def _drawn(
    out: TtsOutput, item: int, names: Sequence[str], *, title: str, frame_s: float
) -> "Figure":
    """One utterance of a batch."""
    T, N = int(out.mel_lengths[item]), len(names)
    f0, energy = out.contours_per_frame()  # (B, T) each
    return plot_synthesis(
        None,
        _plain(out.mel[item, :, :T]),
        names,
        _plain(out.durations[item, :N]),
        _plain(f0[item, :T]),
        _plain(energy[item, :T]),
        title=title,
        frame_s=frame_s,
    )


def resynthesis_samples(
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
        draw = partial(_drawn_mels, wavs, mel_of, title=id, frame_s=_frame_s(mel))
        yield Sample(id, {name: wav.cpu() for name, wav in wavs.items()}, {"mels": draw})


def _drawn_mels(
    wavs: Mapping[str, Tensor], mel_of: Callable[[Tensor], Tensor], *, title: str, frame_s: float
) -> "Figure":
    mels = {name: _plain(mel_of(wav[None])[0]) for name, wav in wavs.items()}
    return plot_mels(None, mels, title=title, frame_s=frame_s)


def _names(assets: Assets, phone_ids: Tensor) -> list[str]:
    """Names of phones (N,)."""
    symbols = assets.required_vocabulary().symbols
    return [symbols[phone] for phone in phone_ids.tolist()]


def _frame_s(mel: MelConfig) -> float:
    return mel.hop_length / mel.sample_rate


def _plain(values: Tensor) -> np.ndarray:
    return values.float().cpu().numpy()
