"""Curves, log lines, and what a model sounds like while it trains."""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn

from models.acoustic import TtsOutput
from models.assets import Assets
from models.training_state import Position
from models.updates import WindowReport
from models.validation import evaluation
from models.vocoder.griffin_lim import GriffinLim
from processors.batch import TtsBatch
from utils.errors import InputError
from utils.logging import get_logger

_GRIFFIN_LIM_ITERATIONS = 30  # enough to judge a voice by, at half the time of synthesis


class Meter:
    """Means and speed between two log lines."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._reset()

    def _reset(self) -> None:
        self._sums: dict[str, float] = {}
        self._updates = 0
        self._frames = 0
        self._start = self._clock()

    def add(self, report: WindowReport) -> None:
        """Counts one update; skipped ones count for the speed alone."""
        self._frames += report.counts.get("frames", 0)
        self._updates += 1
        if report.faults:
            self._sums["skipped"] = self._sums.get("skipped", 0.0) + 1
            return
        norms = {f"grad_norm/{name}": norm for name, norm in report.norms.items()}
        for name, value in (*report.losses.items(), *norms.items()):
            self._sums[name] = self._sums.get(name, 0.0) + value

    def read(self) -> dict[str, float]:
        """Means per update since the last reading, with steps_per_s and frames_per_s."""
        updates, seconds = max(1, self._updates), max(1e-9, self._clock() - self._start)
        skipped = self._sums.pop("skipped", 0.0)
        values = {name: total / (updates - skipped) for name, total in self._sums.items()}
        if skipped:
            values["skipped"] = skipped
        values["steps_per_s"] = updates / seconds
        values["frames_per_s"] = self._frames / seconds
        self._reset()
        return values


class Tracker:
    """Sends curves, pictures and audio to TensorBoard or Weights & Biases; log lines to the screen.

    Args:
        accelerator: Made with the same `kind` as its tracker.
        kind: "tensorboard", "wandb" or "none".
        folder: The experiment's folder; its name is the run's name.
        assets: Of the model that trains.
        step: Updates done before; later curves of an interrupted run are dropped.
    """

    def __init__(
        self, accelerator: Accelerator, kind: str, folder: Path, assets: Assets, step: int = 0
    ) -> None:
        self._accelerator = accelerator
        self._kind = kind
        self._assets = assets
        if kind == "tensorboard":
            resumed = {"tensorboard": {"purge_step": step + 1}}
            accelerator.init_trackers("log", init_kwargs=resumed)
        elif kind == "wandb":
            run = {"wandb": {"name": folder.name, "dir": str(folder)}}
            accelerator.init_trackers("arion", init_kwargs=run)

    def log_training(self, values: Mapping[str, float], position: Position, last: int) -> None:
        """One log line, and curves under `train/`."""
        seconds = (last - position.step) / values["steps_per_s"]
        speed = ("steps_per_s", "frames_per_s", "lr")
        losses = ", ".join(f"{name} {v:.4g}" for name, v in values.items() if name not in speed)
        get_logger(__name__).info(
            "update %d/%d, epoch %d: %s, lr %.3g, %.2f updates/s, %.0f frames/s, %s left",
            position.step,
            last,
            position.epoch + 1,
            losses,
            values["lr"],
            values["steps_per_s"],
            values["frames_per_s"],
            _clock_face(seconds),
        )
        curves = {f"train/{name}": value for name, value in values.items()}
        self._accelerator.log(curves, step=position.step)

    def log_validation(self, loss: float, losses: Mapping[str, float], step: int) -> None:
        """One log line, and curves under `valid/`."""
        parts = ", ".join(f"{name} {value:.4g}" for name, value in losses.items())
        get_logger(__name__).info("update %d: validation loss %.4g (%s)", step, loss, parts)
        curves = {f"valid/{name}": value for name, value in losses.items()}
        self._accelerator.log(curves | {"valid/loss": loss}, step=step)

    def log_samples(self, network: nn.Module, batch: TtsBatch | None, step: int) -> None:
        """Speaks fixed validation utterances from their phones: audio, and pictures of them."""
        if batch is None or self._kind == "none" or self._assets.vocabulary is None:
            return
        with evaluation([network], self._accelerator.device):
            self._speak(network, batch, step)

    def _speak(self, network: nn.Module, batch: TtsBatch, step: int) -> None:
        device = self._accelerator.device
        out = network.infer(  # type: ignore[operator]  # every acoustic model has it
            batch.phone_ids.to(device),
            batch.phone_lengths.to(device),
            speaker_ids=batch.speaker_ids.to(device),
        )
        vocoder = GriffinLim(self._assets.mel, _GRIFFIN_LIM_ITERATIONS)
        wavs = vocoder.infer(out.mel.float().cpu(), out.mel_lengths.cpu())  # (B, S)
        for item, id in enumerate(batch.ids):
            T, N = int(out.mel_lengths[item]), int(batch.phone_lengths[item])
            wav = wavs[item, : T * self._assets.mel.hop_length]
            figure = self._draw(_cut(out, item, N, T), batch.phone_ids[item, :N], id)
            self._send(id, wav, figure, step)

    def _draw(self, spoken: dict[str, Any], phone_ids: torch.Tensor, id: str) -> object:
        from utils.plots import plot_synthesis

        symbols = self._assets.vocabulary.symbols  # type: ignore[union-attr]  # asked before
        phones = [symbols[i] for i in phone_ids.tolist()]
        mel = self._assets.mel
        frame_s = mel.hop_length / mel.sample_rate
        return plot_synthesis(None, phones=phones, title=id, frame_s=frame_s, **spoken)

    def _send(self, id: str, wav: torch.Tensor, figure: object, step: int) -> None:
        rate = self._assets.mel.sample_rate
        wav = wav.clamp(-1, 1)
        tracker = self._accelerator.get_tracker(self._kind, unwrap=True)
        if self._kind == "tensorboard":
            tracker.add_figure(f"samples/{id}", figure, step)
            tracker.add_audio(f"samples/{id}", wav[None], step, sample_rate=rate)
            return
        import wandb

        audio = wandb.Audio(wav.numpy(), sample_rate=rate)
        tracker.log({f"samples/{id}": wandb.Image(figure), f"speech/{id}": audio}, step=step)


def check_tracker(kind: str, n_samples: int) -> None:
    """Refuses a tracker whose package is missing; accelerate would go on without one.

    Raises:
        InputError: If a package is missing; the message names it.
    """
    needed = [] if kind == "none" else [kind]
    if kind != "none" and n_samples > 0:
        needed.append("matplotlib")
    for package in needed:
        if importlib.util.find_spec(package) is None:
            key = "train.valid_samples=0" if package == "matplotlib" else "train.tracker=none"
            raise InputError(f"{package} is not installed: pip install {package}, or set {key}")


def _cut(out: TtsOutput, item: int, n_phones: int, n_frames: int) -> dict[str, Any]:
    """One item of a TtsOutput without its padding, for plot_synthesis."""
    f0, energy = out.contours_per_frame()  # (B, T) each
    spoken = {
        "mel": out.mel[item, :, :n_frames],
        "durations": out.durations[item, :n_phones],
        "f0": f0[item, :n_frames],
        "energy": energy[item, :n_frames],
    }
    return {name: values.float().cpu().numpy() for name, values in spoken.items()}


def _clock_face(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
