"""Runs the stages of a recipe: python -m bins.recipe tts/FastSpeech2 --stage 1 [flags]."""

import importlib.util
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bins._flags.launch import Machines, count_gpus
from bins._flags.parsers import arguments, recipe_arguments
from bins._flags.table import FLAGS, KINDS, Command, Kind, command_of, flags_of_command
from bins._flags.values import STAGES
from utils.cli import Parser, UsageError, print_text, run, run_command
from utils.errors import nearest, printable
from utils.files import user_path

ROOT = Path(__file__).parents[1]

_TABLE = {flag.name: flag for flag in FLAGS}
_MACHINES = ("num_machines", "machine_rank", "main_process_ip", "main_process_port")
_EXAMPLES = {
    "tts": ("--infer_text", "Any text."),
    "vocoder": ("--infer_audio_dir", "/path/to/recordings"),
}


@dataclass(frozen=True)
class Recipe:
    """A folder of egs/<kind>."""

    kind: Kind
    name: str  # kind/Model
    caller: str  # folder of the user, where relative paths start
    command: tuple[str, ...]  # as the user types it


@dataclass(frozen=True)
class Step:
    """A stage that is to be run."""

    command: Command
    argv: list[str]  # its flags
    launcher: list[str] = field(default_factory=list)  # arguments of Python that start processes
    environment: dict[str, str] = field(default_factory=dict)  # variables that only it gets


def main() -> None:
    """Checks all flags, then runs the stages.

    The last stage runs in this process, unless it trains in several. Earlier ones have their own,
    so that the next one finds all memory free; if one fails, this one ends with its exit code.
    """
    name, *argv = sys.argv[1:] or ("",)
    if name in ("-h", "--help"):
        parser = Parser(
            "Runs stages of a recipe, as its run.sh does. RECIPE --help lists its flags."
        )
        names = ", ".join(recipes())
        parser.add_argument("recipe", metavar="RECIPE", help=f"{names}; also without the folder")
        parser.add_argument("flags", nargs="+", metavar="FLAGS", help="--stage STAGES and others")
        parser.print_help()
        return
    recipe = find_recipe(name, os.environ.pop("RECIPE_CALLER_DIR", None))  # set by run.sh
    os.chdir(ROOT)
    raw_flags = recipe_arguments(recipe.kind, argv)
    if "show_config" in raw_flags:
        from models.base.registry import config_lines

        lines = config_lines(shown_config(recipe, raw_flags), raw_flags.get("set", ()))
        print_text("".join(f"{line}\n" for line in lines))
        return
    *steps, last = plan(recipe, raw_flags)
    for step in (*steps, last):
        module = f"bins.{step.command.name}"
        sys.stderr.write(f"== stage {step.command.stage}: {step.command.title}\n")
        if step is last and not step.launcher:
            os.environ.update(step.environment)
            importlib.import_module(module).main(step.argv)
        else:
            words = [sys.executable, *step.launcher, "-m", module, *step.argv]
            if code := run_command(words, os.environ | step.environment):
                raise SystemExit(code)
    if last.command.stage in (1, 2) and "synthetic" not in raw_flags:  # that voice makes noise
        line = f"next: {next_command(recipe, last.command.stage, raw_flags)}\n"
        sys.stderr.write(printable(line))


def next_command(recipe: Recipe, stage: int, raw_flags: Mapping[str, Any]) -> str:
    """Returns the command that follows stage 1 or 2, which was run with these flags."""
    name = raw_flags.get("name", "my_model")
    words = [*recipe.command, "--stage", str(stage + 1), "--name", name]
    if stage == 2:
        words += ["--infer_mode", "single", *_EXAMPLES[recipe.kind]]
    words += ["--config", raw_flags["config"]]
    for setting in raw_flags.get("set", []):
        words += ["--set", setting]
    return shlex.join(words)


def recipes() -> dict[str, Path]:
    """Returns the run.sh of each recipe by `kind/Model`."""
    scripts = [path for kind in KINDS for path in sorted((ROOT / "egs" / kind).glob("*/run.sh"))]
    return {f"{path.parts[-3]}/{path.parts[-2]}": path for path in scripts}


