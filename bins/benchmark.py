"""Speed of training, inference, text to sound and start-up, of every model."""

import sys
from pathlib import Path

from utils.cli import Parser, UsageError, add_config_arguments, print_text, run

_POSITIVE = ("threads", "infer_batch_size", "steps")


def main() -> None:
    """Prints tables, and writes them with all figures as JSON."""
    parser = Parser("Measures the speed of training and synthesis; run by `make bench`.")
    add = parser.add_argument
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
    add_config_arguments(parser, required=False)
    arguments = parser.parse_args()
    for flag in _POSITIVE:
        if (value := getattr(arguments, flag)) < 1:
            parser.error(f"--{flag} is {value}, expected 1 or more")
    for flag in ("batch_size", "longest", "warm_up"):
        if (value := getattr(arguments, flag)) < 0:
            parser.error(f"--{flag} is {value}, expected 0 or more")

    import torch

    from models.benchmark.results import plain_of
    from models.benchmark.run import MODES, VOICE, Options, run_benchmark
    from models.benchmark.tables import tables_of
    from utils.files import write_json
    from utils.logging import setup_logging

    setup_logging()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: PyTorch finds no GPU here")
    modes = MODES if arguments.mode == "all" else tuple(arguments.mode.split(","))
    if unknown := [mode for mode in modes if mode not in MODES]:
        parser.error(f"--mode {unknown[0]}: expected all or some of {', '.join(MODES)}")
    if wrong := [one for one in arguments.checkpoint if "=" not in one]:
        raise UsageError(f"--checkpoint {wrong[0]}: expected NAME=MODEL")
    options = Options(
        models=tuple(filter(None, arguments.model.split(","))),
        modes=modes,
        device=arguments.device,
        threads=arguments.threads,
        precisions=tuple(arguments.precision.split(",")),
        batch_size=arguments.batch_size,
        infer_batch_size=arguments.infer_batch_size,
        longest=arguments.longest,
        warm_up=arguments.warm_up,
        steps=arguments.steps,
        small=arguments.small,
        random_weights=arguments.random_weights,
        checkpoints=dict(one.split("=", 1) for one in arguments.checkpoint),
        config=arguments.config,
        overrides=tuple(arguments.overrides),
        compared=None if arguments.compare is None else tuple(arguments.compare),
        voice=arguments.voice or str(VOICE),
        vocoder=arguments.vocoder_dir,
    )
    command = " ".join(["python -m bins.benchmark", *map(_quoted, sys.argv[1:])])
    report = plain_of(run_benchmark(options, command))
    if arguments.output is not None:
        write_json(arguments.output, report)
    lines = [f"{name}: {value}" for name, value in report["environment"].items()]
    print_text("\n".join(lines) + "\n")
    for name, table in tables_of(report).items():
        print_text(f"\n{name}\n\n{table}")


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word


if __name__ == "__main__":
    run(main)
