"""Speed from phones to sound on a CPU, compared with plain implementations.

    OMP_NUM_THREADS=1 python -m tools.benchmarks.speech

The plain implementations are FastSpeech 2 as in ming024's code and HiFi-GAN V1 as in its authors':
ordinary layers in fp32. Ours has the same random weights, imported from a checkpoint of theirs.
Seconds are CPU time; the implementations are called in turn, and their medians are compared.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
import yaml
from torch import nn

from models.base.registry import load_config
from models.checkpoint.loading import load_model
from tests.models.tts.plain_fastspeech2 import N_SYMBOLS, SETTINGS, PlainFastSpeech2
from tools.benchmarks.vocoder import CONFIGS, RECIPE, medians, networks
from utils.files import write_json

SAMPLE_RATE, HOP_LENGTH = 22050, 256
PREPROCESS = {
    "dataset": "LJSpeech",
    "path": {"preprocessed_path": ""},
    "preprocessing": {
        "text": {"language": "en"},
        "audio": {"sampling_rate": SAMPLE_RATE},
        "stft": {"filter_length": 1024, "hop_length": HOP_LENGTH, "win_length": 1024},
        "mel": {"n_mel_channels": 80, "mel_fmin": 0, "mel_fmax": 8000},
        "pitch": {"feature": "phoneme_level", "normalization": True},
        "energy": {"feature": "phoneme_level", "normalization": True},
    },
}
STATS = {"pitch": [-3.0, 3.0, 200.0, 40.0], "energy": [-1.5, 8.0, 37.0, 26.0]}


def main() -> None:
    """Prints a line per implementation, for the acoustic model alone and with the vocoder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--phones", type=int, default=95)
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(1)
    compare(given.phones, given.repeats)


@torch.no_grad()
def compare(n_phones: int, repeats: int) -> None:
    """Measures one utterance, six frames per phone."""
    torch.manual_seed(0)
    plain = PlainFastSpeech2().eval()
    ours = imported(plain)
    our_vocoder, plain_vocoder = networks(load_config(RECIPE / CONFIGS["V1"]))
    ids = torch.randint(1, N_SYMBOLS, (1, n_phones))
    lengths = torch.tensor([n_phones])
    acoustic: dict[str, Any] = {"plain": partial(plain, ids)}
    vocoders: dict[str, Any] = {"plain": plain_vocoder}
    for precision in ("fp32", "bf16"):
        network = ours.for_inference(precision)
        acoustic[precision] = partial(lambda n: n.infer(ids, lengths).mel, network)
        vocoders[precision] = our_vocoder.for_inference(precision).infer
    mels = {way: speak() for way, speak in acoustic.items()}
    whole = {way: lambda way=way: vocoders[way](acoustic[way]()) for way in acoustic}
    audio_s = mels["plain"].shape[2] * HOP_LENGTH / SAMPLE_RATE
    print(f"{audio_s:.2f} s of speech    CPU s     RTF  faster  mel error")  # noqa: T201
    for name, ways in (("mel", acoustic), ("sound", whole)):
        seconds = medians(ways, repeats)
        for way, taken in seconds.items():
            error = (mels[way] - mels["plain"]).abs().mean().item()
            print(  # noqa: T201
                f"{name:8} {way:8} {taken:9.3f} {taken / audio_s:7.3f} "
                f"{seconds['plain'] / taken:6.2f}x  {error:.1e}",
                flush=True,
            )


def imported(plain: nn.Module) -> Any:
    """Our network with the weights of the plain one, by way of its files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torch.save({"model": plain.state_dict()}, folder / "1.pth.tar")
        for file, values in (("preprocess", PREPROCESS), ("model", SETTINGS), ("train", {})):
            (folder / f"{file}.yaml").write_text(yaml.safe_dump(values))
        write_json(folder / "stats.json", STATS)
        return cast("Any", load_model(folder).network)


if __name__ == "__main__":
    main()
