"""The benchmark: updates as in stage 2, networks with random weights, and a voice from text."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from config.schema import Config, VocoderPrecision
from models.base.devices import training_precision
from models.base.model import TtsOutput
from models.base.registry import load_config, model_names, model_of
from models.programs.benchmark.results import Result, Subject, Work, figures_of, measure, ratios_of
from models.synthesizer.synthesizer import Synthesizer
from models.training.data import ProcessRank, collect_assets, load_data
from models.training.observing.tracker import Tracker
from models.training.run import Run
from models.training.trainer import Trainer
from processors.dataset.batch import TtsItem
from processors.dataset.generated import N_LJSPEECH
from processors.dataset.sampler import Draw
from utils.errors import InputError, nearest
from utils.logging import get_logger
from utils.seed import derived_seed, seed_everything

TEXTS = (
    "Printing, in the only sense with which we are at present concerned, differs from most arts.",
    "The train leaves at nine.",
    "In being comparatively modern, it needs few words of explanation; its tools, on the other"
    " hand, have a long history.",
)
ROOT = Path(__file__).parents[3]
MODES = ("training", "inference", "speech", "start-up")
VOICE = ROOT / "egs" / "_voices" / "choir"
_STATEMENTS = ("import torch", "import models.synthesizer.synthesizer")
_log = get_logger(__name__)


class PrecisionError(InputError):
    """A model lacks the precision that was asked for."""


def check_precision(precision: str, choices: Sequence[str], what: str) -> None:
    """Refuses a precision that is not among the choices of `what`."""
    if precision not in choices:
        raise PrecisionError(f"precision={precision}: {what} has {', '.join(choices)}")


def synthesis_step(
    config: Config,
    device: torch.device,
    precision: str,
    batch_size: int = 1,
    longest: int = 0,
    *,
    repeated: bool = False,
) -> Callable[[], Work]:
    """Builds a network with random weights; the returned function synthesises the next batch.

    Acoustic models are given the durations of the validation utterances (Tacotron 2: the number of
    frames), since they would predict nonsense.

    Args:
        longest: Frames at most; 0: whole utterances.
        repeated: Synthesise one batch of middle length again and again.
    """
    assets = collect_assets(config)
    seed_everything(config.train.random_seed)
    network: Any = model_of(config).network.build(config.model, assets)
    utterances = load_data(config, assets, ProcessRank(), device).validation
    is_acoustic = config.task == "tts"
    choices = network.PRECISIONS if is_acoustic else get_args(VocoderPrecision)
    check_precision(precision, choices, f"{type(network).__name__} in inference")
    compiled = [config.inference.compile] if is_acoustic else []
    network = network.to(device).eval().for_inference(precision, *compiled)
    by_length = np.argsort(utterances.lengths, kind="stable")
    batches = np.split(by_length, range(batch_size, len(by_length), batch_size))
    shuffled = np.random.default_rng(derived_seed("synthesis")).permutation(len(batches))
    order = cycle([len(batches) // 2] if repeated else shuffled)

    @torch.inference_mode()
    def step() -> Work:
        items: list[Any] = [utterances[Draw(0, int(item))] for item in batches[next(order)]]
        if is_acoustic:
            out = _infer(network, [cut(item, longest) for item in items], device)
            lengths, n_frames = out.mel_lengths, out.mel.shape[2]
        else:
            mels = [item.mel[:, : longest or None].T for item in items]  # (T, M) each
            mel = pad_sequence(mels, batch_first=True, padding_value=assets.mel.log_floor_value)
            lengths, n_frames = torch.tensor([len(frames) for frames in mels]), mel.shape[1]
            network.infer(mel.mT.to(device), lengths.to(device))
        frames = int(lengths.sum())
        audio_s = frames * assets.mel.hop_length / assets.mel.sample_rate
        return Work(len(items), frames, len(items) * n_frames, audio_s)

    return step


def _infer(network: Any, items: Sequence[TtsItem], device: torch.device) -> TtsOutput:  # noqa: ANN401
    """Synthesises mels of the lengths that the utterances have."""
    phone_ids = pad_sequence([item.phone_ids for item in items], batch_first=True).to(device)
    lengths = torch.tensor([len(item.phone_ids) for item in items], device=device)
    if network.controls:
        durations = pad_sequence([durations_of(item) for item in items], batch_first=True)
        limits: dict[str, Any] = {"durations": durations.to(device)}
    else:
        n_frames = torch.tensor([item.mel.shape[1] for item in items], device=device)
        limits = {"gate_threshold": 1.0, "max_frames": n_frames}
    speaker_ids = torch.zeros_like(lengths)
    out: TtsOutput = network.infer(phone_ids, lengths, speaker_ids=speaker_ids, **limits)
    return out


def durations_of(item: TtsItem) -> Tensor:
    """Returns durations of an utterance in frames, (N,); equal ones if it has none."""
    N, T = len(item.phone_ids), item.mel.shape[1]
    return (torch.arange(N + 1) * T // N).diff() if item.durations is None else item.durations


def cut(item: TtsItem, longest: int) -> TtsItem:
    """Returns the first phones of an utterance, with about `longest` frames; 0: all."""
    if not longest or longest >= item.mel.shape[1]:
        return item
    durations = durations_of(item)
    n_phones = max(1, int((durations.cumsum(0) <= longest).sum()))
    durations = durations[:n_phones]
    mel = item.mel[:, : max(1, int(durations.sum()))]
    return item._replace(phone_ids=item.phone_ids[:n_phones], durations=durations, mel=mel)


def speech_steps(
    voice: str, vocoder: str | None, device: torch.device
) -> Mapping[str, Callable[[], Work]]:
    """Loads a voice and a vocoder; the returned functions speak the next of three texts.

    Returns:
        "text", normalisation and phones alone; "whole", by `Synthesizer.generate`; and its "first
        sound", until the first piece.
    """
    synthesizer = Synthesizer(voice, vocoder, device.type)
    spoken = {text: synthesizer(text) for text in TEXTS}
    parts: dict[str, Callable[[str], object]] = {
        "text": synthesizer.phone_names,
        "whole": lambda text: list(synthesizer.generate(text)),
        "first sound": lambda text: next(iter(synthesizer.generate(text))),
    }

    def step(part: Callable[[str], object], texts: Iterator[str]) -> Work:
        text = next(texts)
        part(text)
        n_frames = spoken[text].mel.shape[1]
        return Work(1, n_frames, n_frames, spoken[text].seconds)

    return {name: partial(step, part, cycle(TEXTS)) for name, part in parts.items()}


def training_step(config: Config, device: torch.device) -> Callable[[], Work]:
    """Builds an experiment; the returned function runs one update. Nothing is saved."""
    loader = replace(config.train.dataloader, num_worker=0)
    train = replace(config.train, dataloader=loader, tracker="none", log_steps=0, valid_samples=0)
    train = replace(train, max_epoch=10**9, max_steps=0)  # endless
    config = replace(config, train=train)
    seed_everything(train.random_seed)
    AcceleratorState._reset_state(reset_partial_state=True)  # one process, several precisions
    precision = training_precision(train.mixed_precision, device)
    mixed = "no" if precision == "fp32" else precision  # accelerate's name
    accelerator = Accelerator(cpu=device.type == "cpu", mixed_precision=mixed)
    assets = collect_assets(config)
    task = model_of(config).task.build(config, assets)
    data = load_data(config, assets, ProcessRank(), device)
    nowhere = Path()
    trainer = Trainer(Run(task, data, train, accelerator, nowhere, Tracker(nowhere)))
    windows, mel = trainer.windows(), assets.mel

    def step() -> Work:
        batches = next(windows)
        trainer.update(batches)
        frames = sum(int(batch.mel_lengths.sum()) for batch in batches)
        cells = sum(batch.mel.shape[0] * batch.mel.shape[2] for batch in batches)
        n_items = sum(len(batch.ids) for batch in batches)
        return Work(n_items, frames, cells, frames * mel.hop_length / mel.sample_rate)

    return step


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
    compared, device = options.compare, torch.device(options.device)
    if len({setting.partition("=")[0] for setting in compared}) > 1:
        raise InputError(f"--compare {' '.join(compared)}: expected two values of one key")
    modes = [mode for mode in ("training", "inference") if mode in options.mode]
    if compared and not modes:
        raise InputError("--compare is for training and inference; add one of them to --mode")
    # timed in turn: the two settings, or each precision alone
    groups = [compared] if compared else [[f"precision={name}"] for name in options.precision]
    for mode, model, settings in product(modes, _models(options), groups):
        try:
            subjects = {name: _subject(mode, model, _with(options, name)) for name in settings}
        except PrecisionError as error:
            if len(groups) == 1:
                raise
            _log.info("left out: %s", error)
        else:
            yield from _measured(options, mode, model, subjects)
    if "speech" in options.mode and not compared:
        name = f"{Path(options.voice).name}, {options.vocoder_dir or 'bundled vocoder'}"
        steps = speech_steps(options.voice, options.vocoder_dir, device)
        subjects = {part: Subject(step, device, options.threads) for part, step in steps.items()}
        yield from _measured(options, "speech", name, subjects)
    if "start-up" in options.mode and not compared:
        subjects = {code: Subject(partial(_run, code), device) for code in _STATEMENTS}
        yield from _measured(options, "start-up", "python", subjects)


def _models(options: Options) -> Sequence[str]:
    if options.config is None:
        return options.model or list(known_models())
    if options.model:
        raise InputError("--config chooses the model; leave out --model")
    return [load_config(options.config, options.overrides).model_type.lower()]


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


def _subject(mode: str, model: str, options: Options) -> Subject:
    device, precision = torch.device(options.device), options.precision[0]
    repeated = options.lengths == "repeated"
    if mode == "training":
        if repeated:
            raise InputError("lengths=repeated: lengths are of synthesis; use --mode inference")
        choices = ("fp32", "bf16") if options.device == "cpu" else ("fp32", "bf16", "fp16")
        check_precision(precision, choices, f"training on {options.device}")
        step = training_step(_config(model, options, f"train.mixed_precision={precision}"), device)
    else:
        config, sizes = _config(model, options), (options.infer_batch_size, options.longest)
        step = synthesis_step(config, device, precision, *sizes, repeated=repeated)
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
        _log.info("%s of %s, %s: %.3g s", mode, model, setting, figures["p50, s"])
        yield Result(mode, model, setting, figures)
    if options.compare:
        first, second = measurements
        setting = " / ".join(by_setting)
        yield Result("comparison", f"{model}, {mode}", setting, ratios_of(first, second))


def _run(statement: str) -> Work:
    subprocess.run([sys.executable, "-c", statement], check=True, cwd=ROOT)
    return Work()
