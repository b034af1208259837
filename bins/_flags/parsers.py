"""Parsers of recipes and of their stages, from the table of flags; which flags go together."""

from argparse import Namespace, RawDescriptionHelpFormatter, _ActionsContainer
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bins._flags import table
from bins._flags.table import ALL, COMMANDS, FLAGS, Command, Flag, Kind
from utils.cli import Parser, UsageError
from utils.errors import nearest

_METAVARS = {flag.name: flag.metavar or flag.value.metavar for flag in FLAGS if flag.value}
_BATCH = ("infer_dataset", "infer_testing_set")
_SINGLE = {
    "inference": ("infer_text", "infer_text_file"),
    "vocode": ("infer_audio_dir", "infer_feature_dir"),
}
_STAGE_NEEDS = (("config",), ("config",), ("config", "name"), ("infer_mode",), ())
_NEEDS = {"acoustic_data": "from_acoustic", "resample": "vocoder_dir"}
_EXCLUSIVE = [
    ("resume", "restart"),
    ("resume", "init_from"),
    ("pace", "duration_control"),
    ("infer_expt_dir", "config"),
    ("infer_expt_dir", "name"),
    ("pitch_transform_custom", "pitch_transform_flatten"),
    ("pitch_transform_custom", "pitch_transform_invert"),
    ("pitch_transform_custom", "pitch_transform_amplify"),
    ("pitch_transform_custom", "pitch_transform_shift"),
]
_DEFAULTS = {flag.name: flag.default if flag.value else False for flag in FLAGS}

if TYPE_CHECKING:
    from config.schema import Config

# of argparse, by `Flag.several`
_ACTIONS = {"": "store", "repeated": "append", "words": "extend", "two": "store"}
_COUNTS: dict[str, str | int] = {"words": "+", "two": 2}
_PATHS = """\
A relative path that does not start with a dot is looked for in the folder you are in, then at the
root of the repository. --infer_output_dir is below the folder you are in; data and ckpts are at
that root. Flags are also accepted as --flag=VALUE. The Python of run.sh is $PYTHON, or that of
.venv, or python3. Without sh: python -m bins.recipe tts/FastSpeech2 and so on, then the flags."""


def check_together(command: Command, values: Namespace) -> None:
    """Makes sure that the flags of a command go together; sets `duration_control` from --pace."""
    different = {name for name, value in vars(values).items() if value != _DEFAULTS[name]}
    _require(f"stage {command.stage}", _STAGE_NEEDS[command.stage], values)
    for name, needed in _NEEDS.items():
        if name in different:
            _require(f"--{name}", (needed,), values)
    for first, second in _EXCLUSIVE:
        if {first, second} <= different:
            raise UsageError(f"--{first} and --{second} exclude each other")
    if (stage := command.stage) >= 3 and values.infer_expt_dir is None:
        if values.name is None and not (stage == 4 and values.infer_output_dir):
            others = ", --name or --infer_output_dir" if stage == 4 else ", or --name"
            raise UsageError(f"stage {stage} needs --infer_expt_dir{others}")
        _require(f"stage {stage} without --infer_expt_dir", ("config",), values)
    if stage == 3:
        _check_inference(_SINGLE[command.name], values)
    if command.name == "inference" and values.duration_control is None:
        values.duration_control = 1 / (values.pace or 1)
    if stage == 4:
        _check_evaluation(values)


def _require(what: str, names: Sequence[str], values: Namespace) -> None:
    for name in names:
        if vars(values)[name] is None:
            raise UsageError(f"{what} needs --{name} {_METAVARS[name]}")


def _check_inference(single: Sequence[str], values: Namespace) -> None:
    if (n := len(values.infer_output_dir)) > 1:
        raise UsageError(f"stage 3 writes into one --infer_output_dir, found {n}")
    modes = dict.fromkeys(single, "single") | dict.fromkeys(_BATCH, "batch")
    used = [name for name in modes if vars(values)[name] is not None]
    for name in used:
        if modes[name] != values.infer_mode:
            raise UsageError(f"--{name} goes with --infer_mode {modes[name]}")
    if values.infer_mode == "batch":
        _require("--infer_mode batch", _BATCH, values)
    elif not used:
        raise UsageError(f"--infer_mode single needs --{' or --'.join(single)}")
    elif len(used) > 1:
        raise UsageError(f"--{' and --'.join(used)} exclude each other")


