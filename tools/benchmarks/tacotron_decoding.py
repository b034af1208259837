"""Speed of Tacotron 2's decoder on a CPU: ours compared with the plain way to write it.

    OMP_NUM_THREADS=1 python -m tools.benchmarks.tacotron_decoding

The plain way is in tests/models/checkpoint/importers/tacotron2_originals.py: modules called one
after the other, no dropout. Both have the published size and the same random weights. Seconds are
CPU seconds; the ways take turns, and the median of each is compared.
"""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast, get_args

import torch
from torch import Tensor

from models.checkpoint.loading import load_model
from models.tts.tacotron2 import Tacotron2
from models.tts.tacotron2.decoding import DecoderWeights, Precision, decode
from tests.models.checkpoint.importers.tacotron2_originals import FULL, TacotronOriginal, original
from tools.benchmarks.vocoder import medians

N_PHONES = 100
FRAMES_PER_S = 22050 / 256


def main() -> None:
    """Prints a line per batch and way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 4, 8])
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    plain = original(FULL)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint_Tacotron2.pt"
        torch.save({"epoch": 1, "config": FULL, "state_dict": plain.state_dict()}, path)
        decoder = cast("Tacotron2", load_model(path).network).decoder
    weights = {way: DecoderWeights(decoder, way) for way in get_args(Precision)}
    print("texts  way     ms/step     RTF  faster  mel error")  # noqa: T201
    for n_texts in given.batches:
        compare(plain, weights, n_texts, given.frames, given.repeats)


@torch.no_grad()
def compare(
    plain: TacotronOriginal,
    weights: dict[Precision, DecoderWeights],
    n_texts: int,
    n_frames: int,
    repeats: int,
) -> None:
    """Measures a batch of texts of 100 phones; the error is the mean absolute difference."""
    torch.manual_seed(0)
    memory = torch.tanh(torch.randn(n_texts, N_PHONES, 512))
    ours = partial(
        decode,
        memory=memory,
        phone_mask=torch.ones(n_texts, N_PHONES, dtype=torch.bool),
        masks=None,
        gate_threshold=1.0,
        limits=torch.full((n_texts,), n_frames),
    )
    ways: dict[str, Callable[[], Tensor]] = {"plain": lambda: plain_frames(plain, memory, n_frames)}
    ways |= {name: partial(lambda w: ours(w).mel, each) for name, each in weights.items()}
    mels = {name: way() for name, way in ways.items()}
    taken = medians(ways, repeats)
    for name, value in taken.items():
        error = (mels[name] - mels["plain"]).abs().mean().item()
        rtf = value / (n_texts * n_frames / FRAMES_PER_S)
        print(  # noqa: T201
            f"{n_texts:5}  {name:6} {1000 * value / n_frames:8.2f} {rtf:7.3f}"
            f" {taken['plain'] / value:6.1f}x  {error:.1e}"
        )


def plain_frames(plain: TacotronOriginal, memory: Tensor, n_frames: int) -> Tensor:
    """Frames of the plain way, (B, T, M), joined one by one as NVIDIA's code does at the end."""
    state = plain.start(memory)
    frame = torch.zeros(len(memory), FULL["n_mel_channels"])
    frames = []
    for _ in range(n_frames):
        frame, gate = plain.step(state, memory, frame)
        frames.append(frame)
        if bool((torch.sigmoid(gate) > 1).all()):
            break
    return torch.stack(frames, dim=1)


if __name__ == "__main__":
    main()
