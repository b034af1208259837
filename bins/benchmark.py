"""Speed of training, inference, text to sound and start-up, of every model."""

import sys
from dataclasses import asdict
from typing import Any

from bins._flags.parsers import program_arguments
from utils.cli import UsageError, print_text, run


def main() -> None:
    """Prints tables and writes all figures as JSON, also of what was measured before an error."""
    flags = vars(program_arguments("benchmark"))

    import torch

    from models.programs.benchmark.results import environment, tables_of
    from models.programs.benchmark.run import MODES, Options, run_benchmark
    from utils.files import write_json

    output = flags.pop("output")
    options = Options(**{name: value for name, value in flags.items() if value is not None})
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


if __name__ == "__main__":
    run(main)
