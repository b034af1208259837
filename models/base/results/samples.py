"""Samples of validation utterances during training: audio and figures for the tracker."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from models.base.assets import Assets
from models.base.model import AcousticModel
from models.base.results.plots import plot_attention, plot_mels, plot_synthesis
from models.base.task import Sample
from modules.mel import MelSpectrogram
from modules.waveform.griffin_lim import GriffinLim
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.records import timed_phones

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# times the recording: an untrained or diverged model can give every phone seconds
_LONGEST_SAMPLE = 3


def synthesis_samples(network: AcousticModel, batch: TtsBatch, assets: Assets) -> Iterator[Sample]:
    """Synthesises utterances from their phones with Griffin-Lim; figures show mel, f0 and energy.

    Speech of more than three times the length of the recording is cut off there.
    """
    out = network.infer(
        batch.phone_ids,
        batch.phone_lengths,
        speaker_ids=batch.speaker_ids,
        max_frames=_LONGEST_SAMPLE * batch.mel_lengths,
    )
    device = out.mel.device if out.mel.is_cuda else torch.device("cpu")
    vocoder = GriffinLim(assets.mel).to(device)
    wavs = vocoder.infer(out.mel.float().to(device), out.mel_lengths.to(device)).cpu()  # (B, S)
    contours = out.contours_per_frame()  # (B, T) each, or None
    for item, id in enumerate(batch.ids):
        T, N = int(out.mel_lengths[item]), int(batch.phone_lengths[item])
        names, durations = _names(assets, batch.phone_ids[item, :N]), out.durations[item, :N]
        wav = wavs[item, : T * assets.mel.hop_length]
        phones = timed_phones(names, durations.tolist(), assets.mel.frame_s)
        labels: dict[str, Any] = {"title": id, "frame_s": assets.mel.frame_s}
        curves = (None if values is None else _plain(values[item, :T]) for values in contours)
        spoken = _plain(out.mel[item, :, :T]), names, _plain(durations)
        figures = {"mel": partial(plot_synthesis, None, *spoken, *curves, **labels)}
        if out.alignment is not None:
            weights = _plain(out.alignment[item, :T, :N])
            gate = None if out.gate is None else _plain(out.gate[item, :T])
            figures["attention"] = partial(plot_attention, None, weights, names, gate, **labels)
        yield Sample(id, {"synthesised": wav}, figures, phones)


def add_alignment_figures(
    samples: Iterator[Sample], batch: TtsBatch, durations: Tensor, assets: Assets
) -> Iterator[Sample]:
    """Adds figures of the recordings with durations, (B, N) frames, that an aligner found."""
    for item, sample in enumerate(samples):
        T, N = int(batch.mel_lengths[item]), int(batch.phone_lengths[item])
        names = _names(assets, batch.phone_ids[item, :N])
        recorded = _plain(batch.mel[item, :, :T]), names, _plain(durations[item, :N])
        curves = _plain(batch.f0[item, :T]), _plain(batch.energy[item, :T])
        labels: dict[str, Any] = {"title": sample.id, "frame_s": assets.mel.frame_s}
        draw = partial(plot_synthesis, None, *recorded, *curves, **labels)
        yield sample._replace(figures={**sample.figures, "alignment": draw})


def resynthesis_samples(
    batch: VocoderBatch, wav_hat: Tensor, mel_of: MelSpectrogram
) -> Iterator[Sample]:
    """Yields recordings and their resynthesis, (B, S); a figure shows the mels of both."""
    mel_of, mel = mel_of.to(wav_hat.device), mel_of.config
    for item, id in enumerate(batch.ids):
        S = int(batch.mel_lengths[item]) * mel.hop_length
        wavs = {"recorded": batch.wav[item, :S], "synthesised": wav_hat[item, :S].float()}
        draw = partial(_plot_mels_of, wavs, mel_of, title=id)
        yield Sample(id, {name: wav.cpu() for name, wav in wavs.items()}, {"mels": draw})


def _plot_mels_of(wavs: Mapping[str, Tensor], mel_of: MelSpectrogram, *, title: str) -> "Figure":
    mels = {name: _plain(mel_of(wav[None])[0]) for name, wav in wavs.items()}
    return plot_mels(None, mels, title=title, frame_s=mel_of.config.frame_s)


def _names(assets: Assets, phone_ids: Tensor) -> list[str]:
    symbols = assets.required_vocabulary().symbols
    return [symbols[phone] for phone in phone_ids.tolist()]


def _plain(values: Tensor) -> np.ndarray:
    return values.float().cpu().numpy()