def _check_evaluation(values: Namespace) -> None:
    if values.infer_testing_set is not None:
        _require("--infer_testing_set", ("infer_dataset",), values)
    checks = None if values.checks == "none" else values.checks
    for noun, names in (("metric", values.metrics), ("check", checks)):
        if names:
            from processors.metrics import registry  # it imports NumPy

            choices = ["all", *(registry.METRICS if noun == "metric" else registry.CHECKS)]
            if unknown := [name for name in names.split(",") if name not in choices]:
                fault = f"--{noun}s {unknown[0]}: no such {noun}{nearest(unknown[0], choices)}"
                raise UsageError(f"{fault} (known: {', '.join(choices)})")


def arguments(command_name: str, argv: Sequence[str] | None = None) -> Namespace:
    """Parses and checks the flags of the command of a stage."""
    command = next(c for c in COMMANDS if c.name == command_name)
    flags = table.flags_of_command(command)
    parser = Parser(f"Stage {command.stage}: {command.help}.")
    parser.prog = f"python -m bins.{command_name}"
    _add(parser, flags)
    for flag in FLAGS:
        if flag not in flags:
            place = "recipes (run.sh)" if flag.scope == "recipe" else flag.place
            parser.elsewhere[f"--{flag.name}"] = f"--{flag.name} goes with {place}"
    values = _read_values(flags, parser.parse_args(argv))
    check_together(command, values)
    return values


def recipe_arguments(kind: Kind, argv: Sequence[str]) -> dict[str, Any]:
    """Parses the flags of a recipe to texts, lists of texts, and True, without reading values."""
    stages = [f"  {stage}  {table.command_of(stage, kind).help}" for stage in ALL]
    parser = Parser("\n".join(["Stages: N, a range A-B, or all", *stages]))
    parser.prog, parser.usage = "", "sh run.sh --stage STAGES [flags]"
    parser.epilog = _PATHS
    parser.formatter_class = partial(RawDescriptionHelpFormatter, max_help_position=30)
    flags = [flag for flag in FLAGS if kind in flag.kinds and flag.scope != "command"]
    _add(parser, flags)
    for flag in FLAGS:
        if kind not in flag.kinds:
            other, this = table.KIND_NAMES[flag.kinds[0]], table.KIND_NAMES[kind]
            fault = f"--{flag.name} goes with {other} recipes; this is a {this} recipe"
            parser.elsewhere[f"--{flag.name}"] = fault
    raw_flags = vars(parser.parse_args(argv))
    may_be_empty = {flag.name for flag in flags if flag.value and flag.value.may_be_empty}
    # a flag that is not given is None, [] or False
    return {n: text for n, text in raw_flags.items() if text or (text == "" and n in may_be_empty)}


def program_arguments(name: str, argv: Sequence[str] | None = None) -> Namespace:
    """Parses the flags of a command that is no stage; it checks which of them go together."""
    from bins._flags.programs import PROGRAMS  # its defaults need packages, the recipes none

    description, flags = PROGRAMS[name]
    parser = Parser(description)
    groups: dict[str, _ActionsContainer] = {"": parser}
    for flag in flags:
        if flag.excludes not in groups:
            groups[flag.excludes] = parser.add_mutually_exclusive_group()
        _add_flag(parser, groups[flag.excludes], flag)
    return _read_values(flags, parser.parse_args(argv))


def chosen_dataset(flags: Namespace) -> "tuple[Config, str]":
    """Returns the configuration and the dataset that --config, --set and --dataset choose."""
    from models.base.registry import load_config
    from processors.extraction.plan import choose_dataset

    config = load_config(flags.config, flags.overrides)
    return config, choose_dataset(config, flags.dataset)


def _read_values(flags: Iterable[Flag], raw_flags: Namespace) -> Namespace:
    """Reads the text of each flag; those not given get the default."""
    values = vars(raw_flags)
    for flag in flags:
        text = values[flag.key]
        if flag.several:
            values[flag.key] = [flag.read(item) for item in text or ()]
        elif flag.value is not None:  # no switch
            values[flag.key] = flag.default if text is None else flag.read(text)
    return raw_flags


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
