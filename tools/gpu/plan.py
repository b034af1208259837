"""What to run on a machine with a GPU, in calls of at most ten minutes: `make gpu`, repeated.

The pieces: the CUDA tests; training of the voice and the vocoder that the repository ships, their
scores and their weights; the benchmark of every model, and of compiled ones. A call goes on where
the last one stopped (`state.json`; training resumes from its checkpoint). `results` in the output
folder holds what to copy from the machine: at most eight files of at most 16 MB. Needs torch,
numpy, numba, accelerate, safetensors, json5 and pytest.
"""

import os
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from config.schema import Config
from models.base.registry import load_config
from models.checkpoint.folders import steps_of
from models.checkpoint.loading import CHECKPOINTS
from models.programs.benchmark.run import generated_config, known_models
from tools.gpu.results import (
    benchmarks_folder,
    results_folder,
    save_weights,
    score,
    write_results,
)
from utils.cli import Parser, run
from utils.config import to_plain
from utils.files import read_json, write_json
from utils.logging import get_logger, setup_logging

ROOT = Path(__file__).parents[2]
_STATE = "state.json"
_SAVING_S = 60  # from SIGTERM to the end: a training run writes a checkpoint
_LEAST_S = 20  # no piece is begun with less time left
_PRECISIONS = {"training": "fp32,bf16,fp16", "inference": "fp32,bf16"}
# By name: the network for --small, the recipe's configuration, the folder in --store.
_TRAININGS = {
    "voice": ("flowspeech", "egs/tts/FlowSpeech/exp_config_bundled.json"),
    "vocoder": ("freevgl", "egs/vocoder/FreeVGL/exp_config_bundled.json"),
}
_SMALL = (
    *("train.max_steps=2", "train.batch_size=4", "train.valid_samples=0", "train.valid_steps=0"),
    *("train.cut_mel_frame=16", "train.dataloader.num_worker=0", "train.mixed_precision=fp32"),
)

log = get_logger(__name__)


class Piece(NamedTuple):
    """A part of the plan."""

    name: str
    work: Callable[[Namespace, float], int | None]  # until a time; None: not finished, go on


def main() -> None:
    """Does as much of the plan as fits into one call; exits with 3 while some of it is left."""
    parser = Parser("Tests, measures and trains on a GPU, in calls that end within ten minutes.")
    add = parser.add_argument
    add(
        "--out", type=Path, required=True, help="state, checkpoints and results; kept between calls"
    )
    add("--store", type=Path, help="<store>/voice and <store>/vocoder: output of stage 1 of both"
        " recipes (default: train on generated data)")  # fmt: skip
    add("--device", choices=("cuda", "cpu"), default="cuda")
    add("--minutes", type=float, default=9.0, help="length of a call (default: %(default)s)")
    add("--small", action="store_true", help="tiny networks and few tests, to try the plan")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: PyTorch finds no GPU here")
    setup_logging()
    arguments.out = arguments.out.resolve()
    raise SystemExit(carry_out(arguments, PIECES))


def carry_out(arguments: Namespace, pieces: Sequence[Piece]) -> int:
    """Does the unfinished pieces in turn.

    Returns:
        0 when all are done, 1 if one of them failed, 3 if the time was too short.
    """
    end = time.monotonic() + 60 * arguments.minutes
    for folder in (results_folder, benchmarks_folder):
        folder(arguments.out).mkdir(parents=True, exist_ok=True)
    path = arguments.out / _STATE
    state = read_json(path) if path.exists() else {}
    assert isinstance(state, dict)
    for piece in pieces:
        entry = state.setdefault(piece.name, {"code": None, "seconds": 0.0, "calls": 0})
        if entry["code"] is not None:
            continue
        if end - time.monotonic() < _LEAST_S:
            break
        log.info("%s, call %d", piece.name, entry["calls"] + 1)
        begin = time.monotonic()
        entry["code"] = piece.work(arguments, end)
        entry["calls"] += 1
        entry["seconds"] = round(entry["seconds"] + time.monotonic() - begin, 1)
        write_json(path, state)
    write_results(arguments.out, state)
    codes = [state.get(piece.name, {}).get("code") for piece in pieces]
    log.info("%s", ", ".join(f"{p.name}: {c}" for p, c in zip(pieces, codes, strict=True)))
    return 3 if None in codes else int(any(codes))


