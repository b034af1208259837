"""Parsers of recipes and of their stages, from the table of flags; which flags go together."""

from argparse import Namespace, RawDescriptionHelpFormatter, _ActionsContainer
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bins._flags import table
from bins._flags.table import ALL, COMMANDS, FLAGS, Command, Flag, Kind
from utils.cli import Parser, UsageError
from utils.errors import nearest

_USAGE = {flag.name: flag.usage for flag in FLAGS if flag.value is not None}
_BATCH = ("infer_dataset", "infer_testing_set")
_SINGLE = {
    "inference": ("infer_text", "infer_text_file"),
    "vocode": ("infer_audio_dir", "infer_feature_dir"),
}
_NEEDS = {"acoustic_data": "from_acoustic", "resample": "vocoder_dir"}
_EXCLUSIVE = [
    ("resume", "restart"),
    ("resume", "init_from"),
    ("pace", "duration_control"),
    ("infer_expt_dir", "config"),
    ("infer_expt_dir", "name"),
]
_TRANSFORMS = {"flatten": False, "invert": False, "amplify": 1.0, "shift": 0.0}

if TYPE_CHECKING:
    from config.schema import Config

_ACTIONS = {"": "store", "repeated": "append", "words": "extend", "two": "store"}
_COUNTS: dict[str, str | int] = {"words": "+", "two": 2}
_PATHS = """\
A relative path that does not start with a dot is looked for in the folder you are in, then at the
root of the repository. --infer_output_dir is below the folder you are in; data and ckpts are at
that root. Flags are also accepted as --flag=VALUE. The Python of run.sh is $PYTHON, or that of
.venv, or python3. Without sh: python -m bins.recipe tts/FastSpeech2 and so on, then the flags."""


def check_together(command: Command, values: Namespace) -> None:
    """Makes sure that the flags of a command go together; sets `duration_control` from --pace."""
    by_name = vars(values)
    _require(f"stage {command.stage}", command.needs, values)
    for name, needed in _NEEDS.items():
        if by_name.get(name):
            _require(f"--{name}", (needed,), values)
    for first, second in _EXCLUSIVE:
        if by_name.get(first) and by_name.get(second):
            raise UsageError(f"--{first} and --{second} exclude each other")
    if command.stage >= 3:
        _check_model(command.stage, values)
    if command.stage == 3:
        _check_inference(_SINGLE[command.name], values)
    if command.name == "inference":
        _check_controls(values)
    if command.name == "evaluate":
        _check_evaluation(values)


def _require(what: str, names: Sequence[str], values: Namespace) -> None:
    for name in names:
        if vars(values)[name] is None:
            raise UsageError(f"{what} needs {_USAGE[name]}")


def _check_model(stage: int, values: Namespace) -> None:
    """Makes sure that there is an experiment, or in stage 4 wavs of any origin."""
    if values.infer_expt_dir is None:
        outputs = stage == 4 and values.infer_output_dir
        if values.name is None and not outputs:
            others = ", --name or --infer_output_dir" if stage == 4 else ", or --name"
            raise UsageError(f"stage {stage} needs --infer_expt_dir{others}")
        _require(f"stage {stage} without --infer_expt_dir", ("config",), values)


def _check_inference(single: Sequence[str], values: Namespace) -> None:
    if len(values.infer_output_dir) > 1:
        n = len(values.infer_output_dir)
        raise UsageError(f"stage 3 writes into one --infer_output_dir, found {n}")
    mode = values.infer_mode
    other, foreign = ("single", single) if mode == "batch" else ("batch", _BATCH)
    for name in foreign:
        if vars(values)[name] is not None:
            raise UsageError(f"--{name} goes with --infer_mode {other}")
    if mode == "batch":
        _require("--infer_mode batch", _BATCH, values)
        return
    used = [name for name in single if vars(values)[name] is not None]
    if not used:
        raise UsageError(f"--infer_mode single needs {' or '.join(f'--{n}' for n in single)}")
    if len(used) > 1:
        raise UsageError(f"{' and '.join(f'--{n}' for n in used)} exclude each other")


def _check_controls(values: Namespace) -> None:
    if values.duration_control is None:
        values.duration_control = 1.0 if values.pace is None else 1 / values.pace
    prefix = "pitch_transform"
    used = [name for name, off in _TRANSFORMS.items() if vars(values)[f"{prefix}_{name}"] != off]
    if values.pitch_transform_custom is not None and used:
        raise UsageError(f"--{prefix}_custom and --{prefix}_{used[0]} exclude each other")


def _check_evaluation(values: Namespace) -> None:
    if values.infer_testing_set is not None:
        _require("--infer_testing_set", ("infer_dataset",), values)
    checks = None if values.checks == "none" else values.checks
    if not values.metrics and not checks:
        return
    from processors.metrics.registry import CHECKS, METRICS  # it imports NumPy

    for kind, names, records in (("metric", values.metrics, METRICS), ("check", checks, CHECKS)):
        choices = ["all", *records]
        for name in names.split(",") if names else ():
            if name not in choices:
                fault = f"--{kind}s {name}: no such {kind}{nearest(name, choices)}"
                raise UsageError(f"{fault} (known: {', '.join(choices)})")


