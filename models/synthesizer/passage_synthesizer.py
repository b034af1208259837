"""Passages to speech: mels in batches, breaks between them, and their sound piece by piece."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from config.schema import Config, InferenceConfig
from models.base.devices import chosen_precision, require_compiler
from models.base.model import AcousticModel, Control, TtsOutput
from models.base.registry import model_of
from models.checkpoint.loading import TrainedModel
from models.synthesizer.settings import PitchContour, RangeWarning, Settings
from models.synthesizer.speech import Clause, Speech, arrange
from models.synthesizer.vocoders import OpenedVocoder
from modules.alignment.attention_quality import AttentionQuality, attention_qualities
from processors.text.passages import PLAIN, Passage
from processors.text.symbols import SILENCE
from processors.text.voice_phones import is_voiced
from utils.errors import InputError
from utils.logging import get_logger
from utils.seed import derived_seed

Infer = Callable[..., TtsOutput]  # `infer` of an acoustic model
_CHUNK_FRAMES = 64  # of a piece of a wav, 0.7 s: playback starts early


def infer_with_retries(
    infer: Infer,
    phone_ids: Tensor,
    phone_lengths: Tensor,
    speaker_ids: Tensor,
    *,
    seed: int,
    attempts: int,
    log_floor: float,
) -> tuple[TtsOutput, list[AttentionQuality]]:
    """Synthesises a batch; repeats items whose attention failed, and keeps the best attempts.

    Later attempts derive their seeds from the first one's.

    Args:
        phone_ids: (B, N) int64, 0 = padding.
        log_floor: Log-mel of silence, the padding of mels.

    Returns:
        Mels and durations, and the quality of the attention of each item.
    """
    best: dict[int, tuple[AttentionQuality, Tensor, Tensor]] = {}  # mels (T, M), durations (N,)
    faulty = list(range(len(phone_ids)))
    for attempt in range(attempts):
        rows = torch.tensor(faulty, device=phone_ids.device)
        output = infer(
            phone_ids[rows],
            phone_lengths[rows],
            speaker_ids=speaker_ids[rows],
            seed=derived_seed("attempt", seed, attempt) if attempt else seed,
        )
        if output.alignment is None or output.stopped is None:
            raise TypeError("the model does not return alignment and stopped")
        qualities = attention_qualities(
            output.alignment, phone_lengths[rows], output.mel_lengths, output.stopped
        )
        for row, (i, quality) in enumerate(zip(faulty, qualities, strict=True)):
            if i not in best or quality.cost < best[i][0].cost:
                mel = output.mel[row].T[: int(output.mel_lengths[row])]
                best[i] = quality, mel, output.durations[row]
        faulty = [i for i in faulty if best[i][0].fault]
        if not faulty:
            break
    chosen, mels, durations = zip(*(best[i] for i in range(len(phone_ids))), strict=True)
    padded = pad_sequence([*mels], batch_first=True, padding_value=log_floor).mT  # (B, M, T)
    lengths = torch.tensor([len(mel) for mel in mels], device=padded.device)
    return TtsOutput(padded, lengths, torch.stack(durations)), list(chosen)


class PassageSynthesizer:
    """Synthesises passages one after another, each as a `Speech` and the pieces of its wav."""

    def __init__(
        self, model: TrainedModel, config: Config, vocoder: OpenedVocoder, device: torch.device
    ) -> None:
        for name, trained in (("voice", model), ("vocoder", vocoder.model)):
            if trained is not None and trained.config.train.synthetic_utterances:
                get_logger(__name__).warning(
                    "this %s was trained on generated data (--synthetic): its speech is noise", name
                )
        self._network = _for_inference(model.network, config, device)
        self._aligns_by_attention = model_of(config).aligns_by_attention
        self._vocabulary = model.assets.required_vocabulary(model.home)
        in_letters = config.preprocess.text.in_letters
        self._voiced = frozenset(
            phone for phone in self._vocabulary.symbols if is_voiced(phone, in_letters=in_letters)
        )
        self._range = RangeWarning(model.assets.stats, self._voiced)
        self.vocoder = vocoder.load(config.inference, str(device))
        self._speakers = model.speakers
        self._mel = model.mel
        self._frame_s, self._log_floor = model.mel.frame_s, model.mel.log_floor_value
        self._inference = config.inference
        self._device = device

    @property
    def controls(self) -> frozenset[Control]:
        """The controls that the network takes."""
        return self._network.controls

    def pause_frames(self, slower: float) -> int:
        """Returns the frames of the pause between sentences; `slower` is a factor on durations."""
        pause_s = self._inference.sentence_pause_s * slower
        return round(pause_s * self._mel.sample_rate / self._mel.hop_length)

    def speak(
        self,
        passages: Sequence[Passage],
        speaker: int,
        settings: Settings,
        *,
        streamed: bool,
        n_before: int = 0,
    ) -> Iterator[Clause]:
        """Synthesises the passages of a text, and the silences between them, in order.

        Streamed, a passage is synthesised when it is asked for, and its wav in pieces. Otherwise,
        passages of similar length share the passes of both networks, and wavs are in one piece.
        `n_before` frames of the text were spoken before.

        Yields:
            Each passage or silence, with the words, the marks and the sentence that end in it, and
            times in the text; its `wav` is empty. The pieces of its wav, (n,) float32.
        """
        spoken = [passage for passage in passages if passage.spoken.phones]
        clauses = self._clauses(spoken, speaker, settings, streamed=streamed)
        n_pause = self.pause_frames(settings.duration_control)
        return arrange(passages, clauses, partial(self._silence, speaker), n_pause, n_before)

    def _clauses(
        self, passages: Sequence[Passage], speaker: int, settings: Settings, *, streamed: bool
    ) -> Iterator[Clause]:
        """Synthesises passages of similar length in batches, each when it is needed."""
        size = 1 if streamed else self._inference.batch_size
        by_length = sorted(range(len(passages)), key=lambda i: len(passages[i].spoken.phones))
        batches = [by_length[n : n + size] for n in range(0, len(passages), size)]
        batch_of = {i: batch for batch in batches for i in batch}
        edges = [*accumulate((len(passage.spoken.phones) for passage in passages), initial=0)]
        spans = [(start / edges[-1], end / edges[-1]) for start, end in pairwise(edges)]
        clauses: dict[int, Clause] = {}
        for i in range(len(passages)):
            if i not in clauses:
                chosen, asked = batch_of[i], settings
                if isinstance(settings.transform, PitchContour):  # over the whole text
                    transform = settings.transform.over(torch.tensor([spans[j] for j in chosen]))
                    asked = replace(settings, pitch_transform=transform)
                batch = [passages[j] for j in chosen]
                new = self._batch(batch, speaker, asked, streamed=streamed)
                clauses.update(zip(chosen, new, strict=True))
            yield clauses.pop(i)

    @torch.inference_mode()
    def _batch(
        self, passages: Sequence[Passage], speaker: int, settings: Settings, *, streamed: bool
    ) -> list[Clause]:
        """Synthesises passages without their times."""
        out, attention = self._infer(passages, speaker, settings)
        if not streamed:
            wavs = self.vocoder.infer(out.mel, out.mel_lengths, seed=settings.seed)
        f0, energy = (None if c is None else _array(c) for c in out.contours_per_frame())
        mels, durations = _array(out.mel), _array(out.durations).astype(np.int64)
        empty, _ = self._silence(speaker, 0)
        clauses: list[Clause] = []
        for i, passage in enumerate(passages):
            spoken, T = passage.spoken, int(durations[i].sum())
            clause = replace(
                empty,
                text=spoken.text,
                normalized=spoken.normalized,
                phone_names=spoken.phones,
                durations=durations[i, : len(spoken.phones)],
                mel=mels[i, :, :T],
                f0=None if f0 is None else f0[i, :T],
                energy=None if energy is None else energy[i, :T],
                out_of_vocabulary=spoken.out_of_vocabulary,
                attention=tuple(attention[i : i + 1]),
            )
            if settings.changes_pitch:
                self._range.check(clause)
            if streamed:
                mel = out.mel[i : i + 1, :, :T]
                pieces = self.vocoder.generate(mel, _CHUNK_FRAMES, seed=settings.seed)
            else:
                pieces = iter([wavs[i : i + 1, : T * self._mel.hop_length]])
            clauses.append((clause, _finite(spoken.text, clause.mel, pieces)))
        return clauses

    def _infer(
        self, passages: Sequence[Passage], speaker: int, settings: Settings
    ) -> tuple[TtsOutput, list[AttentionQuality]]:
        """Runs the acoustic model; warns of failed attention, if the model has attention."""
        phones = [passage.spoken.phones for passage in passages]
        phone_ids = self._padded([self._vocabulary.ids(names) for names in phones])  # (B, N)
        phone_lengths = torch.tensor([len(names) for names in phones], device=self._device)  # (B,)
        speaker_ids = torch.full((len(phones),), speaker, device=self._device)
        infer: Infer = partial(self._network.infer, **self._prosody(passages, settings))
        if not self._aligns_by_attention:
            out = infer(phone_ids, phone_lengths, speaker_ids=speaker_ids, seed=settings.seed)
            return out, []
        out, attention = infer_with_retries(
            infer,
            phone_ids,
            phone_lengths,
            speaker_ids,
            seed=settings.seed,
            attempts=self._inference.attention_attempts,
            log_floor=self._log_floor,
        )
        for passage, quality in zip(passages, attention, strict=True):
            if quality.fault:
                get_logger(__name__).warning(
                    "%r: attention failed in every attempt (inference.attention_attempts), the best"
                    " is used: %s; another --seed, a shorter sentence or more training may help",
                    passage.spoken.text,
                    quality.fault,
                )
        return out, attention

    def _prosody(self, passages: Sequence[Passage], settings: Settings) -> dict[str, Any]:
        """Builds the arguments of `infer` for the controls that are asked for."""
        arguments = settings.changed_controls()
        if "pitch" in arguments:
            arguments["pitch"] = self._padded([passage.pitch or () for passage in passages])
        for name in ("duration", "pitch") if any(p.prosody for p in passages) else ():
            if name in self.controls:
                prosodies = [p.prosody or [PLAIN] * len(p.spoken.phones) for p in passages]
                rows = [[getattr(phone, name) for phone in prosody] for prosody in prosodies]
                factors = self._padded(rows, 1.0)  # (B, N)
                arguments[f"{name}_control"] = factors * arguments.get(f"{name}_control", 1.0)
        if "pitch_transform" in self.controls:
            rows = [[name in self._voiced for name in p.spoken.phones] for p in passages]
            arguments["voiced"] = self._padded(rows)
        return arguments

    def _padded(self, rows: Sequence[Sequence[float]], padding: float = 0.0) -> Tensor:
        """Pads rows of different lengths to one tensor on the device, (B, N)."""
        tensors = [torch.tensor(row) for row in rows]
        return pad_sequence(tensors, batch_first=True, padding_value=padding).to(self._device)

    def _silence(self, speaker: int, n_frames: int) -> Clause:
        """Builds silence: one phone, the mel at its floor, and no sound."""
        zeros = np.zeros(n_frames, dtype=np.float32)
        clause = Speech(
            speaker=self._speakers[speaker].name,
            wav=np.zeros(0, dtype=np.float32),
            sample_rate=self._mel.sample_rate,
            frame_s=self._frame_s,
            phone_names=(SILENCE,) * (n_frames > 0),
            durations=np.array([n_frames] * (n_frames > 0), dtype=np.int64),
            mel=np.full((self._mel.n_mels, n_frames), self._log_floor, dtype=np.float32),
            f0=zeros,
            energy=zeros,
        )
        return clause, [np.zeros(n_frames * self._mel.hop_length, dtype=np.float32)]


def _for_inference(network: nn.Module, config: Config, device: torch.device) -> AcousticModel:
    model = cast("AcousticModel", network)
    precision = chosen_precision(config.inference.acoustic_precision, config, device)
    if precision not in model.PRECISIONS:
        raise InputError(
            f"inference.acoustic_precision is {precision}; {config.model_type} has"
            f" {', '.join(model.PRECISIONS)}"
        )
    attempts = config.inference.attention_attempts
    if not model_of(config).aligns_by_attention and attempts != InferenceConfig.attention_attempts:
        raise InputError(
            f"inference.attention_attempts is {attempts}, and {config.model_type} does not align by"
            " attention; remove it"
        )
    if config.inference.compile != "off":
        require_compiler("inference.compile", device)
    return model.for_inference(precision, config.inference.compile)


def _finite(text: str, mel: np.ndarray, wavs: Iterable[Tensor]) -> Iterator[np.ndarray]:
    """Yields the pieces of a wav, (1, n) each, as arrays; refuses values that are not finite."""
    for values in chain([mel], (_array(wav)[0] for wav in wavs)):
        if not np.isfinite(values).all():
            raise InputError(
                f"{text!r}: the model gives values that are not finite; its weights are damaged or"
                " its training diverged"
            )
        if values is not mel:
            yield values


def _array(tensor: Tensor) -> np.ndarray:
    return (tensor.float() if tensor.is_floating_point() else tensor).cpu().numpy()
