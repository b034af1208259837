"""Runs the stages of a recipe: python -m bins.recipe tts/FastSpeech2 --stage 1 [flags]."""

import importlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bins._flags.parsers import recipe_arguments
from bins._flags.steps import ROOT, Recipe, Step, find_recipe, plan, recipes, shown_config
from utils.cli import Parser, print_text, run, run_command
from utils.errors import printable

_EXAMPLES = {
    "tts": ("--infer_text", "Any text."),
    "vocoder": ("--infer_audio_dir", "/path/to/recordings"),
}


def main() -> None:
    """Checks all flags, then runs the stages.

    The last stage runs in this process, unless it trains in several. Earlier ones have their own,
    so that the next one finds all memory free.
    """
    name, *words = sys.argv[1:] or ("",)
    if name in ("-h", "--help"):
        parser = Parser(
            "Runs stages of a recipe, as its run.sh does. RECIPE --help lists its flags."
        )
        parser.add_argument("recipe", metavar="RECIPE", help=f"{', '.join(recipes())}; also without"
            " the folder")  # fmt: skip
        parser.add_argument("flags", nargs="+", metavar="FLAGS", help="--stage STAGES and others")
        parser.print_help()
        return
    recipe = find_recipe(name, os.environ.pop("RECIPE_CALLER_DIR", None))  # set by run.sh
    os.chdir(ROOT)
    texts = recipe_arguments(recipe.kind, words)
    if "show_config" in texts:
        _show_config(shown_config(recipe, texts), texts.get("set", ()))
        return
    *steps, last = plan(recipe, texts)
    for step in steps:
        _run_apart(step)
    if last.launcher:
        _run_apart(last)
    else:
        _log(last.title)
        os.environ.update(last.environment)
        importlib.import_module(f"bins.{last.command.name}").main(last.words)
    if last.command.stage in (1, 2) and "synthetic" not in texts:  # that voice makes noise
        _log(f"next: {next_command(recipe, last.command.stage, texts)}")


def next_command(recipe: Recipe, stage: int, texts: Mapping[str, Any]) -> str:
    """Returns the command that follows stage 1 or 2, which was run with these flags."""
    flags = ["2", "--name", texts.get("name", "my_model")]
    if stage == 2:
        flags = ["3", "--name", texts["name"], "--infer_mode", "single", *_EXAMPLES[recipe.kind]]
    settings = [word for setting in texts.get("set", []) for word in ("--set", setting)]
    return shlex.join([*recipe.command, "--stage", *flags, "--config", texts["config"], *settings])


def _show_config(path: Path, overrides: Sequence[str]) -> None:
    from models.base.registry import config_lines

    print_text("".join(f"{line}\n" for line in config_lines(path, overrides)))


def _run_apart(step: Step) -> None:
    """Runs a stage in a process of its own; if it fails, this one ends with the same code."""
    _log(step.title)
    words = [sys.executable, *step.launcher, "-m", f"bins.{step.command.name}", *step.words]
    if code := run_command(words, os.environ | step.environment):
        raise SystemExit(code)


def _log(line: str) -> None:
    sys.stderr.write(printable(f"{line}\n"))
    sys.stderr.flush()


if __name__ == "__main__":
    run(main)