def find_recipe(name: str, shell_caller: str | None) -> Recipe:
    """Finds a recipe by `kind/Model`, or by the model alone, for a caller of run.sh or for None."""
    scripts = recipes()
    name = next((full for full in scripts if full.split("/")[1] == name), name)
    if name not in scripts:
        near, names = nearest(name, scripts), ", ".join(scripts)
        raise UsageError(f"no recipe '{name}'{near} (expected one of {names}, then its flags)")
    of_python, of_shell = ("python", "-m", "bins.recipe", name), ("sh", str(scripts[name]))
    command = of_python if shell_caller is None else of_shell
    kind = next(kind for kind in KINDS if name.startswith(f"{kind}/"))
    return Recipe(kind, name, shell_caller or str(Path.cwd()), command)


def located(text: str, caller: str) -> str:
    """Makes the path of an existing file or folder absolute; keeps names on the Hub."""
    first, here = text.split("/")[0], Path(caller)
    is_path = first in (".", "..") or text.startswith("~") or (here / text).exists()
    # missing, but its first folder exists here: a local path, not a name on the Hub
    missing_here = not Path(text).exists() and (here / first).exists()
    return from_here(text, caller) if is_path or missing_here else text


def from_here(text: str, caller: str) -> str:
    """Makes a path absolute; empty text stays so."""
    if text.startswith("~"):
        return str(user_path(text))
    return text if not text or Path(text).is_absolute() else f"{caller}/{text}"


def plan(recipe: Recipe, raw_flags: dict[str, Any]) -> list[Step]:
    """Checks the flags of all stages and sets the environment of this process."""
    stages = _stages(raw_flags)
    for name in ("config", "name"):
        if stages[0] >= 3 and "infer_expt_dir" in raw_flags and raw_flags.pop(name, None):
            sys.stderr.write(f"--{name} is not read: --infer_expt_dir names the model\n")
    _place(recipe, stages, raw_flags)
    gpu = _read(raw_flags, "gpu")
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "0") if gpu is None else gpu
    machines = _machines(raw_flags, alone=list(stages) == [2])
    commands = [command_of(stage, recipe.kind) for stage in stages]
    steps = [Step(command, _argv(recipe, command, raw_flags)) for command in commands]
    for step in steps:
        arguments(step.command.name, step.argv)
    # found, not imported: that takes seconds
    if not all(map(importlib.util.find_spec, ("torch", "json5"))):
        raise UsageError(f"{sys.executable} lacks torch or json5; run make venv, or set PYTHON")
    os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    _set_environment(recipe, raw_flags)
    requested_gpus = gpu if "gpu" in raw_flags else ""
    return [
        _launched(step, machines, gpu, requested_gpus) if step.command.stage == 2 else step
        for step in steps
    ]


def shown_config(recipe: Recipe, raw_flags: dict[str, Any]) -> Path:
    """Finds the configuration that --show_config prints: of a recipe, or of an experiment."""
    _place(recipe, (3,), raw_flags)
    if "infer_expt_dir" not in raw_flags:
        return Path(raw_flags["config"])
    experiment = Path(raw_flags["infer_expt_dir"])
    for home in (experiment, experiment.parent.parent):  # or a checkpoint in it
        if (home / "config.json").is_file():
            return home / "config.json"
    raise UsageError(f"--show_config: {experiment} is no local experiment; give its folder")


