"""The benchmark: chooses what to measure, and measures it."""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple, cast

import torch

from config.schema import Config
from models.base.registry import load_config
from models.benchmark.configs import EGS, check_model, generated_config, known_models
from models.benchmark.results import Comparison, Measured, Report, Result, environment, result_of
from models.benchmark.synthesis import TEXTS, PrecisionError, SpeechRun, Speed, SynthesisRun
from models.benchmark.timing import (
    Measurement,
    Subject,
    Work,
    compare,
    measure,
    measure_in_turn,
    spread,
)
from models.benchmark.training import TrainingRun
from models.checkpoint.loading import open_model
from processors.dataset.generated.utterances import N_LJSPEECH
from utils.errors import InputError
from utils.logging import get_logger

Mode = Literal["training", "inference", "speech", "start-up"]
MODES: tuple[Mode, ...] = ("training", "inference", "speech", "start-up")
VOICE = EGS / "_voices" / "kathleen"
_PRECISIONS = ("fp32", "bf16", "fp16", "int8", "mixed")
_STATEMENTS = ("import torch", "import models.synthesizer.synthesizer")


@dataclass(frozen=True)
class Options:
    """What to measure and how."""

    models: tuple[str, ...] = ()  # names; empty: all
    modes: tuple[Mode, ...] = MODES
    device: str = "cpu"
    threads: int = 1
    precisions: tuple[str, ...] = ("fp32",)
    batch_size: int = 0  # mean utterances of an update; 0: that of the recipe
    infer_batch_size: int = 1
    longest: int = 0  # frames of an utterance in inference; 0: whole
    warm_up: int = 1
    steps: int = 4
    small: bool = False  # tiny networks and few utterances
    random_weights: bool = False
    checkpoints: Mapping[str, str] = field(default_factory=dict)  # by model
    config: Path | None = None  # an experiment whose data are read; None: generated data
    overrides: tuple[str, ...] = ()
    compared: tuple[str, str] | None = None  # two settings
    voice: str = str(VOICE)
    vocoder: str | None = None


class Setting(NamedTuple):
    """How a model is run."""

    name: str
    precision: str
    threads: int
    random_batches: bool
    overrides: tuple[str, ...]


def parse_setting(text: str, precision: str, threads: int) -> Setting:
    """Reads a setting: words `key=value`.

    Args:
        text: `precision`, `threads`, `batches` ("buckets" or "random"), and keys of the
            configuration.
        precision: Where none is given.
        threads: Likewise.

    Raises:
        InputError: If a word is something else.
    """
    own = {"precision": precision, "threads": str(threads), "batches": "buckets"}
    overrides = []
    for word in text.split():
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"setting {word!r}: expected key=value")
        if key in own:
            own[key] = value
        elif "." in key:
            overrides.append(word)
        else:
            known = ", ".join(own)
            raise InputError(
                f"setting {word!r}: expected {known}, or a key such as train.optimizer"
            )
    if own["precision"] not in _PRECISIONS:
        raise InputError(f"setting {text!r}: precision must be one of {', '.join(_PRECISIONS)}")
    if own["batches"] not in ("buckets", "random"):
        raise InputError(f"setting {text!r}: batches must be buckets or random")
    if not own["threads"].isdecimal() or int(own["threads"]) < 1:
        raise InputError(f"setting {text!r}: threads must be 1 or more")
    is_random = own["batches"] == "random"
    chosen = own["precision"], int(own["threads"]), is_random
    return Setting(text, *chosen, tuple(overrides))