def _test(arguments: Namespace, end: float) -> int | None:
    chosen = ["-k", "fastspeech2 and fp32"] if arguments.small else []
    files = [str(ROOT / "tests/gpu/test_numbers.py"), "-rs", "-p", "no:cacheprovider"]
    device = {"ARION_TEST_DEVICE": arguments.device}
    return _run(arguments, ["pytest", "-q", *files, *chosen], end, device)


def _benchmark(model: str, mode: str, arguments: Namespace, end: float) -> int | None:
    """Measures training or inference of one model in each precision."""
    precision = "fp32" if arguments.small else _PRECISIONS[mode]
    file = f"{model}-{mode}.json"
    return _measure(arguments, end, file, model, mode, "--precision", precision)


def _compile(mode: str, arguments: Namespace, end: float) -> int | None:
    """Compares FastSpeech 2 as it is with graphs of a few shapes, as CUDA graphs."""
    key = {"training": "train.compile", "inference": "inference.compile"}[mode]
    settings = [f"{key}=off", f"{key}=buckets", "--warm_up", "1" if arguments.small else "20"]
    settings += ["--set", "train.compile_buckets=1"] if arguments.small else []
    file = f"compiled-{mode}.json"
    return _measure(arguments, end, file, "fastspeech2", mode, "--compare", *settings)


def _measure(
    arguments: Namespace, end: float, file: str, model: str, mode: str, *settings: str
) -> int | None:
    flags = {
        "--model": model,
        "--mode": mode,
        "--device": arguments.device,
        "--output": str(benchmarks_folder(arguments.out) / file),
    }
    words = [word for pair in flags.items() for word in pair]
    size = ["--small", "--steps", "1"] if arguments.small else ["--steps", "20"]
    return _run(arguments, ["bins.benchmark", *words, *settings, *size], end)


def _train(name: str, arguments: Namespace, end: float) -> int | None:
    """Trains, or continues; a signal at the end of the call makes the trainer save and leave."""
    config = arguments.out / f"{name}.json"
    if not config.exists():
        write_json(config, to_plain(_config(name, arguments)))
    resume = ["--resume"] if steps_of(arguments.out / name / CHECKPOINTS) else []
    command = ["bins.train", "--config", str(config), "--name", name, *resume]
    use_cpu = {"CUDA_VISIBLE_DEVICES": ""} if arguments.device == "cpu" else {}
    return _run(arguments, command, end, use_cpu)


def _config(name: str, arguments: Namespace) -> Config:
    model, recipe = _TRAININGS[name]
    settings = [f"log_dir={arguments.out}", "train.tracker=none"]
    if arguments.store is not None:
        settings.append(f"preprocess.processed_dir={arguments.store.resolve() / name}")
        # the corpora were on the machine of stage 1
        return replace(load_config(ROOT / recipe, settings), dataset_path={})
    if arguments.small:
        return generated_config(model, [*settings, *_SMALL], small=True)
    return load_config(ROOT / recipe, [*settings, "train.synthetic_utterances=13092"])


def _finish(name: str, arguments: Namespace, _end: float) -> int:
    """Scores of a trained model, and its weights in 16 bits."""
    if not steps_of(arguments.out / name / CHECKPOINTS):
        return 1  # training failed; the log says why
    score(arguments.out, name, torch.device(arguments.device))
    save_weights(arguments.out, name)
    return 0


def _run(
    arguments: Namespace, module: Sequence[str], end: float, variables: dict[str, str] | None = None
) -> int | None:
    """Runs `python -m module` with its output in the log.

    Returns:
        Its exit code; None if the time was up and it was stopped.
    """
    with (results_folder(arguments.out) / "log.txt").open("ab") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", *module],
            cwd=ROOT,
            env=os.environ | (variables or {}),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            return child.wait(max(1.0, end - _SAVING_S - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGTERM)
        try:
            child.wait(_SAVING_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        return None


PIECES = (
    Piece("tests", _test),
    *(
        Piece(f"{what} {name}", partial(do, name))
        for name in _TRAININGS
        for what, do in (("train", _train), ("finish", _finish))
    ),
    *(
        Piece(f"{mode} of {model}", partial(_benchmark, model, mode))
        for model in known_models()
        for mode in _PRECISIONS
    ),
    *(Piece(f"compiled {mode}", partial(_compile, mode)) for mode in _PRECISIONS),
)

if __name__ == "__main__":
    run(main)
