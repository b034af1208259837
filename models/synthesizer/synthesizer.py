"""From text to speech: a trained acoustic model and a vocoder behind one call.

Long texts are synthesised by sentences, in batches. Batches do not change the speech: padding
never changes a result, and sentences are put back in order.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast, overload

import numpy as np
import torch
from torch import Tensor, nn

from models.base.acoustic.output import TtsOutput
from models.base.assets import Speaker, choose_speaker
from models.base.devices import resolved_device
from models.checkpoint.loading import open_model
from models.synthesizer.acoustic import PassageMels
from models.synthesizer.fingerprint import fingerprint, model_facts, with_overrides
from models.synthesizer.pitch import RangeWarning
from models.synthesizer.settings import Settings
from models.synthesizer.speech import (
    Part,
    Speech,
    SpokenTimes,
    amplified,
    cut_part,
    cut_pieces,
    faded_out,
    faded_pieces,
    join,
    log_gain,
    silence,
    warn_if_rushed,
    warn_if_silent,
)
from models.synthesizer.text.passages import BreakFitter, Fitted, Passage, TextReader, check_text
from models.synthesizer.vocoders import open_vocoder
from models.voices import find_voice
from modules.alignment.attention_quality import AttentionQuality
from processors.records import SpokenText
from processors.text.clauses import ClauseSplitter
from processors.text.ssml.document import Ssml, SsmlVoice, read_ssml
from processors.text.voice_phones import VoicePhones
from utils.errors import InputError
from utils.logging import progress

Text = str | Ssml
_Output = TypeVar("_Output")
_CHUNK_FRAMES = 64  # of a piece of a sentence, 0.7 s: playback starts early


class Synthesizer:
    """Synthesises text with a trained acoustic model.

    Args:
        reference: An experiment folder, a checkpoint in it, the name of an installed voice, or a
            name on the Hub.
        vocoder: The same for a vocoder, or "griffin_lim"; None: the bundled one, or Griffin-Lim
            where that was made for another mel.
        device: Where the networks run; "auto": on the GPU if there is one.
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
        device: str = "auto",
        *,
        resample: bool = False,
        overrides: Sequence[str] = (),
    ) -> None:
        device = resolved_device(device)
        place = find_voice(reference) if isinstance(reference, str) else reference
        opened = open_model(place, overrides)
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
        split = ClauseSplitter(
            self.config.preprocess.text,
            self.config.inference.max_phones,
            self.config.spoken_p_arpabet,
            [speaker.language for speaker in self.speakers],
        )
        phones = VoicePhones(self.model.assets.known_phones, self.config.inference.unknown_phones)
        self._reader = TextReader(split, phones)

    @overload
    def __call__(self, text: Text, settings: Settings | None = None, **changes: Any) -> Speech: ...  # noqa: ANN401

    @overload
    def __call__(
        self,
        text: Sequence[Text],
        settings: Settings | None = None,
        **changes: Any,  # noqa: ANN401
    ) -> list[Speech]: ...

    def __call__(
        self,
        text: Text | Sequence[Text],
        settings: Settings | None = None,
        **changes: Any,
    ) -> Speech | list[Speech]:
        """Synthesises a text of any length, or each of several.

        Args:
            text: Any text; it may contain phones as `{HH AH0 L OW1}`, or be an `Ssml`. A list or
                tuple of texts gives a list.
            settings: Speaker, prosody and seed; None: the defaults.
            changes: Fields of `Settings` that replace those of `settings`, as in
                `duration_control=1.2`.

        Raises:
            InputError: If the text contains no word, the speaker is unknown, there
                are several and none is named, the model lacks a control, a setting is unknown, of
                another type or out of range, or the pitch has not one value per phone.
        """
        settings = self.checked(settings, **changes)
        if isinstance(text, list | tuple) and not isinstance(text, Ssml):
            return [self._speak(item, settings) for item in text]
        return self._speak(cast("Text", text), settings)

    def _speak(self, text: Text, settings: Settings) -> Speech:
        index = choose_speaker(self.speakers, settings.speaker)
        sentences = self._read(text, index, settings)
        passages = _spoken(sentences)
        with self._seeded(settings.seed):
            spoken = self._synthesise(passages, index, settings)
        times = SpokenTimes()
        parts = [*self._with_pauses(sentences, spoken, settings, times)]
        speech = join(
            parts,
            text=text if isinstance(text, str) else " ".join(s.text for s in times.sentences),
            speaker=self.speakers[index].name,
            sample_rate=self.model.mel.sample_rate,
            hop_length=self.model.mel.hop_length,
            out_of_vocabulary=[
                word for passage in passages for word in passage.spoken.out_of_vocabulary
            ],
            sentences=times.sentences,
            marks=times.marks,
        )
        if settings.change_pitch:
            self._range.check(speech.speaker, speech.phone_names, speech.durations, speech.f0)
        warn_if_silent(speech.wav)
        fastest = min((p.duration for passage in passages for p in passage.prosody), default=1)
        warn_if_rushed(speech, settings.duration_control * min(1, fastest))
        faded = np.concatenate([*faded_out([speech.wav], self._n_faded(settings))])
        speech = replace(speech, wav=faded)
        log_gain(speech.gain)
        return speech

    def generate(
        self,
        text: Text,
        settings: Settings | None = None,
        *,
        times: SpokenTimes | None = None,
        **changes: Any,  # noqa: ANN401
    ) -> Iterator[np.ndarray]:
        """Synthesises a text piece by piece, for playback that starts at once.

        Every vocoder gives pieces of a sentence.

        Args:
            settings: Those of `__call__`; each sentence starts from the seed, and the last piece
                comes later by the time of `fade_out`.
            times: Gets the times of each clause before its sound comes.

        Returns:
            Pieces of the wav, (n,) float32 in [-1, 1]. Joined, they are the wav of `__call__`,
            except where that scales it down: later peaks are not known yet, so samples beyond
            full scale are clipped.

        Raises:
            InputError: At once as `__call__`; later if a model gives values that are not finite.
        """
        settings = self.checked(settings, **changes)
        index = choose_speaker(self.speakers, settings.speaker)
        sentences = self._read(text, index, settings)
        pieces = self._pieces(sentences, index, settings, times or SpokenTimes())
        return faded_out(pieces, self._n_faded(settings))

    def phone_names(
        self, text: str, *, speaker: str | None = None, duration_control: float = 1.0
    ) -> tuple[str, ...]:
        """The phones and pauses that a text is spoken with, as in `Speech.phone_names`."""
        language = self.speakers[choose_speaker(self.speakers, speaker)].language
        pauses = self._pause_frames(duration_control) > 0
        return self._reader.phone_names(text, language, pauses=pauses)

    def checked(self, settings: Settings | None = None, **changes: Any) -> Settings:  # noqa: ANN401
        """Checks settings without a text."""
        if not isinstance(settings, Settings | None):
            raise InputError(f"settings are {settings!r}; expected Settings, or fields by name")
        given = vars(settings or Settings()) | changes
        return Settings.of(given).checked(self.model.config.model_type, self._mels.controls)

    @property
    def vocoder_name(self) -> str:
        """Path or Hub name of the vocoder, or the name of a built-in one."""
        return self._opened_vocoder.name

    @property
    def weight_bytes(self) -> int:
        """Size of the weights of both networks; synthesis on a CPU holds a second copy."""
        networks = (self.model.network, cast("nn.Module", self._vocoder))
        return sum(t.nbytes for network in networks for t in network.state_dict().values())

    def fingerprint(self) -> str:
        """Digest of all that speech depends on, except the arguments of `__call__`."""
        return fingerprint(
            *model_facts(self.model, self.config, self._device.type),
            *self._opened_vocoder.facts(self._vocoder, self.config.inference),
        )

    def _read(self, text: Text, speaker: int, settings: Settings) -> list[list[Passage]]:
        language = self.speakers[speaker].language
        if not isinstance(text, Ssml):
            pauses = self._pause_frames(settings.duration_control) > 0
            return self._reader.passages(text, language, settings.pitch, pauses=pauses)
        if settings.pitch is not None:
            raise InputError("SSML, and the pitch of each phone, exclude each other")
        check_text(text.source)
        preprocess = self.config.preprocess.text
        voice = SsmlVoice(
            model=self.config.model_type,
            language=language,
            languages={other.language for other in self.speakers},
            controls=self._mels.controls,
            extractor=preprocess.phone_extractor,
            known_phones=self.model.assets.known_phones,
            normalises_english=preprocess.normalizer == "english",
        )
        return self._reader.passages_of_runs(read_ssml(text, voice), language)

    def _pieces(
        self,
        sentences: Sequence[Sequence[Passage]],
        speaker: int,
        settings: Settings,
        times: SpokenTimes,
    ) -> Iterator[np.ndarray]:
        hop_length = self.model.mel.hop_length
        outputs = (self._output(p, speaker, settings) for p in _spoken(sentences))
        for timed in self._timed(sentences, outputs, settings, times):
            if isinstance(timed, int):
                yield np.zeros(timed * hop_length, dtype=np.float32)
            else:
                yield from self._pieces_of(*timed, speaker, settings)

    def _output(
        self, passage: Passage, speaker: int, settings: Settings
    ) -> tuple[TtsOutput, np.ndarray]:
        """The acoustic model's output of one passage, and its frames per phone, (N,)."""
        with self._seeded(settings.seed):
            out = self._mels([passage], speaker, settings).output
        return out, to_numpy(out.durations)[0]

    def _timed(
        self,
        sentences: Sequence[Sequence[Passage]],
        outputs: Iterable[tuple[_Output, np.ndarray]],
        settings: Settings,
        times: SpokenTimes,
    ) -> Iterator[int | tuple[_Output, Passage, Fitted]]:
        """Fits what passages give into the breaks around them, and adds its times before it.

        Yields:
            Frames of silence, or an output with its passage and how it is cut.
        """
        frame_s, start_frame = self.model.mel.frame_s, 0
        fitter, waiting = BreakFitter(frame_s), iter(outputs)
        n_pause = self._pause_frames(settings.duration_control)
        passages = [(p, i == 0) for sentence in sentences for i, p in enumerate(sentence)]
        following = [*(passage for passage, _ in passages[1:]), None]
        for n, ((passage, starts), after) in enumerate(zip(passages, following, strict=True)):
            output, durations = None, np.zeros(0, dtype=np.int64)
            if passage.spoken.phones:
                output, durations = next(waiting)
            fitted = fitter.fit(passage, after, durations, n_pause if starts and n > 0 else 0)
            if fitted.n_silent > 0:
                yield fitted.n_silent
            start_frame += fitted.n_silent
            times.add(passage, fitted.durations, frame_s, start_frame, starts_sentence=starts)
            if output is not None:
                yield output, passage, fitted
            start_frame += int(fitted.durations.sum())

    def _pieces_of(
        self, out: TtsOutput, passage: Passage, fitted: Fitted, speaker: int, settings: Settings
    ) -> Iterator[np.ndarray]:
        mel, hop_length = out.mel, self.model.mel.hop_length  # (1, M, T)
        f0, _ = out.contours_per_frame()
        durations = to_numpy(out.durations)[0]
        if settings.change_pitch and f0 is not None:
            name = self.speakers[speaker].name
            self._range.check(name, passage.spoken.phones, durations, to_numpy(f0)[0])
        wavs = self._vocoder.generate(mel, _CHUNK_FRAMES, seed=settings.seed)
        pieces: Iterator[np.ndarray] = (to_numpy(wav)[0] for wav in wavs)
        if passage.prosody:
            pieces = amplified(pieces, _gains(passage, durations), hop_length)
        start, end = fitted.n_cut_start, mel.shape[2] - fitted.n_cut_end
        pieces = cut_pieces(pieces, start * hop_length, end * hop_length)
        n_samples = (end - start) * hop_length
        for piece in faded_pieces(pieces, n_samples, self.model.mel.sample_rate):
            _check_finite(passage.spoken, piece)
            yield piece.clip(-1, 1)

    def _synthesise(
        self, passages: Sequence[Passage], speaker: int, settings: Settings
    ) -> list[Part]:
        """Synthesises clauses, in their order; those of similar length share a forward pass."""
        by_length = sorted(range(len(passages)), key=lambda i: len(passages[i].spoken.phones))
        parts: dict[int, Part] = {}
        size = self.config.inference.batch_size
        several = len(passages) > size  # otherwise it takes no longer than one batch
        with progress(len(passages), "sentences") if several else nullcontext() as bar:
            for start in range(0, len(by_length), size):
                chosen = by_length[start : start + size]
                batch = self._forward([passages[i] for i in chosen], speaker, settings)
                parts.update(zip(chosen, batch, strict=True))
                if bar is not None:
                    bar.advance(len(chosen))
        return [parts[i] for i in range(len(passages))]

    def _forward(self, passages: Sequence[Passage], speaker: int, settings: Settings) -> list[Part]:
        out, attention = self._mels(passages, speaker, settings)
        wavs = self._vocoder.infer(out.mel, out.mel_lengths, seed=settings.seed)  # (B, T * hop)
        durations, mels, sounds = (to_numpy(values) for values in (out.durations, out.mel, wavs))
        f0, energy = (
            [None] * len(passages) if values is None else to_numpy(values)
            for values in out.contours_per_frame()
        )
        rows = zip(durations, mels, f0, energy, sounds, attention, strict=True)
        return [self._part(passage, *row) for passage, row in zip(passages, rows, strict=True)]

    def _part(
        self,
        passage: Passage,
        durations: np.ndarray,
        mel: np.ndarray,
        f0: np.ndarray | None,
        energy: np.ndarray | None,
        wav: np.ndarray,
        attention: AttentionQuality | None,
    ) -> Part:
        """Cuts the padding off one item of a batch."""
        clause, hop_length = passage.spoken, self.model.mel.hop_length
        durations = durations[: len(clause.phones)].astype(np.int64)
        n_frames = int(durations.sum())
        wav = wav[: n_frames * hop_length]
        if passage.prosody:
            wav = next(amplified([wav], _gains(passage, durations), hop_length))
        part = Part(
            normalized=clause.normalized,
            phones=clause.phones,
            words=clause.words,
            durations=durations,
            wav=wav,
            mel=mel[:, :n_frames],
            f0=None if f0 is None else f0[:n_frames],
            energy=None if energy is None else energy[:n_frames],
            attention=attention,
        )
        _check_finite(clause, part.mel, part.wav)
        return part

    def _with_pauses(
        self,
        sentences: Sequence[Sequence[Passage]],
        parts: Iterable[Part],
        settings: Settings,
        times: SpokenTimes,
    ) -> Iterator[Part]:
        """The parts of the passages, with silence between them."""
        mel, outputs = self.model.mel, ((part, part.durations) for part in parts)
        for timed in self._timed(sentences, outputs, settings, times):
            if isinstance(timed, int):
                yield silence(timed, mel)
            else:
                part, _, fitted = timed
                yield cut_part(part, fitted, mel.hop_length)

    def _pause_frames(self, slower: float) -> int:
        mel = self.model.mel
        pause_s = self.config.inference.sentence_pause_s * slower
        return round(pause_s * mel.sample_rate / mel.hop_length)

    def _n_faded(self, settings: Settings) -> int:
        return settings.fade_out * self.model.mel.hop_length

    @contextmanager
    def _seeded(self, seed: int) -> Iterator[None]:
        """Inference mode with seeded random generators, which are restored afterwards."""
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices), torch.inference_mode():
            torch.manual_seed(seed)
            yield


def _spoken(sentences: Sequence[Sequence[Passage]]) -> list[Passage]:
    return [passage for sentence in sentences for passage in sentence if passage.spoken.phones]


def _gains(passage: Passage, durations: np.ndarray) -> np.ndarray:
    """Gain of each frame, (T,)."""
    return np.repeat([prosody.gain for prosody in passage.prosody], durations)


def _check_finite(clause: SpokenText, *made: np.ndarray) -> None:
    if not all(np.isfinite(values).all() for values in made):
        raise InputError(
            f"{clause.text!r}: the model gives values that are not finite; its weights are "
            "damaged or its training diverged"
        )


def to_numpy(tensor: Tensor) -> np.ndarray:
    """Converts a tensor of any device and float type to an array of float32 or integers."""
    return (tensor.float() if tensor.is_floating_point() else tensor).cpu().numpy()