def _read(raw_flags: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401  (of any type)
    return _TABLE[name].read(raw_flags[name]) if name in raw_flags else None


def _stages(raw_flags: Mapping[str, Any]) -> Sequence[int]:
    """Returns the stages asked for; each flag must go with one of them."""
    if "stage" not in raw_flags:
        raise UsageError(f"--stage is required: {STAGES.expected}")
    stages: Sequence[int] = _read(raw_flags, "stage")
    for name in raw_flags:
        # --name: stage 1 ends with the command of stage 2
        if name != "name" and not {*stages} & {*_TABLE[name].stages}:
            raise UsageError(f"--{name} goes with {_TABLE[name].place}")
    if "synthetic" in raw_flags and stages[0] != 2:
        raise UsageError("--synthetic replaces the data of stages 0 and 1: start with --stage 2")
    return stages


def _place(recipe: Recipe, stages: Sequence[int], raw_flags: dict[str, Any]) -> None:
    """Makes the paths of flags absolute, or relative to the root, where stages run."""
    for name, text in raw_flags.items():
        value = _TABLE[name].value
        if value is not None and value.path and isinstance(text, str):
            locate = located if value.path == "found" else from_here
            raw_flags[name] = locate(text, recipe.caller)
    # its folder's files can be named from any folder
    config = ROOT / "egs" / recipe.name / raw_flags.get("config", "exp_config.json")
    if "config" not in raw_flags or (not Path(raw_flags["config"]).is_file() and config.is_file()):
        raw_flags["config"] = str(config)
    if outputs := raw_flags.get("infer_output_dir"):
        # stage 3 makes this folder, stage 4 alone needs it
        locate = from_here if 3 in stages else located
        raw_flags["infer_output_dir"] = outputs = [locate(o, recipe.caller) for o in outputs]
        missing = [output for output in outputs if not Path(output).is_dir()]
        if 3 not in stages and missing:
            raise UsageError(f"--infer_output_dir '{missing[0]}': no such folder")


def _machines(raw_flags: Mapping[str, Any], *, alone: bool) -> Machines:
    """Returns the machines that train; `alone`: no other stage is run."""
    names = [name for name in _MACHINES if name in raw_flags]
    if "accelerate_config" in raw_flags and set(names) - {"machine_rank"}:
        fault = "--accelerate_config names the machines"
        raise UsageError(f"{fault}: of their flags, only --machine_rank goes with it")
    config = _read(raw_flags, "accelerate_config")
    count, rank, address, port = (_read(raw_flags, name) for name in _MACHINES)
    n, several = f"--num_machines {count}", (count or 1) > 1
    if config is None and count is None and names:
        fault = f"--{names[0]} needs --num_machines"
    elif count is not None and (rank or 0) >= count:
        fault = f"--machine_rank {rank}: {n} has the ranks 0 to {count - 1}"
    elif (config or several) and not alone:  # two machines must not write the same data or wavs
        flag = "--accelerate_config" if count is None else n
        fault = f"{flag} goes with --stage 2; run the other stages on one machine"
    elif several and rank is None:
        fault = f"{n} needs --machine_rank: 0 on the main machine, then 1, 2 ..."
    elif several and address is None:
        fault = f"{n} needs --main_process_ip: the address of the machine of rank 0"
    else:
        return Machines(count or 1, rank, address or "", port or Machines.port, config)
    raise UsageError(fault)


def _argv(recipe: Recipe, command: Command, raw_flags: Mapping[str, Any]) -> list[str]:
    """Returns the flags of a stage; `--flag=value` keeps a value that begins with a dash."""
    texts = {**raw_flags, "task": recipe.kind}
    if command.stage >= 3 and "infer_expt_dir" in raw_flags:
        texts = {name: text for name, text in texts.items() if name not in ("config", "name")}
    argv = []
    for flag in flags_of_command(command):
        text = texts.get(flag.name)
        if text is not None and flag.value is None:
            argv.append(f"--{flag.name}")
        elif text is not None:
            argv += [f"--{flag.name}={t}" for t in (text if isinstance(text, list) else [text])]
    return argv


def _set_environment(recipe: Recipe, raw_flags: Mapping[str, Any]) -> None:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    if {"recogniser", "speaker_encoder"} & {*raw_flags}:
        # a plug-in may be in the caller's folder; last, so that it hides no module of ours
        paths.append(recipe.caller)
        sys.path.append(recipe.caller)
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.environ["PYTHONUTF8"] = "1"
    # threads that spin long block a core that another process needs: up to 3 times slower. Those of
    # GNU OpenMP spin 0.2 ms, since waking them takes a tenth of an update on two idle cores.
    if not os.environ.get("OMP_WAIT_POLICY"):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "5000")


def _launched(step: Step, machines: Machines, gpu: str, requested_gpus: str) -> Step:
    """Adds to stage 2 what starts its processes: one per GPU, or one on the CPU."""
    n_gpus = count_gpus(gpu)
    variables = {}
    if n_gpus == 0:
        from utils.parallel import n_cores

        if requested_gpus:
            sys.stderr.write(f"--gpu {gpu}: PyTorch finds no GPU here, training is on the CPU\n")
        threads = os.environ.get("OMP_NUM_THREADS") or str(n_cores())
        variables = {"OMP_NUM_THREADS": threads, "ACCELERATE_USE_CPU": "true"}
    launcher = machines.launcher(n_gpus)
    if machines.count > 1:
        machines.check_meeting_point()
        if machines.rank != 0:
            sys.stderr.write(f"waiting for machine 0 at {machines.address} port {machines.port}\n")
    return Step(step.command, step.argv, launcher, variables)


if __name__ == "__main__":
    run(main)
