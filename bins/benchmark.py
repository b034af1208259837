"""Speed of FastSpeech 2: training steps and inference at LJSpeech's lengths, and start-up.

    python -m bins.benchmark --device cpu --threads 1

Weights and features are random, which does not change the speed. Times are process CPU time on a
CPU, where other processes disturb them less, and wall-clock time on a GPU.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from models.base.acoustic_task import AcousticTask
from models.base.assets import Assets
from models.tts.fastspeech2 import FastSpeech2, FastSpeech2Config, losses_of
from modules.griffin_lim import GriffinLim
from modules.masking import length_mask
from modules.mel import MelConfig
from modules.variance_adaptor import ContourStats
from processors.dataset.batch import TtsBatch, on_device
from processors.dataset.sampler import FrameBudgetSampler, frame_budget
from utils.cli import Parser, run
from utils.logging import get_logger, setup_logging

ROOT = Path(__file__).resolve().parents[1]
# frames and phones of 13,092 utterances of LJSpeech: its audio, its MFA alignments
LENGTHS = ROOT / "processors" / "dataset" / "generated" / "ljspeech_lengths.csv.gz"
N_PHONES = 152
MEL = MelConfig()

log = get_logger(__name__)


class Setting(NamedTuple):
    """Device and precision of a measurement."""

    device: torch.device
    precision: str  # "fp32" or "bf16"

    def autocast(self) -> torch.autocast:
        """The context of a forward pass."""
        enabled = self.precision == "bf16"
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=enabled)


def main() -> None:
    """Logs a line per measurement."""
    parser = Parser("Measures the speed of training, inference and start-up; run by `make bench`.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--batch_size", type=int, default=16, help="mean utterances per batch")
    parser.add_argument("--steps", type=int, default=4, help="training steps to measure")
    arguments = parser.parse_args()
    for flag in ("threads", "batch_size", "steps"):
        if (value := getattr(arguments, flag)) < 1:
            parser.error(f"--{flag} is {value}, expected 1 or more")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: PyTorch finds no GPU here")
    setup_logging()
    torch.set_num_threads(arguments.threads)
    settings = [
        Setting(torch.device(arguments.device), precision) for precision in ("fp32", "bf16")
    ]
    for setting in settings:
        _measure_training(setting, arguments.batch_size, arguments.steps)
    for setting in settings:
        _measure_inference(setting)
    _measure_griffin_lim(settings[0].device)
    for statement in ("import torch", "import models.synthesizer.synthesizer"):
        _measure_start(statement)


def _measure_training(setting: Setting, batch_size: int, steps: int) -> None:
    """Frames per second, without padding, of training steps: losses, gradients, clipping, Adam."""
    network = _random_network().to(setting.device).train()
    task = AcousticTask(network, Assets(MelConfig()), losses_of)
    optimizer = torch.optim.Adam(task.network.parameters(), lr=1e-4, fused=True)

    def step(batch: TtsBatch, counts: dict) -> None:
        with setting.autocast():
            (update,) = task.training_step(batch)
        terms = [term.total / counts[term.per] for term in update.losses.values()]
        optimizer.zero_grad()
        torch.stack(terms).sum().backward()
        torch.nn.utils.clip_grad_norm_(task.network.parameters(), 1.0)
        optimizer.step()

    batches = list(_random_batches(batch_size, steps + 1))
    taken = []
    for batch in batches:
        counts = task.counts(batch)
        moved = on_device(batch, setting.device)
        taken.append(_seconds(lambda: step(moved, counts), setting.device))  # noqa: B023
    measured = batches[1:]  # the first step warms up
    frames = sum(int(batch.mel_lengths.sum()) for batch in measured)
    cells = sum(batch.f0.numel() for batch in measured)
    log.info(
        "training   %s  %8.0f real frames/s  %.3f s per step of %.0f frames, %.1f %% padding",
        setting.precision,
        frames / sum(taken[1:]),
        sum(taken[1:]) / steps,
        frames / steps,
        100 * (1 - frames / cells),
    )


@torch.no_grad()
def _measure_inference(setting: Setting, repeats: int = 10) -> None:
    """Real-time factor of 95 phones of 6 frames each (6.6 s), in batches of one and eight."""
    network = _random_network().to(setting.device).eval()
    for n_items in (1, 8):
        ids = torch.randint(1, N_PHONES, (n_items, 95), device=setting.device)
        lengths = torch.full((n_items,), 95, device=setting.device)
        durations = torch.full_like(ids, 6)

        def synthesise() -> None:
            with setting.autocast():
                network.infer(ids, lengths, durations=durations)  # noqa: B023

        taken = _best(synthesise, setting.device, repeats)
        audio_s = n_items * 95 * 6 * MEL.hop_length / MEL.sample_rate
        log.info(
            "inference  %s  batch %d  %.3f s  real-time factor %.4f",
            setting.precision,
            n_items,
            taken,
            taken / audio_s,
        )


def _measure_griffin_lim(device: torch.device, n_frames: int = 300) -> None:
    """Real-time factor of 60 iterations."""
    vocoder = GriffinLim(MEL).to(device)
    mel = torch.randn(1, MEL.n_mels, n_frames, device=device) - 5
    taken = _best(lambda: vocoder.infer(mel), device, repeats=3)
    audio_s = n_frames * MEL.hop_length / MEL.sample_rate
    log.info("griffin-lim           %.3f s  real-time factor %.4f", taken, taken / audio_s)


def _measure_start(statement: str) -> None:
    """CPU seconds that a fresh interpreter takes for an import."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    log.info("start-up   %-26s  %.2f s", statement, taken)


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of one call."""
    if device.type == "cpu":
        start = time.process_time()
        work()
        return time.process_time() - start
    torch.cuda.synchronize(device)
    start = time.perf_counter()
    work()
    torch.cuda.synchronize(device)
    return time.perf_counter() - start


def _best(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Seconds of the fastest of several calls, after a warm-up."""
    work()
    return min(_seconds(work, device) for _ in range(repeats))


