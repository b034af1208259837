"""What is timed: updates as in stage 2, networks with random weights, and a voice from text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
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
from models.base.registry import model_of
from models.programs.benchmark.results import Work
from models.synthesizer.synthesizer import Synthesizer
from models.training.data import ProcessRank, collect_assets, load_data
from models.training.observing.tracker import Tracker
from models.training.run import Run
from models.training.trainer import Trainer
from processors.dataset.batch import TtsItem
from processors.dataset.sampler import Draw
from utils.errors import InputError
from utils.seed import derived_seed, seed_everything

TEXTS = (
    "Printing, in the only sense with which we are at present concerned, differs from most arts.",
    "The train leaves at nine.",
    "In being comparatively modern, it needs few words of explanation; its tools, on the other"
    " hand, have a long history.",
)
_VOCODER_PRECISIONS = get_args(VocoderPrecision)


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
        batch_size: Utterances of a batch.
        longest: Frames at most; 0: whole utterances.
        repeated: Synthesise one batch of middle length again and again.
    """
    assets = collect_assets(config)
    seed_everything(config.train.random_seed)
    network: Any = model_of(config).network.build(config.model, assets)
    utterances = load_data(config, assets, ProcessRank(), device).validation
    is_acoustic = config.task == "tts"
    choices = network.PRECISIONS if is_acoustic else _VOCODER_PRECISIONS
    check_precision(precision, choices, f"{type(network).__name__} in inference")
    compiled = [config.inference.compile] if is_acoustic else []
    network = network.to(device).eval().for_inference(precision, *compiled)
    by_length = np.argsort(utterances.lengths, kind="stable")
    batches = np.split(by_length, range(batch_size, len(by_length), batch_size))
    middle = len(batches) // 2
    shuffled = np.random.default_rng(derived_seed("synthesis")).permutation(len(batches))
    order = cycle([middle] if repeated else shuffled)

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
        given: dict[str, Any] = {"durations": durations.to(device)}
    else:
        n_frames = torch.tensor([item.mel.shape[1] for item in items], device=device)
        given = {"gate_threshold": 1.0, "max_frames": n_frames}
    out: TtsOutput = network.infer(
        phone_ids, lengths, speaker_ids=torch.zeros_like(lengths), **given
    )
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

    def step_of(part: Callable[[str], object]) -> Callable[[], Work]:
        texts = cycle(TEXTS)

        def step() -> Work:
            text = next(texts)
            part(text)
            n_frames = spoken[text].mel.shape[1]
            return Work(1, n_frames, n_frames, spoken[text].seconds)

        return step

    return {name: step_of(part) for name, part in parts.items()}


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
