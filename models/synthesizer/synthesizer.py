"""From text to speech: a trained acoustic model and a vocoder behind one call.

Long texts are synthesised by sentences, in batches. Batches do not change the speech: padding
never changes a result, and sentences are put back in order.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from models.base.assets import Speaker, choose_speaker
from models.checkpoint.loading import open_model
from models.synthesizer.acoustic.passages import PassageMels
from models.synthesizer.fingerprint import fingerprint, model_facts
from models.synthesizer.overrides import with_overrides
from models.synthesizer.prosody.controls import Controls, Transform, transform_of
from models.synthesizer.prosody.range import RangeWarning
from models.synthesizer.speech import (
    Part,
    Speech,
    faded_out,
    faded_pieces,
    join,
    log_gain,
    silence,
    warn_if_rushed,
    warn_if_silent,
)
from models.synthesizer.text.clauses import ClauseSplitter
from models.synthesizer.text.reading import Passage, TextReader
from models.synthesizer.text.voice_phones import VoicePhones
from models.synthesizer.vocoders import open_vocoder
from modules.attention_quality import AttentionQuality
from processors.records import SpokenText
from processors.text.symbols import SILENCE
from utils.errors import InputError
from utils.logging import progress

_MOST_SEED = 2**63 - 1  # PyTorch's largest
_CHUNK_FRAMES = 64  # of a piece of a sentence, 0.7 s: playback starts early


class Synthesizer:
    """Synthesises text with a trained acoustic model.

    Args:
        reference: An experiment folder, a checkpoint in it, or a name on the Hub.
        vocoder: The same for a vocoder, or "griffin_lim"; None: the bundled one, or Griffin-Lim
            where that was made for another mel.
        device: Where the networks run.
        resample: Use the vocoder also if it was made for another mel or sample rate: mels are
            converted and the sound is resampled, at some cost of quality.
        overrides: `key.path=value` for the text and inference settings that the model came with.

    Raises:
        InputError: If a model cannot be loaded, is of the wrong kind, or if the vocoder was made
            for another mel.
    """

    def __init__(
        self,
        reference: str | Path,
        vocoder: str | Path | None = None,
        device: str = "cpu",
        *,
        resample: bool = False,
        overrides: Sequence[str] = (),
    ) -> None:
        opened = open_model(reference, overrides)
        if opened.config.task != "tts":
            raise InputError(f"{reference} is a vocoder; expected an acoustic model (task tts)")
        self._opened_vocoder = open_vocoder(vocoder, opened.assets.mel, resample=resample)
        self.model = opened.load(device)
        self.speakers: tuple[Speaker, ...] = self.model.speakers
        self.config = with_overrides(self.model, overrides)
        self._device = torch.device(device)
        self._mels = PassageMels(self.model, self.config, self._device)
        self._vocoder = self._opened_vocoder.load(self.config.inference, device)
        self._range = RangeWarning(
            self.model.stats, in_letters=self.config.preprocess.text.in_letters
        )
        self._reader = TextReader(
            ClauseSplitter(
                self.config.preprocess.text,
                self.config.inference.max_phones,
                self.config.spoken_p_arpabet,
            ),
            VoicePhones(self.model.assets.known_phones, self.config.inference.unknown_phones),
        )

    def __call__(
        self,
        text: str,
        *,
        speaker: str | None = None,
        pitch_control: float = 1.0,
        energy_control: float = 1.0,
        duration_control: float = 1.0,
        pitch_transform: Transform | None = None,
        pitch: Sequence[float] | None = None,
        fade_out: int = 0,
        seed: int = 0,
    ) -> Speech:
        """Synthesises a text of any length.

        Args:
            text: Any text; it may contain phones as `{HH AH0 L OW1}`.
            speaker: Name; may be left out when the model has one speaker only.
            pitch_control: Factor on f0 in Hz, after the transform.
            energy_control: Factor on the energy.
            duration_control: Factor on the length of phones and pauses; 1.2 is slower.
            pitch_transform: Of the predicted f0 of voiced phones, around the speaker's mean:
                "flatten", "invert", a record, or a function of Hz and lengths, which is called for
                each sentence. A contour stretches over the whole text.
            pitch: Hz for each of `phone_names`, 0 = unvoiced, instead of the predicted f0.
            fade_out: Frames at the end of the wav that fade linearly.
            seed: Of Tacotron 2 and WaveGlow, which draw random numbers; the same seed gives the
                same speech. Other models draw none. From 0 to 2**63 - 1.

        Raises:
            InputError: If the text contains no word, the speaker is unknown, there
                are several and none is named, the model lacks a control, a control or the seed is
                of another type or out of range, or the pitch has not one value per phone.
        """
        factors = pitch_control, energy_control, duration_control
        controls = self.checked(Controls(*factors, transform_of(pitch_transform), pitch))
        seed = _checked_seed(seed)
        n_faded = self._samples(fade_out)
        index = choose_speaker(self.speakers, speaker)
        sentences = self._read(text, index, controls)
        passages = [passage for sentence in sentences for passage in sentence]
        with self._seeded(seed):
            spoken = iter(self._synthesise(passages, index, controls, seed))
        parts = [[next(spoken) for _ in sentence] for sentence in sentences]
        speech = join(
            list(self._with_pauses(parts, controls.duration)),
            text=text,
            speaker=self.speakers[index].name,
            sample_rate=self.model.mel.sample_rate,
            hop_length=self.model.mel.hop_length,
            out_of_vocabulary=[word for one in passages for word in one.spoken.out_of_vocabulary],
        )
        if controls.change_pitch:
            self._range.check(speech.speaker, speech.phone_names, speech.durations, speech.f0)
        warn_if_silent(speech.wav)
        warn_if_rushed(speech, controls.duration)
        speech = replace(speech, wav=np.concatenate([*faded_out([speech.wav], n_faded)]))
        log_gain(speech.gain)
        return speech

    def generate(
        self,
        text: str,
        *,
        speaker: str | None = None,
        pitch_control: float = 1.0,
        energy_control: float = 1.0,
        duration_control: float = 1.0,
        pitch_transform: Transform | None = None,
        pitch: Sequence[float] | None = None,
        fade_out: int = 0,
        seed: int = 0,
    ) -> Iterator[np.ndarray]:
        """Synthesises a text piece by piece, for playback that starts at once.

        HiFi-GAN and WaveGlow give pieces of a sentence, the other vocoders whole sentences.

        Args:
            text: As in `__call__`.
            speaker: Name.
            pitch_control: As in `__call__`.
            energy_control: Likewise.
            duration_control: Likewise.
            pitch_transform: Likewise.
            pitch: Likewise.
            fade_out: Likewise; the last piece comes later by this time.
            seed: For models that draw random numbers; each sentence starts from it.

        Returns:
            Pieces of the wav, (n,) float32 in [-1, 1]. Joined, they are the wav of `__call__`,
            except where that scales it down: later peaks are not known yet, so samples beyond
            full scale are clipped.

        Raises:
            InputError: At once as `__call__`; later if a model gives values that are not finite.
        """
        factors = pitch_control, energy_control, duration_control
        controls = self.checked(Controls(*factors, transform_of(pitch_transform), pitch))
        seed = _checked_seed(seed)
        n_faded = self._samples(fade_out)
        index = choose_speaker(self.speakers, speaker)
        sentences = self._read(text, index, controls)
        return faded_out(self._pieces(sentences, index, controls, seed), n_faded)

    def phone_names(
        self, text: str, *, speaker: str | None = None, duration_control: float = 1.0
    ) -> tuple[str, ...]:
        """The phones and pauses that a text is spoken with, as in `Speech.phone_names`.

        Args:
            text: As in `__call__`.
            speaker: Name.
            duration_control: So short that pauses between sentences vanish, they are not listed.

        Raises:
            InputError: If the text contains no word, or the speaker is unknown.
        """
        language = self.speakers[choose_speaker(self.speakers, speaker)].language
        pauses = self._pause_frames(duration_control) > 0
        return self._reader.phone_names(text, language, pauses=pauses)

    def checked(self, controls: Controls) -> Controls:
        """Checks controls without a text.

        Raises:
            InputError: If the model lacks one, one is out of range, or two exclude each other.
        """
        return controls.checked(self.model.config.model_type, self._mels.controls)

    @property
    def vocoder_name(self) -> str:
        """Path or Hub name of the vocoder, or the name of a built-in one."""
        return self._opened_vocoder.name

    def fingerprint(self) -> str:
        """Digest of all that speech depends on, except the arguments of `__call__`."""
        return fingerprint(
            *model_facts(self.model, self.config, self._device.type),
            *self._opened_vocoder.facts(self._vocoder, self.config.inference),
        )

    def _read(self, text: str, speaker: int, controls: Controls) -> list[list[Passage]]:
        """The sentences of a text as passages."""
        pauses = self._pause_frames(controls.duration) > 0
        language = self.speakers[speaker].language
        return self._reader.passages(text, language, controls.given_pitch, pauses=pauses)

    def _pieces(
        self, sentences: Sequence[Sequence[Passage]], speaker: int, controls: Controls, seed: int
    ) -> Iterator[np.ndarray]:
        pause = np.zeros(self._pause_frames(controls.duration) * self.model.mel.hop_length)
        for i, sentence in enumerate(sentences):
            if i > 0 and len(pause) > 0:
                yield pause.astype(np.float32)
            for passage in sentence:
                yield from self._pieces_of(passage, speaker, controls, seed)

    def _pieces_of(
        self, passage: Passage, speaker: int, controls: Controls, seed: int
    ) -> Iterator[np.ndarray]:
        with self._seeded(seed):
            out = self._mels([passage], speaker, controls, seed).output
        mel = out.mel  # (1, M, T)
        f0, _ = out.contours_per_frame()
        if controls.change_pitch and f0 is not None:
            name, durations = self.speakers[speaker].name, to_numpy(out.durations)[0]
            self._range.check(name, passage.spoken.phones, durations, to_numpy(f0)[0])
        pieces = (
            to_numpy(piece)[0] for piece in self._vocoder.generate(mel, _CHUNK_FRAMES, seed=seed)
        )
        n_samples = mel.shape[2] * self.model.mel.hop_length
        for piece in faded_pieces(pieces, n_samples, self.model.mel.sample_rate):
            _check_finite(passage.spoken, piece)
            yield piece.clip(-1, 1)

    def _synthesise(
        self, passages: Sequence[Passage], speaker: int, controls: Controls, seed: int
    ) -> list[Part]:
        """Synthesises clauses, in their order; those of similar length share a forward pass."""
        by_length = sorted(range(len(passages)), key=lambda i: len(passages[i].spoken.phones))
        parts: dict[int, Part] = {}
        size = self.config.inference.batch_size
        several = len(passages) > size  # otherwise it takes no longer than one batch
        with progress(len(passages), "sentences") if several else nullcontext() as bar:
            for start in range(0, len(by_length), size):
                chosen = by_length[start : start + size]
                batch = self._forward([passages[i] for i in chosen], speaker, controls, seed)
                parts.update(zip(chosen, batch, strict=True))
                if bar is not None:
                    bar.advance(len(chosen))
        return [parts[i] for i in range(len(passages))]

    def _forward(
        self, passages: Sequence[Passage], speaker: int, controls: Controls, seed: int
    ) -> list[Part]:
        """Runs the acoustic model and the vocoder on one batch."""
        out, attention = self._mels(passages, speaker, controls, seed)
        wavs = self._vocoder.infer(out.mel, out.mel_lengths, seed=seed)  # (B, T * hop)
        durations, mels, sounds = (to_numpy(values) for values in (out.durations, out.mel, wavs))
        f0, energy = (
            [None] * len(passages) if values is None else to_numpy(values)
            for values in out.contours_per_frame()
        )
        rows = zip(durations, mels, f0, energy, sounds, attention, strict=True)
        spoken = (passage.spoken for passage in passages)
        return [self._part(clause, *row) for clause, row in zip(spoken, rows, strict=True)]

    def _part(
        self,
        clause: SpokenText,
        durations: np.ndarray,
        mel: np.ndarray,
        f0: np.ndarray | None,
        energy: np.ndarray | None,
        wav: np.ndarray,
        attention: AttentionQuality | None,
    ) -> Part:
        """Cuts the padding off one item of a batch."""
        durations = durations[: len(clause.phones)].astype(np.int64)
        n_frames = int(durations.sum())
        part = Part(
            normalized=clause.normalized,
            phones=clause.phones,
            words=clause.words,
            durations=durations,
            wav=wav[: n_frames * self.model.mel.hop_length],
            mel=mel[:, :n_frames],
            f0=None if f0 is None else f0[:n_frames],
            energy=None if energy is None else energy[:n_frames],
            attention=attention,
        )
        _check_finite(clause, part.mel, part.wav)
        return part

    def _with_pauses(self, sentences: Sequence[Sequence[Part]], slower: float) -> Iterator[Part]:
        """The parts of the sentences, with a pause between one sentence and the next."""
        mel = self.model.mel
        n_frames = self._pause_frames(slower)
        for i, parts in enumerate(sentences):
            if i > 0 and n_frames > 0:
                yield silence(
                    SILENCE,
                    n_frames,
                    hop_length=mel.hop_length,
                    n_mels=mel.n_mels,
                    floor=mel.log_floor_value,
                )
            yield from parts

    def _pause_frames(self, slower: float) -> int:
        """Frames between one sentence and the next."""
        mel = self.model.mel
        pause_s = self.config.inference.sentence_pause_s * slower
        return round(pause_s * mel.sample_rate / mel.hop_length)

    def _samples(self, frames: int) -> int:
        """Samples of so many frames, after a check."""
        if not isinstance(frames, int) or frames < 0:
            raise InputError(
                f"fade_out is {frames!r}; expected a whole number of frames, 0 or more"
            )
        return frames * self.model.mel.hop_length

    @contextmanager
    def _seeded(self, seed: int) -> Iterator[None]:
        """Inference mode with seeded random generators, which are restored afterwards."""
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices), torch.inference_mode():
            torch.manual_seed(seed)
            yield


def _checked_seed(seed: object) -> int:
    if not (isinstance(seed, int | np.integer) and 0 <= seed <= _MOST_SEED):
        raise InputError(f"seed is {seed!r}; expected a whole number from 0 to {_MOST_SEED}")
    return int(seed)


def _check_finite(clause: SpokenText, *made: np.ndarray) -> None:
    if not all(np.isfinite(values).all() for values in made):
        raise InputError(
            f"{clause.text!r}: the model gives values that are not finite; its weights are "
            "damaged or its training diverged"
        )


def to_numpy(tensor: Tensor) -> np.ndarray:
    """Converts a tensor of any device and float type to an array of float32 or integers."""
    return (tensor.float() if tensor.is_floating_point() else tensor).cpu().numpy()