def run_benchmark(options: Options, command: str) -> Report:
    """Measures everything that was asked for, and logs each as it is done.

    Args:
        options: What to measure.
        command: As typed, for the report.

    Raises:
        InputError: If options contradict each other, or a model cannot be loaded.
    """
    device = torch.device(options.device)
    torch.set_num_threads(options.threads)
    _check(options)
    results: list[Result] = []
    comparisons: list[Comparison] = []
    for mode, model in _pairs(options):
        if options.compared is None:
            for precision in options.precisions:
                setting = parse_setting(f"precision={precision}", precision, options.threads)
                try:
                    results.append(_measured(options, mode, model, setting))
                except PrecisionError as error:
                    if len(options.precisions) == 1:
                        raise
                    get_logger(__name__).info("left out: %s", error)
        else:
            pair = [
                parse_setting(t, options.precisions[0], options.threads) for t in options.compared
            ]
            both, comparison = _compared(options, mode, model, pair)
            results += both
            comparisons.append(comparison)
    if options.compared is None and "speech" in options.modes:
        results.append(_speech(options, device))
    if options.compared is None and "start-up" in options.modes:
        results += [_start_up(statement) for statement in _STATEMENTS]
    return Report(command, environment(device), results, comparisons)


def _pairs(options: Options) -> Iterator[tuple[Mode, str]]:
    """Modes and models that have a subject of their own."""
    if options.config is not None:
        models = [load_config(options.config, options.overrides).model_type.lower()]
    else:
        models = list(options.models or known_models())
    for mode in ("training", "inference"):
        if mode in options.modes:
            yield from ((cast("Mode", mode), model) for model in models)


def _check(options: Options) -> None:
    """Refuses unknown models, options without an effect, and inference without weights."""
    if options.config is not None and options.models:
        raise InputError("--config chooses the model; leave out --model")
    for name in (*options.models, *options.checkpoints):
        check_model(name)
    for text in options.compared or ():
        parse_setting(text, options.precisions[0], options.threads)
    if options.compared is not None and not {"training", "inference"} & {*options.modes}:
        raise InputError("--compare is for training and inference; add one of them to --mode")
    if "inference" not in options.modes or options.random_weights:
        return
    if missing := [m for _, m in _pairs(options) if m not in options.checkpoints]:
        raise InputError(
            f"inference of {missing[0]}: name a trained model by --checkpoint, or give"
            " --random_weights"
        )


def _config(options: Options, mode: Mode, model: str, setting: Setting) -> Config:
    overrides = [*options.overrides, *setting.overrides]
    if options.batch_size:
        overrides += [
            f"train.batch_size={options.batch_size}",
            "train.gradient_accumulation_step=1",
        ]
    if options.config is not None:
        config = load_config(options.config, overrides)
    elif mode == "inference" and model in options.checkpoints:
        if changed := [*options.overrides, *setting.overrides]:
            raise InputError(
                f"{changed[0]}: a model of --checkpoint is measured as it was trained; leave it out"
            )
        config = open_model(options.checkpoints[model]).config
        train = replace(config.train, synthetic_utterances=N_LJSPEECH)
        config = replace(config, train=train)
    else:
        config = generated_config(model, overrides, small=options.small)
    if mode == "inference":
        return config
    if setting.precision not in ("fp32", "bf16", "fp16"):
        raise PrecisionError(
            f"training in precision={setting.precision}: expected fp32, bf16 or fp16"
        )
    precision = cast("Literal['fp32', 'bf16', 'fp16']", setting.precision)
    return replace(config, train=replace(config.train, mixed_precision=precision))


class _OnThreads:
    """A subject on a number of CPU threads."""

    def __init__(self, subject: Subject, threads: int) -> None:
        self.device = subject.device
        self._subject, self._threads = subject, threads

    def step(self) -> Work:
        torch.set_num_threads(self._threads)
        return self._subject.step()


def _subject(options: Options, mode: Mode, model: str, setting: Setting) -> Subject:
    config, device = _config(options, mode, model, setting), torch.device(options.device)
    if mode == "inference" and "batches=" in setting.name:
        raise InputError(f"setting {setting.name!r}: batches are of training; leave it out")
    if mode == "training" and setting.precision == "fp16" and device.type == "cpu":
        raise PrecisionError("training in precision=fp16 needs a GPU; use bf16 or fp32")
    if mode == "training":
        run: Subject = TrainingRun(config, device, random_batches=setting.random_batches)
    else:
        speed = Speed(device, setting.precision, options.infer_batch_size, options.longest)
        run = SynthesisRun(config, speed, options.checkpoints.get(model))
    return _OnThreads(run, setting.threads)


