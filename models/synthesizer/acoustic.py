"""Passages of text to mels, with retries when attention fails, and to sound."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from config.schema import Config, InferenceConfig
from models.base.devices import chosen_precision, require_compiler
from models.base.model import AcousticModel, Control, TtsOutput
from models.base.registry import model_of
from models.checkpoint.loading import TrainedModel
from models.synthesizer.joining import Part, Placed, amplified, cut_pieces, faded_pieces
from models.synthesizer.passages import Passage
from models.synthesizer.settings import PitchContour, Settings
from models.synthesizer.vocoders import OpenedVocoder
from modules.alignment.attention_quality import AttentionQuality, attention_qualities
from processors.records import SpokenText
from processors.text.clauses import PLAIN
from processors.text.voice_phones import is_voiced
from utils.errors import InputError
from utils.logging import get_logger, progress
from utils.seed import derived_seed

_CHUNK_FRAMES = 64  # of a piece of a sentence, 0.7 s: playback starts early
Infer = Callable[..., TtsOutput]  # `infer` of an acoustic model


class PassageMels(NamedTuple):
    """Mels of a batch, and the quality of the attention of each item."""

    output: TtsOutput
    attention: Sequence[AttentionQuality | None]  # None where the model has no attention


class PassageSynthesizer:
    """Synthesises passages: their mels, and sound from these in batches or piece by piece."""

    def __init__(
        self, model: TrainedModel, config: Config, vocoder: OpenedVocoder, device: torch.device
    ) -> None:
        for name, trained in (("voice", model), ("vocoder", vocoder.model)):
            if trained is not None and trained.config.train.synthetic_utterances:
                get_logger(__name__).warning(
                    "this %s was trained on generated data (--synthetic): its speech is noise", name
                )
        self._network = _for_inference(model.network, config, device)
        self._vocabulary = model.assets.required_vocabulary(model.home)
        in_letters = config.preprocess.text.in_letters
        self._voiced = frozenset(
            phone for phone in self._vocabulary.symbols if is_voiced(phone, in_letters=in_letters)
        )
        self.vocoder = vocoder.load(config.inference, str(device))
        self._mel = model.mel
        self._inference = config.inference
        self._device = device

    @property
    def controls(self) -> frozenset[Control]:
        """The controls that the network takes."""
        return self._network.controls

    def mels(self, passages: Sequence[Passage], speaker: int, settings: Settings) -> PassageMels:
        """Runs the acoustic model on one batch."""
        phones = [passage.spoken.phones for passage in passages]
        phone_ids = self._padded([self._vocabulary.ids(names) for names in phones])  # (B, N)
        phone_lengths = torch.tensor([len(names) for names in phones], device=self._device)  # (B,)
        speaker_ids = torch.full((len(phones),), speaker, device=self._device)
        mels = infer_with_retries(
            partial(self._network.infer, **self._prosody(passages, settings)),
            phone_ids,
            phone_lengths,
            speaker_ids,
            seed=settings.seed,
            attempts=self._inference.attention_attempts,
            log_floor=self._mel.log_floor_value,
        )
        for passage, quality in zip(passages, mels.attention, strict=True):
            _warn_of_fault(passage.spoken, quality)
        return mels

    def parts(self, passages: Sequence[Passage], speaker: int, settings: Settings) -> list[Part]:
        """Synthesises clauses, in their order; those of similar length share a forward pass."""
        by_length = sorted(range(len(passages)), key=lambda i: len(passages[i].spoken.phones))
        parts: dict[int, Part] = {}
        size = self._inference.batch_size
        several = len(passages) > size  # otherwise it takes no longer than one batch
        with progress(len(passages), "sentences") if several else nullcontext() as bar:
            for start in range(0, len(by_length), size):
                chosen = by_length[start : start + size]
                batch = self._forward([passages[i] for i in chosen], speaker, settings)
                parts.update(zip(chosen, batch, strict=True))
                if bar is not None:
                    bar.advance(len(chosen))
        return [parts[i] for i in range(len(passages))]

    def pieces(self, placed: Placed[TtsOutput], settings: Settings) -> Iterator[np.ndarray]:
        """Synthesises the mel of one passage: pieces of its wav, (n,) each, in [-1, 1]."""
        out, passage, fitted = placed.output, placed.passage, placed.fitted
        hop_length = self._mel.hop_length
        wavs = self.vocoder.generate(out.mel, _CHUNK_FRAMES, seed=settings.seed)
        pieces: Iterator[np.ndarray] = (to_numpy(wav)[0] for wav in wavs)
        if passage.prosody:
            pieces = amplified(pieces, passage.gains(to_numpy(out.durations)[0]), hop_length)
        start, end = fitted.start * hop_length, fitted.end * hop_length
        pieces = cut_pieces(pieces, start, end)
        for piece in faded_pieces(pieces, end - start, self._mel.sample_rate):
            _check_finite(passage.spoken, piece)
            yield piece.clip(-1, 1)

    def _forward(self, passages: Sequence[Passage], speaker: int, settings: Settings) -> list[Part]:
        out, attention = self.mels(passages, speaker, settings)
        wavs = to_numpy(self.vocoder.infer(out.mel, out.mel_lengths, seed=settings.seed))
        f0, energy = (None if c is None else to_numpy(c) for c in out.contours_per_frame())
        all_durations, mels = to_numpy(out.durations), to_numpy(out.mel)
        parts: list[Part] = []
        for i, passage in enumerate(passages):
            durations = all_durations[i, : len(passage.spoken.phones)].astype(np.int64)
            T = int(durations.sum())
            wav = wavs[i, : T * self._mel.hop_length]
            if passage.prosody:
                gains = passage.gains(durations)
                wav = next(amplified([wav], gains, self._mel.hop_length))
            _check_finite(passage.spoken, mels[i, :, :T], wav)
            parts.append(
                Part(
                    normalized=passage.spoken.normalized,
                    phones=passage.spoken.phones,
                    durations=durations,
                    wav=wav,
                    mel=mels[i, :, :T],
                    f0=None if f0 is None else f0[i, :T],
                    energy=None if energy is None else energy[i, :T],
                    attention=attention[i],
                )
            )
        return parts

    def _prosody(self, passages: Sequence[Passage], settings: Settings) -> dict[str, Any]:
        """Arguments of `infer` for the controls that are asked for."""
        asked = settings.changed_controls()
        if "pitch" in asked:
            asked["pitch"] = self._padded([passage.pitch or () for passage in passages])
        for name in ("duration", "pitch") if any(p.prosody for p in passages) else ():
            if name in self.controls:
                prosodies = [p.prosody or [PLAIN] * len(p.spoken.phones) for p in passages]
                rows = [[getattr(phone, name) for phone in prosody] for prosody in prosodies]
                factors = self._padded(rows, 1.0)  # (B, N)
                asked[f"{name}_control"] = factors * asked.get(f"{name}_control", 1.0)
        if "pitch_transform" in asked:
            transform = settings.transform
            if isinstance(transform, PitchContour):
                spans = [[passage.start, passage.end] for passage in passages]
                transform = transform.over(torch.tensor(spans))
            asked["pitch_transform"] = transform
        if "pitch_transform" in self.controls:
            rows = [[name in self._voiced for name in p.spoken.phones] for p in passages]
            asked["voiced"] = self._padded(rows)
        return asked

    def _padded(self, rows: Sequence[Sequence[float]], padding: float = 0.0) -> Tensor:
        """Rows of different lengths as one tensor on the device, (B, N)."""
        tensors = [torch.tensor(row) for row in rows]
        return pad_sequence(tensors, batch_first=True, padding_value=padding).to(self._device)


def _for_inference(network: nn.Module, config: Config, device: torch.device) -> AcousticModel:
    model = cast("AcousticModel", network)
    precision = chosen_precision(config.inference.acoustic_precision, config, device)
    if precision not in model.PRECISIONS:
        raise InputError(
            f"inference.acoustic_precision is {precision}; {config.model_type} has"
            f" {', '.join(model.PRECISIONS)}"
        )
    attempts = config.inference.attention_attempts
    aligns_by_attention = not model_of(config).needs_durations
    if not aligns_by_attention and attempts != InferenceConfig.attention_attempts:
        raise InputError(
            f"inference.attention_attempts is {attempts}, and {config.model_type} does not align by"
            " attention; remove it"
        )
    if config.inference.compile != "off":
        require_compiler("inference.compile", device)
    return model.for_inference(precision, config.inference.compile)


def _warn_of_fault(clause: SpokenText, quality: AttentionQuality | None) -> None:
    if quality is not None and quality.fault:
        get_logger(__name__).warning(
            "%r: attention failed in every attempt (inference.attention_attempts), the best is"
            " used: %s; another --seed, a shorter sentence or more training may help",
            clause.text,
            quality.fault,
        )


class _Item(NamedTuple):
    """The best attempt at one item so far."""

    quality: AttentionQuality
    mel: Tensor  # (M, T)
    durations: Tensor  # (N,)


def infer_with_retries(
    infer: Infer,
    phone_ids: Tensor,
    phone_lengths: Tensor,
    speaker_ids: Tensor,
    *,
    seed: int,
    attempts: int,
    log_floor: float,
) -> PassageMels:
    """Synthesises a batch; repeats items whose attention failed, and keeps the best attempts.

    A model that returns no alignment is called once. Later attempts derive their seeds from the
    first one's.

    Args:
        phone_ids: (B, N) int64, 0 = padding.
        attempts: Most attempts at each item.
        log_floor: Log-mel of silence, the padding of mels.
    """
    best: dict[int, _Item] = {}
    faulty = list(range(len(phone_ids)))
    for attempt in range(attempts):
        rows = torch.tensor(faulty, device=phone_ids.device)
        output = infer(
            phone_ids[rows],
            phone_lengths[rows],
            speaker_ids=speaker_ids[rows],
            seed=derived_seed("attempt", seed, attempt) if attempt else seed,
        )
        if output.alignment is None:
            return PassageMels(output, [None] * len(phone_ids))
        for i, item in zip(faulty, _items(output, phone_lengths[rows]), strict=True):
            if i not in best or item.quality.cost < best[i].quality.cost:
                best[i] = item
        faulty = [i for i in faulty if best[i].quality.fault]
        if not faulty:
            break
    return _joined([best[i] for i in range(len(phone_ids))], log_floor)


def _items(output: TtsOutput, phone_lengths: Tensor) -> list[_Item]:
    if output.alignment is None or output.stopped is None:
        raise TypeError("the model returns alignment or stopped, but not both")
    lengths = output.mel_lengths
    qualities = attention_qualities(output.alignment, phone_lengths, lengths, output.stopped)
    return [
        _Item(quality, output.mel[row, :, : int(lengths[row])], output.durations[row])
        for row, quality in enumerate(qualities)
    ]


def _joined(items: Sequence[_Item], log_floor: float) -> PassageMels:
    mels = [item.mel.T for item in items]
    output = TtsOutput(
        pad_sequence(mels, batch_first=True, padding_value=log_floor).mT,
        torch.tensor([len(mel) for mel in mels], device=mels[0].device),
        torch.stack([item.durations for item in items]),
    )
    return PassageMels(output, [item.quality for item in items])


def _check_finite(clause: SpokenText, *made: np.ndarray) -> None:
    if not all(np.isfinite(values).all() for values in made):
        raise InputError(
            f"{clause.text!r}: the model gives values that are not finite; its weights are "
            "damaged or its training diverged"
        )


def to_numpy(tensor: Tensor) -> np.ndarray:
    """Converts a tensor of any device and float type to an array of float32 or integers."""
    return (tensor.float() if tensor.is_floating_point() else tensor).cpu().numpy()
