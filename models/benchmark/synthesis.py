"""Synthesis: acoustic models and vocoders alone, and text to sound with its parts."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from config.schema import AcousticPrecision, Config
from config.train import CompileMode
from models.base.assets import Assets
from models.base.interfaces import AcousticModel, TrainedVocoder
from models.base.registry import model_of
from models.benchmark.timing import Work, synchronise
from models.checkpoint.loading import load_model
from models.synthesizer.synthesizer import Synthesizer
from models.synthesizer.vocoders import open_vocoder
from models.training.data.loading import ProcessRank, collect_assets, load_data
from modules.mel import MelConfig
from processors.dataset.batch import TtsItem, VocoderItem
from processors.dataset.sampler import Draw
from utils.errors import InputError
from utils.seed import derived_seed, seed_everything

VocoderPrecision = Literal["fp32", "mixed", "bf16"]
_VOCODER_PRECISIONS = get_args(VocoderPrecision)
TEXTS = (
    "Printing, in the only sense with which we are at present concerned, differs from most arts.",
    "The train leaves at nine.",
    "In being comparatively modern, it needs few words of explanation; its tools, on the other"
    " hand, have a long history.",
)


class PrecisionError(InputError):
    """A precision that a model does not have."""


class Speed(NamedTuple):
    """How synthesis is measured."""

    device: torch.device
    precision: str  # one that `for_inference` of the model has
    batch_size: int  # utterances of a call
    longest: int  # frames; longer utterances are cut; 0: none is


class SynthesisRun:
    """A model that synthesises validation utterances; `step` synthesises a batch.

    With random weights, acoustic models are given the durations of the utterances (Tacotron 2: the
    number of frames), since they would predict nonsense; with a checkpoint they predict them.

    Args:
        config: The experiment.
        speed: What is measured.
        checkpoint: Model to load; None: random weights.

    Attributes:
        device: Where it runs.
    """

    def __init__(self, config: Config, speed: Speed, checkpoint: str | None = None) -> None:
        self.device = speed.device
        network, assets = _network(config, checkpoint)
        utterances = load_data(config, assets, ProcessRank(), speed.device).validation
        self._utterances = utterances
        self._batches = _batches(utterances.lengths, speed.batch_size)
        self._hop_length = assets.mel.hop_length
        network = network.to(speed.device).eval()
        if config.task == "tts":
            compiled = config.inference.compile
            self._call = _acoustic_call(network, speed, compiled, forced=checkpoint is None)
        else:
            self._call = _vocoder_call(network, speed, assets.mel)

    @torch.inference_mode()
    def step(self) -> Work:
        """Synthesises the next batch."""
        items = [self._utterances[Draw(0, item)] for item in next(self._batches)]
        lengths, n_frames = self._call(items)
        frames = int(lengths.sum())
        return Work(len(items), frames, len(items) * n_frames, frames * self._hop_length)


# Synthesises some utterances; returns their frames (B,), and those with padding.
_SynthesisCall = Callable[[Sequence[Any]], tuple[Tensor, int]]


def _network(config: Config, checkpoint: str | None) -> tuple[nn.Module, Assets]:
    """The network and the assets with which utterances are read."""
    assets = collect_assets(config)
    if checkpoint is None:
        seed_everything(config.train.random_seed)
        return model_of(config).build_network(config, assets), assets
    model = load_model(checkpoint)
    # utterances of another speaker speak with the voice of the first
    return model.network, replace(model.assets, speakers=assets.speakers)


def _batches(lengths: np.ndarray, size: int) -> Iterator[list[int]]:
    """Utterances of similar length, batches in random order, without end."""
    by_length = np.argsort(lengths, kind="stable")
    batches = [by_length[start : start + size].tolist() for start in range(0, len(lengths), size)]
    order = np.random.default_rng(derived_seed("synthesis")).permutation(len(batches))
    return cycle([batches[index] for index in order])


def _acoustic_call(
    network: nn.Module, speed: Speed, compiled: CompileMode, *, forced: bool
) -> _SynthesisCall:
    model = cast("AcousticModel", network)
    _check_precision(speed.precision, model.PRECISIONS, network)
    precision = cast("AcousticPrecision", speed.precision)
    acoustic: Any = model.for_inference(precision, compiled)

    def call(items: Sequence[TtsItem]) -> tuple[Tensor, int]:
        items = [_cut(item, speed.longest) for item in items]
        phone_ids = pad_sequence([one.phone_ids for one in items], batch_first=True)
        lengths = torch.tensor([len(one.phone_ids) for one in items], device=speed.device)
        options: dict[str, Any] = {}
        if forced and acoustic.controls:
            options["durations"] = _durations(items).to(speed.device)
        elif forced:
            n_frames = torch.tensor([one.mel.shape[1] for one in items], device=speed.device)
            options |= {"gate_threshold": 1.0, "max_frames": n_frames}
        speakers = torch.zeros_like(lengths)
        out = acoustic.infer(phone_ids.to(speed.device), lengths, speaker_ids=speakers, **options)
        return out.mel_lengths, out.mel.shape[2]

    return call


def _durations(items: Sequence[TtsItem]) -> Tensor:
    """Of the utterances, (B, N); equal ones where none are known."""
    rows = []
    for item in items:
        N, T = len(item.phone_ids), item.mel.shape[1]
        equal = (torch.arange(N + 1) * T // N).diff()
        rows.append(equal if item.durations is None else item.durations)
    return pad_sequence(rows, batch_first=True)


def _cut(item: TtsItem, longest: int) -> TtsItem:
    """The first phones of an utterance, with about `longest` frames; 0: all."""
    if not longest or longest >= item.mel.shape[1]:
        return item
    durations = _durations([item])[0]
    n_phones = max(1, int((durations.cumsum(0) <= longest).sum()))
    n_frames = max(1, int(durations[:n_phones].sum()))
    return item._replace(
        phone_ids=item.phone_ids[:n_phones],
        durations=durations[:n_phones],
        mel=item.mel[:, :n_frames],
    )


def _vocoder_call(network: nn.Module, speed: Speed, mel_config: MelConfig) -> _SynthesisCall:
    _check_precision(speed.precision, _VOCODER_PRECISIONS, network)
    precision = cast("VocoderPrecision", speed.precision)
    vocoder = cast("TrainedVocoder", network).for_inference(precision)
    floor = mel_config.log_floor_value

    def call(items: Sequence[VocoderItem]) -> tuple[Tensor, int]:
        mels = [item.mel[:, : speed.longest or None].T for item in items]  # (T, M) each
        mel = pad_sequence(mels, batch_first=True, padding_value=floor).mT.to(speed.device)
        lengths = torch.tensor([len(one) for one in mels], device=speed.device)
        vocoder.infer(mel, lengths)
        return lengths, mel.shape[2]

    return call


def _check_precision(precision: str, known: Sequence[str], network: nn.Module) -> None:
    if precision not in known:
        raise PrecisionError(
            f"precision={precision}: {type(network).__name__} has {', '.join(known)} in inference"
        )


class Spoken(NamedTuple):
    """Seconds from text to sound, for one text."""

    first: float  # until the first piece of sound of `generate`
    last: float  # until the last
    audio: float  # length of the sound


class Parts(NamedTuple):
    """Seconds of the parts of text to sound, each alone, for one text."""

    text: float  # normalisation and phones
    acoustic: float
    vocoder: float
    audio: float  # length of the sound


class SpeechRun:
    """A voice and a vocoder from text to sound; `step` speaks the next text.

    Args:
        voice: Experiment, checkpoint or name on the Hub.
        vocoder: The same, or "griffin_lim"; None: the bundled one.
        device: Where they run.
        texts: What is spoken.

    Attributes:
        device: As given.
        name: Of the vocoder.
        sample_rate: Hz.
        spoken: Of each text so far.
    """

    def __init__(
        self, voice: str, vocoder: str | None, device: torch.device, texts: Sequence[str] = TEXTS
    ) -> None:
        self.device = device
        self._synthesizer = Synthesizer(voice, vocoder, device.type)
        self._model = load_model(voice, device.type)
        inference = self._synthesizer.config.inference
        self._network: Any = cast("AcousticModel", self._model.network).for_inference(
            inference.acoustic_precision, inference.compile
        )
        opened = open_vocoder(vocoder, self._model.mel)
        self._vocoder = opened.load(inference, device.type)
        self._texts, self._texts_of_parts = cycle(texts), cycle(texts)
        on_one_core = device.type == "cpu" and torch.get_num_threads() == 1
        self._clock = time.process_time if on_one_core else time.perf_counter
        self.name = opened.name
        self.sample_rate = self._model.mel.sample_rate
        self.spoken: list[Spoken] = []

    @torch.inference_mode()
    def step(self) -> Work:
        """Speaks the next text."""
        start, first, n_samples = self._clock(), 0.0, 0
        for piece in self._synthesizer.generate(next(self._texts)):
            first = first or self._clock() - start
            n_samples += len(piece)
        last = self._clock() - start
        self.spoken.append(Spoken(first, last, n_samples / self.sample_rate))
        frames = n_samples // self._model.mel.hop_length
        return Work(1, frames, frames, n_samples)

    @torch.inference_mode()
    def time_parts(self) -> Parts:
        """Times the parts for the next text."""
        text = next(self._texts_of_parts)
        start = self._clock()
        names = self._synthesizer.phone_names(text)
        read = self._clock() - start
        ids = torch.tensor([self._model.assets.required_vocabulary().ids(names)])
        network, lengths = self._network, torch.tensor([ids.shape[1]])
        speakers = torch.zeros_like(lengths).to(self.device)
        ids, lengths = ids.to(self.device), lengths.to(self.device)
        acoustic, out = self._timed(lambda: network.infer(ids, lengths, speaker_ids=speakers))
        vocoded, _ = self._timed(lambda: self._vocoder.infer(out.mel, out.mel_lengths))
        frames = int(out.mel_lengths.sum())
        audio = frames * self._model.mel.hop_length / self.sample_rate
        return Parts(read, acoustic, vocoded, audio)

    def _timed(self, work: Callable[[], Any]) -> tuple[float, Any]:
        start = self._clock()
        result = work()
        synchronise(self.device)
        return self._clock() - start, result