def _random_network() -> FastSpeech2:
    """FastSpeech 2 at its default size."""
    pitch = ContourStats.of(mean=208, std=47, minimum=71, maximum=740)
    energy = ContourStats.of(mean=37, std=26, minimum=0, maximum=250)
    return FastSpeech2(FastSpeech2Config(), N_PHONES, MEL.n_mels, pitch, energy)


def _random_batches(batch_size: int, count: int) -> Iterator[TtsBatch]:
    """Batches with the lengths of LJSpeech, as training draws them, of random content."""
    frames, phones = np.loadtxt(LENGTHS, delimiter=",", skiprows=1, dtype=np.int64).T
    sampler = FrameBudgetSampler(frames, frame_budget(frames, batch_size, 0), seed=0)
    for items in sampler.plan(epoch=1)[:count]:
        yield _random_batch(torch.from_numpy(frames[items]), torch.from_numpy(phones[items]))


def _random_batch(frames: torch.Tensor, phones: torch.Tensor) -> TtsBatch:
    """A batch of these lengths, (B,) each; phones of an utterance have nearly equal durations."""
    phone_mask, frame_mask = length_mask(phones), length_mask(frames)
    position = torch.arange(phone_mask.shape[1] + 1).minimum(phones[:, None])  # (B, N + 1)
    B, T = frame_mask.shape
    return TtsBatch(
        ids=tuple(str(item) for item in range(B)),
        phone_ids=torch.randint(1, N_PHONES, phone_mask.shape) * phone_mask,
        phone_lengths=phones,
        speaker_ids=torch.zeros(B, dtype=torch.long),
        durations=(position * frames[:, None] // phones[:, None]).diff(dim=1),
        mel=(torch.randn(B, MEL.n_mels, T) - 5) * frame_mask[:, None],
        mel_lengths=frames,
        f0=(torch.rand(B, T) * 200 + 100) * frame_mask,
        energy=torch.rand(B, T) * 100 * frame_mask,
    )


if __name__ == "__main__":
    run(main)
