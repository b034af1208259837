"""Speed of HiFi-GAN on a CPU: ours beside the plain way to write it.

    OMP_NUM_THREADS=1 python -m tools.benchmarks.vocoder

The plain way is the network of the paper as its authors wrote it: `nn.Conv1d`, a whole batch at a
time, single precision. Both have the same random weights, which do not change the speed. Seconds
are those that the process worked; the ways take turns, and the median of each is compared, because
other processes and the clock of the processor change all of them.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import get_args

import torch

from config.schema import Config, VocoderPrecision
from models.base.assets import Assets
from models.base.registry import load_config
from models.vocoder.hifigan import MODEL
from models.vocoder.hifigan.config import HiFiGANConfig
from models.vocoder.hifigan.generator import HiFiGAN
from tests.models.vocoder.plain_hifigan import PlainHiFiGAN

CONFIGS = {
    "V1": "exp_config.json",
    "V2": "exp_config_v2.json",
    "V3": "exp_config_v3.json",
}
RECIPE = Path(__file__).parents[2] / "egs" / "vocoder" / "HiFiGAN"
# network, clips, frames of each: 285 are 3.3 s, 571 are 6.6 s, the mean of LJ Speech
CASES = [
    ("V1", 1, 285),
    ("V1", 1, 571),
    ("V2", 1, 285),
    ("V2", 1, 571),
    ("V3", 1, 285),
    ("V3", 8, 285),
]


def main() -> None:
    """Prints a line per network and way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=CONFIGS, default=list(CONFIGS))
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    print("     clips  frames  way          CPU s     RTF  faster")  # noqa: T201
    for name, n_clips, n_frames in CASES:
        if name in given.models:
            # each in a process of its own: what ran before decides how memory is handed out
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                process.submit(compare, name, n_clips, n_frames, given.repeats).result()


@torch.no_grad()
def compare(name: str, n_clips: int, n_frames: int, repeats: int) -> None:
    """Measures one network with mels (n_clips, M, n_frames)."""
    torch.set_num_threads(1)
    config = load_config(RECIPE / CONFIGS[name])
    ours, plain = networks(config)
    mel = torch.randn(n_clips, config.preprocess.n_mels, n_frames) - 5
    seconds = medians(
        {"plain": lambda: plain(mel)}
        | {
            precision: partial(ours.for_inference(precision).infer, mel)
            for precision in get_args(VocoderPrecision)
        },
        repeats,
    )
    mel_config = config.preprocess.mel
    audio_s = n_clips * n_frames * mel_config.hop_length / mel_config.sample_rate
    for way, taken in seconds.items():
        print(  # noqa: T201
            f"{name:4} {n_clips:5d} {n_frames:7d}  {way:10} {taken:7.3f} {taken / audio_s:7.3f} "
            f"{seconds['plain'] / taken:6.2f}x",
            flush=True,
        )


def networks(config: Config) -> tuple[HiFiGAN, PlainHiFiGAN]:
    """Both networks, with the same weights."""
    torch.manual_seed(0)
    ours = MODEL.network.build(config.model, Assets(config.preprocess.mel)).eval()
    assert isinstance(config.model, HiFiGANConfig)
    plain = PlainHiFiGAN(config.model.generator, config.preprocess.n_mels).eval()
    plain.load_state_dict(ours.state_dict())
    return ours, plain


def medians(ways: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """CPU seconds of each way, which take turns."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):  # the first warms up
        for name, work in ways.items():
            start = time.process_time()
            work()
            if turn > 0:
                taken[name].append(time.process_time() - start)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


if __name__ == "__main__":
    main()
