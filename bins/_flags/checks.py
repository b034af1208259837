"""Which flags of a stage go together."""

from argparse import Namespace
from collections.abc import Sequence

from bins._flags.table import FLAGS, Command
from utils.cli import UsageError
from utils.errors import nearest

_USAGE = {flag.name: flag.usage for flag in FLAGS if flag.value is not None}
_BATCH = ("infer_dataset", "infer_testing_set")
_SINGLE = {
    "inference": ("infer_text", "infer_text_file"),
    "vocode": ("infer_audio_dir", "infer_feature_dir"),
}
_TRANSFORMS = {"flatten": False, "invert": False, "amplify": 1.0, "shift": 0.0}


def check_together(command: Command, given: Namespace) -> None:
    """Makes sure that the flags of a command go together; sets `duration_control` from --pace.

    Raises:
        UsageError: If they do not, or a flag is missing; the message names them.
    """
    _require(f"stage {command.stage}", command.needs, given)
    if command.name == "preprocess" and given.acoustic_data is not None:
        _require("--acoustic_data", ("from_acoustic",), given)
    if command.name == "train":
        _check_training(given)
    elif command.stage >= 3:
        _check_model(command.stage, given)
    if command.stage == 3:
        _check_inference(_SINGLE[command.name], given)
    if command.name == "inference":
        _check_vocoder(given)
        _check_controls(given)
    if command.name == "evaluate":
        _check_evaluation(given)


def _require(what: str, names: Sequence[str], given: Namespace) -> None:
    for name in names:
        if vars(given)[name] is None:
            raise UsageError(f"{what} needs {_USAGE[name]}")


def _check_training(given: Namespace) -> None:
    if given.resume and (given.restart or given.init_from is not None):
        raise UsageError("--resume cannot be combined with --restart or --init_from")


def _check_model(stage: int, given: Namespace) -> None:
    """An experiment is named in one way only."""
    for name in ("config", "name"):
        if given.infer_expt_dir is not None and vars(given)[name] is not None:
            raise UsageError(f"--infer_expt_dir and --{name} exclude each other")
    if given.infer_expt_dir is None:
        outputs = stage == 4 and given.infer_output_dir
        if given.name is None and not outputs:
            others = ", --name or --infer_output_dir" if stage == 4 else ", or --name"
            raise UsageError(f"stage {stage} needs --infer_expt_dir{others}")
        _require(f"stage {stage} without --infer_expt_dir", ("config",), given)


def _check_inference(single: Sequence[str], given: Namespace) -> None:
    if len(given.infer_output_dir) > 1:
        n = len(given.infer_output_dir)
        raise UsageError(f"stage 3 writes into one --infer_output_dir, found {n}")
    mode = given.infer_mode
    other, foreign = ("single", single) if mode == "batch" else ("batch", _BATCH)
    for name in foreign:
        if vars(given)[name] is not None:
            raise UsageError(f"--{name} goes with --infer_mode {other}")
    if mode == "batch":
        _require("--infer_mode batch", _BATCH, given)
        return
    used = [name for name in single if vars(given)[name] is not None]
    if not used:
        raise UsageError(f"--infer_mode single needs {' or '.join(f'--{n}' for n in single)}")
    if len(used) > 1:
        raise UsageError(f"{' and '.join(f'--{n}' for n in used)} exclude each other")


def _check_vocoder(given: Namespace) -> None:
    if given.resample and given.vocoder_dir is None:
        raise UsageError("--resample goes with --vocoder_dir")


def _check_controls(given: Namespace) -> None:
    if given.pace is not None and given.duration_control is not None:
        raise UsageError("--pace and --duration_control exclude each other")
    if given.duration_control is None:
        given.duration_control = 1.0 if given.pace is None else 1 / given.pace
    prefix = "pitch_transform"
    used = [name for name, off in _TRANSFORMS.items() if vars(given)[f"{prefix}_{name}"] != off]
    if given.pitch_transform_custom is not None and used:
        raise UsageError(f"--{prefix}_custom and --{prefix}_{used[0]} exclude each other")


def _check_evaluation(given: Namespace) -> None:
    if given.infer_testing_set is not None:
        _require("--infer_testing_set", ("infer_dataset",), given)
    _check_vocoder(given)
    checks = None if given.checks == "none" else given.checks
    if given.metrics or checks:
        _check_names(given.metrics, checks)


def _check_names(metrics: str | None, checks: str | None) -> None:
    from processors.metrics.registry import CHECKS, METRICS  # it imports NumPy

    for flag, names, choices in (
        ("metric", metrics, ["all", *METRICS]),
        ("check", checks, ["all", *CHECKS]),
    ):
        for name in names.split(",") if names else ():
            if name not in choices:
                raise UsageError(
                    f"--{flag}s {name}: no such {flag}{nearest(name, choices)}"
                    f" (known: {', '.join(choices)})"
                )
