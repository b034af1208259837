"""The benchmark: chooses what to measure, and measures it."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import torch

from config.schema import Config
from models.base.registry import load_config, model_names
from models.programs.benchmark import subjects
from models.programs.benchmark.results import Result, Subject, Work, figures_of, measure, ratios_of
from processors.dataset.generated import N_LJSPEECH
from utils.errors import InputError, nearest
from utils.logging import get_logger

ROOT = Path(__file__).parents[3]

MODES = ("training", "inference", "speech", "start-up")
VOICE = ROOT / "egs" / "_voices" / "choir"
_STATEMENTS = ("import torch", "import models.synthesizer.synthesizer")

log = get_logger(__name__)


def known_models() -> dict[str, str]:
    """Returns the task of each model that has a recipe, by its name."""
    names = {name: task for task in ("tts", "vocoder") for name in model_names(task)}
    return {name: task for name, task in names.items() if _recipes(name)}


def generated_config(model: str, overrides: Sequence[str] = (), *, small: bool = False) -> Config:
    """Reads the configuration of a model's recipe, for generated data."""
    names = known_models()
    if model not in names:
        listed = ", ".join(names)
        raise InputError(f"no model {model!r}{nearest(model, names)} (known: {listed})")
    tiny = ROOT / "config" / "tiny" / f"{model}.json"
    if small and tiny.exists():
        return load_config(tiny, overrides)
    return load_config(_recipes(model)[0], [f"train.synthetic_utterances={N_LJSPEECH}", *overrides])


def _recipes(model: str) -> list[Path]:
    paths = (ROOT / "egs").glob("*/*/exp_config.json")
    return [path for path in paths if path.parent.name.lower() == model]


@dataclass(frozen=True)
class Options:
    """What to measure and how; the flags of the command, by name."""

    model: Sequence[str] = ()  # names; empty: all
    mode: Sequence[str] = MODES
    device: str = "cpu"
    threads: int = 1
    precision: Sequence[str] = ("fp32",)
    batch_size: int = 0  # mean utterances of an update; 0: that of the recipe
    infer_batch_size: int = 1
    longest: int = 0  # frames of an utterance in inference; 0: whole
    warm_up: int = 1
    steps: int = 4
    small: bool = False  # tiny networks and few utterances
    config: Path | None = None  # an experiment; None: the recipes on generated data
    overrides: Sequence[str] = ()
    lengths: str = "new"  # of inference; or "repeated": one batch again and again
    compare: Sequence[str] = ()  # two settings, key=a and key=b
    voice: str = str(VOICE)
    vocoder_dir: str | None = None


def run_benchmark(options: Options) -> Iterator[Result]:
    """Measures everything that was asked for; yields and logs each result as it is done."""
    torch.set_num_threads(options.threads)
    _check_compare(options)
    # timed in turn: the two settings, or each precision alone
    groups = (
        [options.compare] if options.compare else [[f"precision={p}"] for p in options.precision]
    )
    for mode, model in _modes_and_models(options):
        for settings in groups:
            try:
                by_setting = {
                    name: _subject(mode, model, _with(options, name)) for name in settings
                }
            except subjects.PrecisionError as error:
                if len(groups) == 1:
                    raise
                log.info("left out: %s", error)
            else:
                yield from _measured(options, mode, model, by_setting)
    device = torch.device(options.device)
    if "speech" in options.mode and not options.compare:
        name = f"{Path(options.voice).name}, {options.vocoder_dir or 'bundled vocoder'}"
        steps = subjects.speech_steps(options.voice, options.vocoder_dir, device)
        by_setting = {part: Subject(step, device, options.threads) for part, step in steps.items()}
        yield from _measured(options, "speech", name, by_setting)
    if "start-up" in options.mode and not options.compare:
        starts = {code: Subject(partial(_run, code), device) for code in _STATEMENTS}
        yield from _measured(options, "start-up", "python", starts)


def _check_compare(options: Options) -> None:
    if len({setting.partition("=")[0] for setting in options.compare}) > 1:
        raise InputError(f"--compare {' '.join(options.compare)}: expected two values of one key")
    if options.compare and not {"training", "inference"} & {*options.mode}:
        raise InputError("--compare is for training and inference; add one of them to --mode")


def _with(options: Options, setting: str) -> Options:
    key, _, value = setting.partition("=")
    if "." in key and value:
        return replace(options, overrides=(*options.overrides, setting))
    if key == "precision":
        return replace(options, precision=(value,))
    if key == "threads" and value.isdecimal() and int(value) > 0:
        return replace(options, threads=int(value))
    if key == "lengths" and value in ("new", "repeated"):
        return replace(options, lengths=value)
    raise InputError(
        f"--compare {setting}: expected precision=..., threads=N, lengths=new, lengths=repeated, or"
        " a key of the configuration such as train.optimizer=lamb"
    )


def _modes_and_models(options: Options) -> Iterator[tuple[str, str]]:
    models = options.model or list(known_models())
    if options.config is not None:
        if options.model:
            raise InputError("--config chooses the model; leave out --model")
        models = [load_config(options.config, options.overrides).model_type.lower()]
    yield from product([mode for mode in ("training", "inference") if mode in options.mode], models)


def _subject(mode: str, model: str, options: Options) -> Subject:
    device, precision = torch.device(options.device), options.precision[0]
    if mode == "training":
        if options.lengths == "repeated":
            raise InputError("lengths=repeated: lengths are of synthesis; use --mode inference")
        choices = ("fp32", "bf16") if options.device == "cpu" else ("fp32", "bf16", "fp16")
        subjects.check_precision(precision, choices, f"training on {options.device}")
        config = _config(model, options, f"train.mixed_precision={precision}")
        step = subjects.training_step(config, device)
    else:
        step = subjects.synthesis_step(
            _config(model, options),
            device,
            precision,
            options.infer_batch_size,
            options.longest,
            repeated=options.lengths == "repeated",
        )
    return Subject(step, device, options.threads)


def _config(model: str, options: Options, *settings: str) -> Config:
    overrides = [*options.overrides, *settings]
    if size := options.batch_size:
        overrides += [f"train.batch_size={size}", "train.gradient_accumulation_step=1"]
    if options.config is not None:
        return load_config(options.config, overrides)
    return generated_config(model, overrides, small=options.small)


def _measured(
    options: Options, mode: str, model: str, by_setting: Mapping[str, Subject]
) -> Iterator[Result]:
    measurements = measure(list(by_setting.values()), options.warm_up, options.steps)
    for (setting, subject), measurement in zip(by_setting.items(), measurements, strict=True):
        # CPU seconds of several threads add up
        on_cpu = options.device == "cpu" and subject.threads == 1
        figures = figures_of(measurement, on_cpu=on_cpu)
        log.info("%s of %s, %s: %.3g s", mode, model, setting, figures["p50, s"])
        yield Result(mode, model, setting, figures)
    if options.compare:
        first, second = measurements
        setting = " / ".join(by_setting)
        yield Result("comparison", f"{model}, {mode}", setting, ratios_of(first, second))


def _run(statement: str) -> Work:
    subprocess.run([sys.executable, "-c", statement], check=True, cwd=ROOT)
    return Work()
