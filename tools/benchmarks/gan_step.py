"""CPU seconds and memory of one training step of HiFi-GAN: ours beside the plain way to write it.

    OMP_NUM_THREADS=1 python -m tools.benchmarks.gan_step

The plain way is a step as the authors of the paper wrote it (tests/models/vocoder/plain_hifigan):
the same gradients, as a test proves. Weights and audio are random, which does not change the speed.
Each way has a process of its own. They take turns and the median of each is compared, because other
processes and the clock of the processor change all of them.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import torch
from accelerate import Accelerator
from torch.nn import functional as F

from config.schema import Config
from models.base.assets import Assets
from models.base.registry import load_config
from models.training.optimizers import build_optimizer
from models.training.trainer import Updater
from models.vocoder.hifigan import MODEL, normalise_weights
from models.vocoder.hifigan.config import HiFiGANConfig
from modules.mel import MelSpectrogram
from processors.dataset.batch import VocoderBatch
from tests.models.vocoder.plain_hifigan import (
    PlainDiscriminator,
    PlainHiFiGAN,
    discriminator_loss,
    generator_loss,
)

RECIPE = Path(__file__).parents[2] / "egs" / "vocoder" / "HiFiGAN" / "exp_config.json"
WAYS = {
    "plain": (False, "no"),
    "ours": (True, "no"),
    "plain, bf16": (False, "bf16"),
    "ours, bf16": (True, "bf16"),
}
Step = Callable[[], object]


def main() -> None:
    """Prints a line per way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", default=str(RECIPE), help="default: V1")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--batch", type=int, default=2, help="segments")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    arguments = given.config, given.set, given.batch
    processes = {
        way: ProcessPoolExecutor(1, get_context("spawn"), prepare, (way, *arguments))
        for way in WAYS
    }
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    for turn in range(given.repeats + 1):  # the first warms up
        for way, process in processes.items():
            seconds = process.submit(timed_step).result()
            taken[way] += [seconds] if turn > 0 else []
    print("way          CPU s  faster  peak MiB")  # noqa: T201
    for way, process in processes.items():
        median, peak = statistics.median(taken[way]), process.submit(peak_mib).result()
        factor = statistics.median(taken["plain"]) / median
        print(f"{way:11} {median:6.2f} {factor:6.2f}x {peak:9.0f}")  # noqa: T201
        process.shutdown()


class _Prepared:
    """What a process of its own steps through."""

    step: Step


def prepare(way: str, path: str, overrides: list[str], n_segments: int) -> None:
    """Builds one way in this process."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    is_ours, precision = WAYS[way]
    config = load_config(Path(path), overrides)
    batch = noise(config, n_segments)
    _Prepared.step = (our_step if is_ours else plain_step)(config, batch, precision)


def timed_step() -> float:
    """CPU seconds of one step."""
    start = time.process_time()
    _Prepared.step()
    return time.process_time() - start


def peak_mib() -> float:
    """The most memory that this process had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def noise(config: Config, n_segments: int) -> VocoderBatch:
    """Segments as in training."""
    mel_config, T = config.preprocess.mel, config.train.cut_mel_frame
    wav = 0.1 * torch.randn(n_segments, T * mel_config.hop_length)
    ids = tuple(str(number) for number in range(n_segments))
    return VocoderBatch(ids, MelSpectrogram(mel_config)(wav), torch.full((n_segments,), T), wav)


def our_step(config: Config, batch: VocoderBatch, precision: str) -> Step:
    """As the trainer takes it, clipping included."""
    task = MODEL.task.build(config, Assets(config.preprocess.mel))
    accelerator = Accelerator(cpu=True, mixed_precision=precision)
    for network in task.networks.values():
        accelerator.prepare_model(network, evaluation_mode=True)
        network.train()
    optimizers = {
        name: build_optimizer(network, config.train) for name, network in task.networks.items()
    }
    updater = Updater(
        task, optimizers, torch.device("cpu"), max_norm=config.train.grad_clip_thresh or 1e3
    )
    return lambda: updater.run([batch])


def plain_step(config: Config, batch: VocoderBatch, precision: str) -> Step:
    """As the paper's authors take it."""
    assert isinstance(config.model, HiFiGANConfig)
    mel = config.preprocess.mel
    generator = PlainHiFiGAN(config.model.generator, mel.n_mels)
    normalise_weights(generator)
    discriminators = PlainDiscriminator(config.model.discriminator)
    mel_of = MelSpectrogram(replace(mel, f_max=mel.sample_rate / 2))
    adam = config.train.adam
    by_discriminators, by_generator = (
        torch.optim.AdamW(network.parameters(), adam.lr, adam.betas, foreach=False)
        for network in (discriminators, generator)
    )

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            wav_hat = generator(batch.mel)
            of_discriminators = discriminator_loss(discriminators, batch.wav, wav_hat)
        by_discriminators.zero_grad()
        of_discriminators.backward()
        by_discriminators.step()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            of_generator = generator_loss(discriminators, batch.wav, wav_hat)
        mel_loss = F.l1_loss(mel_of(wav_hat.float()), mel_of(batch.wav))
        by_generator.zero_grad()
        (of_generator + 45 * mel_loss).backward()
        by_generator.step()

    return step


if __name__ == "__main__":
    main()
