"""Speed of training, inference, text to sound and start-up, of every model."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bins._flags.parsers import add_config_arguments
from bins._flags.values import COUNT, whole
from utils.cli import Parser, UsageError, print_text, run


def parser() -> Parser:
    """Builds the parser; all flags but --output are fields of `models.benchmark.run.Options`."""
    flags = Parser("Measures the speed of training and synthesis; run by `make bench`.")
    add, size = flags.add_argument, whole(0)
    add("--model", type=_names, metavar="NAMES", help="such as fastspeech2,hifigan (default: all)")
    add("--mode", type=_names, help="training, inference, speech, start-up, several, or all")
    add("--device", choices=("cpu", "cuda"))
    add("--threads", type=COUNT.argument, help="CPU threads (default: 1)")
    add("--batch_size", type=size.argument, help="utterances of an update (default: the recipe's)")
    add("--infer_batch_size", type=COUNT.argument, help="utterances of a call (default: 1)")
    add("--longest", type=size.argument, help="inference: frames of an utterance (default: all)")
    add("--precision", type=_names).help = """fp32 (default), bf16, fp16, int8, mixed, or several,
        as fp32,bf16; of several, those a model lacks are left out"""
    add("--warm_up", type=size.argument, help="calls that are not timed (default: 1)")
    add("--steps", type=COUNT.argument, help="updates or batches that are timed (default: 4)")
    add("--small", action="store_true", help="tiny networks and few utterances, to try it")
    add("--voice", help="speech: experiment or Hub name (default: the bundled voice)")
    add("--vocoder_dir", metavar="MODEL", help="speech: vocoder (default: the bundled one)")
    add("--compare", nargs=2, metavar="KEY=VALUE").help = """time two values of a key in turn, as in
        precision=fp32 precision=bf16; a key is precision, threads, lengths (new or repeated), or
        one of --set"""
    add("--output", type=Path, metavar="FILE", help="write all figures as JSON")
    add_config_arguments(flags, required=False, dataset="")
    return flags


def main() -> None:
    """Prints tables and writes all figures as JSON, also of what was measured before an error."""
    arguments = parser().parse_args()

    import torch

    from models.benchmark.results import environment, tables_of
    from models.benchmark.run import MODES, Options, run_benchmark
    from utils.files import write_json
    from utils.logging import setup_logging

    setup_logging()
    output, given = arguments.output, vars(arguments)
    del given["output"]
    options = Options(**{name: value for name, value in given.items() if value is not None})
    if options.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("--device cuda: PyTorch finds no GPU here")
    if unknown := [mode for mode in options.mode if mode not in MODES]:
        raise UsageError(f"--mode {unknown[0]}: expected all or some of {', '.join(MODES)}")
    argv = (f'"{text}"' if " " in text else text for text in sys.argv[1:])
    facts = environment(torch.device(options.device), options.threads)
    results: list[dict[str, Any]] = []
    report = {"command": " ".join(["python -m bins.benchmark", *argv]), "environment": facts}
    end = "\nINCOMPLETE: the benchmark stopped here\n"
    try:
        for result in run_benchmark(options):
            results.append(asdict(result))
            if output is not None:
                write_json(output, report | {"incomplete": True, "results": results})
        if output is not None:
            write_json(output, report | {"results": results})
        end = ""
    finally:
        if results:
            lines = [f"{name}: {value}" for name, value in facts.items()]
            print_text("\n".join(lines) + f"\n\n{tables_of(results)}{end}")


def _names(text: str) -> list[str] | None:
    """Names between commas; None for "all"."""
    return None if text == "all" else [name for name in text.split(",") if name]


if __name__ == "__main__":
    run(main)
