"""From text to speech: a trained acoustic model and a vocoder behind one call.

Long texts are synthesised by sentences, in batches. Batches do not change the speech: padding
never changes a result, and sentences are put back in order.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, overload

import numpy as np
import torch
from torch import nn

from models.base.assets import Speaker, find_speaker
from models.base.devices import resolved_device
from models.base.model import TtsOutput
from models.checkpoint.loading import open_model
from models.synthesizer import joining
from models.synthesizer.acoustic import PassageSynthesizer, to_numpy
from models.synthesizer.fingerprint import fingerprint, model_facts, with_overrides
from models.synthesizer.joining import Part, Silence, SpokenTimes
from models.synthesizer.passages import Passage, TextReader, check_text
from models.synthesizer.settings import RangeWarning, Settings
from models.synthesizer.speech import Speech
from models.synthesizer.vocoders import open_vocoder
from models.voices import find_voice
from processors.text.clauses import ClauseSplitter
from processors.text.ssml.document import Ssml, SsmlVoice, read_ssml
from processors.text.voice_phones import VoicePhones
from utils.errors import InputError

Text = str | Ssml


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
        InputError: If a model cannot be loaded, is of the wrong kind, or lacks its default speaker,
            or if the vocoder was made for another mel.
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
        self._device = torch.device(resolved_device(device))
        place = find_voice(reference) if isinstance(reference, str) else reference
        self.model = open_model(place, overrides)
        self.model.require_task("tts", reference)
        self._opened_vocoder = open_vocoder(vocoder, self.model.mel, resample=resample)
        self.model.load(self._device)
        self.speakers: tuple[Speaker, ...] = self.model.speakers
        self.config = config = with_overrides(self.model, overrides)
        # who speaks where no speaker is asked for; None: one of several must be named
        self.default_speaker = self.model.default_speaker(config)
        self._passages = PassageSynthesizer(self.model, config, self._opened_vocoder, self._device)
        self._mel = self.model.mel
        text = config.preprocess.text
        self._range = RangeWarning(self.model.stats, in_letters=text.in_letters)
        split = ClauseSplitter(text, config.inference.max_phones, config.spoken_p_arpabet)
        phones = VoicePhones(self.model.assets.known_phones, config.inference.unknown_phones)
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
        self, text: Text | Sequence[Text], settings: Settings | None = None, **changes: Any
    ) -> Speech | list[Speech]:
        """Synthesises a text of any length, or each of several.

        Args:
            text: Any text; it may contain phones as `{HH AH0 L OW1}`, or be an `Ssml`. A list or
                tuple of texts gives a list.
            settings: Speaker, prosody and seed; None: the defaults.
            changes: Fields of `Settings` that replace those of `settings`, as in
                `duration_control=1.2`.

        Raises:
            InputError: If the text contains no word, the speaker is unknown, none of several is
                named and none is the default, the model lacks a control, a setting is unknown, of
                another type or out of range, or the pitch has not one value per phone.
        """
        settings = self.checked(settings, **changes)
        if isinstance(text, list | tuple) and not isinstance(text, Ssml):
            return [self._speak(item, settings) for item in text]
        return self._speak(cast("Text", text), settings)

    def _speak(self, text: Text, settings: Settings) -> Speech:
        index = self.speaker_id(settings.speaker)
        sentences = self._read(text, index, settings)
        passages = _spoken(sentences)
        with self._seeded(settings.seed):
            parts = self._passages.parts(passages, index, settings)
        times, n_pause = SpokenTimes(), self._pause_frames(settings.duration_control)
        outputs = ((part, part.durations) for part in parts)
        joined: list[Part] = []
        for placed in joining.place(sentences, outputs, times, self._mel.frame_s, n_pause):
            if isinstance(placed, Silence):
                joined.append(joining.silence(placed.n_frames, self._mel))
            else:
                joined.append(joining.cut_part(placed, self._mel.hop_length))
        speech = joining.join(
            joined,
            times,
            self._mel,
            text=text if isinstance(text, str) else " ".join(s.text for s in times.sentences),
            speaker=self.speakers[index].name,
            out_of_vocabulary=[
                word for passage in passages for word in passage.spoken.out_of_vocabulary
            ],
        )
        if settings.changes_pitch:
            self._range.check(speech.speaker, speech.phone_names, speech.durations, speech.f0)
        joining.warn_if_silent(speech.wav)
        fastest = min((p.duration for passage in passages for p in passage.prosody), default=1)
        joining.warn_if_rushed(speech, settings.duration_control * min(1, fastest))
        n_faded = settings.fade_out * self._mel.hop_length
        faded = np.concatenate([*joining.faded_out([speech.wav], n_faded)])
        joining.log_gain(speech.gain)
        return replace(speech, wav=faded)

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
        index = self.speaker_id(settings.speaker)
        sentences = self._read(text, index, settings)
        pieces = self._pieces(sentences, index, settings, times or SpokenTimes())
        return joining.faded_out(pieces, settings.fade_out * self._mel.hop_length)

    def phone_names(
        self, text: str, *, speaker: str | None = None, duration_control: float = 1.0
    ) -> tuple[str, ...]:
        """The phones and pauses that a text is spoken with, as in `Speech.phone_names`."""
        language = self.speakers[self.speaker_id(speaker)].language
        pauses = self._pause_frames(duration_control) > 0
        return self._reader.phone_names(text, language, pauses=pauses)

    def speaker_id(self, name: str | None) -> int:
        """The id of a speaker, None: the default; an InputError if there is none."""
        name = self.default_speaker if name is None else name
        if name is None:
            known = f"known: {', '.join(speaker.name for speaker in self.speakers)}"
            raise InputError(f"the model has {len(self.speakers)} speakers; choose one ({known})")
        return find_speaker(name, self.speakers)

    def checked(self, settings: Settings | None = None, **changes: Any) -> Settings:  # noqa: ANN401
        """Checks settings without a text."""
        if not isinstance(settings, Settings | None):
            raise InputError(f"settings are {settings!r}; expected Settings, or fields by name")
        given = vars(settings or Settings()) | changes
        return Settings.of(given).checked(self.model.config.model_type, self._passages.controls)

    @property
    def vocoder_name(self) -> str:
        """Path or Hub name of the vocoder, or the name of a built-in one."""
        return self._opened_vocoder.name

    @property
    def weight_bytes(self) -> int:
        """Size of the weights of both networks; synthesis on a CPU holds a second copy."""
        networks = (self.model.network, cast("nn.Module", self._passages.vocoder))
        return sum(t.nbytes for network in networks for t in network.state_dict().values())

    def fingerprint(self) -> str:
        """Digest of all that speech depends on, except the arguments of `__call__`."""
        return fingerprint(
            *model_facts(self.model, self.config, self._device.type),
            *self._opened_vocoder.facts(self._passages.vocoder, self.config.inference),
        )

    def _read(self, text: Text, speaker: int, settings: Settings) -> list[list[Passage]]:
        language = self.speakers[speaker].language
        if not isinstance(text, Ssml):
            pauses = self._pause_frames(settings.duration_control) > 0
            return self._reader.passages(text, language, settings.pitch, pauses=pauses)
        if settings.pitch is not None:
            raise InputError("SSML, and the pitch of each phone, exclude each other")
        check_text(text.source)
        voice = SsmlVoice(
            model=self.config.model_type,
            language=language,
            languages={other.language for other in self.speakers},
            controls=self._passages.controls,
            text=self.config.preprocess.text,
            known_phones=self.model.assets.known_phones,
        )
        return self._reader.passages_of_runs(read_ssml(text, voice), language)

    def _pieces(
        self,
        sentences: Sequence[Sequence[Passage]],
        speaker: int,
        settings: Settings,
        times: SpokenTimes,
    ) -> Iterator[np.ndarray]:
        def outputs() -> Iterator[tuple[TtsOutput, np.ndarray]]:
            for passage in _spoken(sentences):
                with self._seeded(settings.seed):
                    out = self._passages.mels([passage], speaker, settings).output
                yield out, to_numpy(out.durations)[0]

        n_pause = self._pause_frames(settings.duration_control)
        for placed in joining.place(sentences, outputs(), times, self._mel.frame_s, n_pause):
            if isinstance(placed, Silence):
                yield np.zeros(placed.n_frames * self._mel.hop_length, dtype=np.float32)
                continue
            out, passage = placed.output, placed.passage
            f0, _ = out.contours_per_frame()
            if settings.changes_pitch and f0 is not None:
                phones, durations = passage.spoken.phones, to_numpy(out.durations)[0]
                name = self.speakers[speaker].name
                self._range.check(name, phones, durations, to_numpy(f0)[0])
            yield from self._passages.pieces(placed, settings)

    def _pause_frames(self, slower: float) -> int:
        pause_s = self.config.inference.sentence_pause_s * slower
        return round(pause_s * self._mel.sample_rate / self._mel.hop_length)

    @contextmanager
    def _seeded(self, seed: int) -> Iterator[None]:
        """Inference mode with seeded random generators, which are restored afterwards."""
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices), torch.inference_mode():
            torch.manual_seed(seed)
            yield


def _spoken(sentences: Sequence[Sequence[Passage]]) -> list[Passage]:
    return [passage for sentence in sentences for passage in sentence if passage.spoken.phones]