def arguments(command_name: str, argv: Sequence[str] | None = None) -> Namespace:
    """Parses and checks the flags of the command of a stage."""
    command = next(c for c in COMMANDS if c.name == command_name)
    flags = table.flags_of_command(command)
    parser = Parser(f"Stage {command.stage}: {command.help}.")
    parser.prog = f"python -m bins.{command_name}"
    _add(parser, flags)
    parser.elsewhere = {
        f"--{flag.name}": f"--{flag.name} goes with "
        + ("recipes (run.sh)" if flag.scope == "recipe" else flag.place)
        for flag in FLAGS
        if flag not in flags
    }
    raw_flags = parser.parse_args(argv)
    values = Namespace(**flag_values(flags, raw_flags))
    check_together(command, values)
    return values


def recipe_arguments(kind: Kind, argv: Sequence[str]) -> dict[str, Any]:
    """Parses the flags of a recipe, without reading their values.

    Returns:
        The text of each flag that is given, by its name; a list of flags that may be given several
        times, True of switches.
    """
    parser = Parser("")
    parser.prog = ""
    parser.usage = "sh run.sh --stage STAGES [flags]"
    stages = [f"  {stage}  {table.command_of(stage, kind).help}" for stage in ALL]
    parser.description = "\n".join(["Stages: N, a range A-B, or all", *stages])
    parser.epilog = _PATHS
    parser.formatter_class = partial(RawDescriptionHelpFormatter, max_help_position=30)
    flags = table.flags_of_recipe(kind)
    _add(parser, flags)
    parser.elsewhere = {
        f"--{flag.name}": f"--{flag.name} goes with {table.KIND_NAMES[flag.kinds[0]]} recipes;"
        f" this is a {table.KIND_NAMES[kind]} recipe"
        for flag in FLAGS
        if kind not in flag.kinds
    }
    raw_flags = vars(parser.parse_args(argv))
    may_be_empty = {
        flag.name for flag in flags if flag.value is not None and flag.value.may_be_empty
    }
    return {
        name: text
        for name, text in raw_flags.items()
        if text or (text == "" and name in may_be_empty)  # not: None, False
    }


def program_arguments(name: str, description: str, argv: Sequence[str] | None = None) -> Namespace:
    """Parses the flags of a command that is no stage; it checks which of them go together."""
    from bins._flags.programs import PROGRAMS  # its defaults need packages, the recipes none

    parser, flags = Parser(description), PROGRAMS[name]
    groups: dict[str, _ActionsContainer] = {"": parser}
    for flag in flags:
        if flag.excludes not in groups:
            groups[flag.excludes] = parser.add_mutually_exclusive_group()
        _add_flag(parser, groups[flag.excludes], flag)
    return Namespace(**flag_values(flags, parser.parse_args(argv)))


def chosen_dataset(flags: Namespace) -> "tuple[Config, str]":
    """Returns the configuration and the dataset that --config, --set and --dataset choose."""
    from models.base.registry import load_config
    from processors.extraction.plan import choose_dataset

    config = load_config(flags.config, flags.overrides)
    return config, choose_dataset(config, flags.dataset)


def flag_values(flags: Iterable[Flag], raw_flags: Namespace) -> dict[str, Any]:
    """Returns the value of each flag by its key; of those not given, the default."""
    return {flag.key: _value(flag, vars(raw_flags)[flag.key]) for flag in flags}


def _add(parser: Parser, flags: Iterable[Flag]) -> None:
    groups = {}
    for flag in flags:
        title = "all stages" if flag.stages == ALL else flag.place
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        _add_flag(parser, groups[title], flag)


def _add_flag(parser: Parser, group: _ActionsContainer, flag: Flag) -> None:
    names = [f"-{flag.short}"] * bool(flag.short) + [f"--{flag.name}"]
    text = flag.help.replace("{default}", str(flag.default)).replace("%", "%%") or None
    if flag.value is None:
        group.add_argument(*names, action="store_true", help=text)
        return
    options: dict[str, Any] = {"dest": flag.key, "required": flag.required}
    if flag.positional:
        names, options = [flag.key], {}
    group.add_argument(
        *names,
        action=_ACTIONS[flag.several],
        nargs="*" if flag.several and flag.positional else _COUNTS.get(flag.several),
        metavar=flag.metavar or flag.value.metavar,
        help=text,
        **options,
    )
    if flag.value.free:
        parser.free_text.update(names)


def _value(flag: Flag, text: Any) -> Any:  # noqa: ANN401  (of any type)
    if flag.value is None:
        return text
    if flag.several:
        return [flag.read(item) for item in text or ()]
    return flag.default if text is None else flag.read(text)