def _measured(options: Options, mode: Mode, model: str, setting: Setting) -> Result:
    subject = _subject(options, mode, model, setting)
    found = measure(subject, options.warm_up, options.steps)
    return _result(options, mode, model, setting, found)


def _result(
    options: Options, mode: Mode, model: str, setting: Setting, found: Measurement
) -> Result:
    config = _config(options, mode, model, setting)
    is_random = mode == "training" or model not in options.checkpoints
    of = Measured(
        model,
        mode,
        setting.name,
        _batch(options, config, mode),
        "random" if is_random else options.checkpoints[model],
        "generated" if config.train.synthetic_utterances else ", ".join(config.dataset),
    )
    sample_rate = config.preprocess.sample_rate
    # CPU seconds of several threads add up
    on_cpu = options.device == "cpu" and setting.threads == 1
    result = result_of(of, found, sample_rate=sample_rate, on_cpu=on_cpu)
    get_logger(__name__).info(
        "%s of %s, %s: %.0f frames/s", mode, model, setting.name, result.frames_per_s
    )
    return result


def _batch(options: Options, config: Config, mode: Mode) -> str:
    train = config.train
    if mode == "inference":
        return str(options.infer_batch_size)
    window = train.gradient_accumulation_step
    return f"{train.batch_size} x {window}" if window > 1 else str(train.batch_size)


def _compared(
    options: Options, mode: Mode, model: str, pair: Sequence[Setting]
) -> tuple[list[Result], Comparison]:
    """The results of two settings, whose peak memory is that of both together, and their ratio."""
    one, two = (_subject(options, mode, model, setting) for setting in pair)
    found = measure_in_turn(one, two, options.warm_up, options.steps)
    results = [_result(options, mode, model, *each) for each in zip(pair, found, strict=True)]
    return results, Comparison(model, mode, pair[0].name, pair[1].name, compare(*found))


def _speech(options: Options, device: torch.device) -> Result:
    """Text to sound with the voice and the vocoder of the options."""
    run = SpeechRun(options.voice, options.vocoder, device, TEXTS[:1] if options.small else TEXTS)
    found = measure(run, options.warm_up, options.steps)
    spoken = run.spoken[options.warm_up :]
    alone = [run.time_parts() for _ in range(options.warm_up + options.steps)][options.warm_up :]
    factors = {
        name: sum(getattr(parts, name) for parts in alone) / sum(parts.audio for parts in alone)
        for name in ("text", "acoustic", "vocoder")
    }
    parts_of_sound = factors | {
        "whole": sum(one.last for one in spoken) / sum(one.audio for one in spoken),
        "first_s": fmean(one.first for one in spoken),
        "last_s": fmean(one.last for one in spoken),
        "audio_s": fmean(one.audio for one in spoken),
    }
    voice = Path(options.voice).name
    of = Measured(f"{voice}, {run.name}", "speech", "", weights=voice, data="texts")
    on_cpu = device.type == "cpu" and options.threads == 1
    result = result_of(of, found, sample_rate=run.sample_rate, on_cpu=on_cpu)
    return replace(result, parts=parts_of_sound)


def _start_up(statement: str, repeats: int = 3) -> Result:
    """Time that a fresh interpreter takes for an import."""
    cpu, wall = [], []
    for _ in range(repeats):
        start, before = time.perf_counter(), _children_s()
        subprocess.run([sys.executable, "-c", statement], check=True, cwd=EGS.parent)
        cpu.append(_children_s() - before)
        wall.append(time.perf_counter() - start)
    of = Measured(statement, "start-up", "", weights="", data="")
    return Result(of, 0, repeats, spread(cpu), spread(wall), wall[0], peak_mib=0.0)


def _children_s() -> float:
    """CPU seconds of the processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
