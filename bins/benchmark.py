"""Speed of training, inference, text to sound and start-up, of every model."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from utils.cli import Parser, UsageError, add_config_arguments, check_at_least, print_text, run

if TYPE_CHECKING:
    from models.benchmark.run import Options


def parser() -> Parser:
    """Builds the parser."""
    flags = Parser("Measures the speed of training and synthesis; run by `make bench`.")
    add = flags.add_argument
    add("--model", default="", metavar="NAMES", help="such as fastspeech2,hifigan (default: all)")
    add("--mode", default="all", help="training, inference, speech, start-up, several, or all")
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--threads", type=int, default=1, help="CPU threads (default: 1)")
    add("--batch_size", type=int, default=0, help="utterances of an update (default: the recipe's)")
    add("--infer_batch_size", type=int, default=1, help="utterances of a call (default: 1)")
    add("--longest", type=int, default=0, help="inference: frames of an utterance (default: all)")
    add(
        "--precision",
        default="fp32",
        help="fp32, bf16, fp16, int8, mixed, or several, as fp32,bf16; of several, those a model"
        " lacks are left out",
    )
    add("--warm_up", type=int, default=1, help="calls that are not timed (default: 1)")
    add("--steps", type=int, default=4, help="updates or batches that are timed (default: 4)")
    add("--small", action="store_true", help="tiny networks and few utterances, to try it")
    add("--random_weights", action="store_true", help="inference without a trained model")
    add(
        "--checkpoint",
        action="append",
        default=[],
        metavar="NAME=MODEL",
        help="inference of a trained model, as in fastspeech2=ckpts/tts/a; may be repeated",
    )
    add("--voice", help="speech: experiment or Hub name (default: the bundled voice)")
    add("--vocoder_dir", metavar="MODEL", help="speech: vocoder (default: the bundled one)")
    add(
        "--compare",
        nargs=2,
        metavar="SETTING",
        help="time two settings in turn, as in precision=fp32 precision=bf16; the keys are"
        " precision, threads, batches (buckets or random), and those of --set",
    )
    add("--output", type=Path, metavar="FILE", help="write all figures as JSON")
    add_config_arguments(flags, required=False)
    return flags


def main() -> None:
    """Prints tables, and writes them with all figures as JSON."""
    given = parser().parse_args()
    check_at_least(given, 1, "threads", "infer_batch_size", "steps")
    check_at_least(given, 0, "batch_size", "longest", "warm_up")

    from models.benchmark.results import plain_of
    from models.benchmark.run import run_benchmark
    from models.benchmark.tables import tables_of
    from utils.files import write_json
    from utils.logging import setup_logging

    setup_logging()
    command = " ".join(["python -m bins.benchmark", *map(_quoted, sys.argv[1:])])
    report = plain_of(run_benchmark(_options(given), command))
    if given.output is not None:
        write_json(given.output, report)
    lines = [f"{name}: {value}" for name, value in report["environment"].items()]
    print_text("\n".join(lines) + "\n")
    for name, table in tables_of(report).items():
        print_text(f"\n{name}\n\n{table}")


def _options(given: argparse.Namespace) -> "Options":
    """What the flags ask for."""
    import torch

    from models.benchmark.run import MODES, VOICE, Options

    if given.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("--device cuda: PyTorch finds no GPU here")
    modes = MODES if given.mode == "all" else tuple(given.mode.split(","))
    if unknown := [mode for mode in modes if mode not in MODES]:
        raise UsageError(f"--mode {unknown[0]}: expected all or some of {', '.join(MODES)}")
    if wrong := [one for one in given.checkpoint if "=" not in one]:
        raise UsageError(f"--checkpoint {wrong[0]}: expected NAME=MODEL")
    return Options(
        models=tuple(filter(None, given.model.split(","))),
        modes=modes,
        device=given.device,
        threads=given.threads,
        precisions=tuple(given.precision.split(",")),
        batch_size=given.batch_size,
        infer_batch_size=given.infer_batch_size,
        longest=given.longest,
        warm_up=given.warm_up,
        steps=given.steps,
        small=given.small,
        random_weights=given.random_weights,
        checkpoints=dict(one.split("=", 1) for one in given.checkpoint),
        config=given.config,
        overrides=tuple(given.overrides),
        compared=None if given.compare is None else tuple(given.compare),
        voice=given.voice or str(VOICE),
        vocoder=given.vocoder_dir,
    )


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word


if __name__ == "__main__":
    run(main)
