"""From text to speech: a trained acoustic model and a vocoder behind one call.

Long texts are synthesised by sentences, in batches. Batches do not change the speech: padding
never changes a result, and sentences are put back in order.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast, overload

import numpy as np
import torch
from torch import nn

from config.text import is_english
from models.base.assets import Speaker, find_speaker
from models.base.devices import resolved_device
from models.checkpoint.loading import open_model
from models.synthesizer.fingerprint import fingerprint, model_facts, with_overrides
from models.synthesizer.passage_synthesizer import PassageSynthesizer
from models.synthesizer.settings import Settings
from models.synthesizer.speech import (
    Clause,
    Speech,
    SpeechStream,
    faded_out,
    join,
    warn_if_untrained,
)
from models.synthesizer.vocoders import open_vocoder
from models.voices import find_voice, licence_in
from processors.audio.streams import synthetic_tag
from processors.text.markup.formats import Markup, Text, read_runs
from processors.text.markup.ssml import Ssml, SsmlVoice
from processors.text.passages import (
    NOTHING,
    Passage,
    marked_up_passages,
    phone_names,
    pitched_passages,
    with_rise,
)
from processors.text.pronunciations import Dictionary, Lexicon, dictionary_of
from processors.text.reading import PAUSE, SentenceStream, TextReader, check_text, has_word
from processors.text.symbols import QUESTION
from processors.text.voice_phones import VoicePhones
from utils.errors import InputError
from utils.logging import progress

_RISE = 6.0  # semitones
Given = Settings | None  # None: the defaults


class PronouncedWord(NamedTuple):
    """How a word is said, and why."""

    word: str
    phones: tuple[str, ...]
    source: str  # "your dictionary", "letter-to-sound", or the phone extractor: "lexicon", "espeak"


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
        lexicon: Words and how they are said, "nuh-VAD-uh" or "{N AH0 V AE1 D AH0}", or the file of
            a dictionary.
        tagged: Files of its speech say that it is synthetic, and by which model.

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
        lexicon: Lexicon = None,
        tagged: bool = True,
    ) -> None:
        self._device = torch.device(resolved_device(device))
        place = find_voice(reference) if isinstance(reference, str) else reference
        self.model = open_model(place, overrides)
        self.model.require_task("tts", reference)
        self._opened_vocoder = open_vocoder(vocoder, self.model.mel, resample=resample)
        self.model.load(self._device)
        licence = licence_in(self.model.home / "history.json")
        self.tag = synthetic_tag(self.model.origin, licence) if tagged else ""
        self.speakers: tuple[Speaker, ...] = self.model.speakers
        self.config = config = with_overrides(self.model, overrides)
        # who speaks where no speaker is asked for; None: one of several must be named
        self.default_speaker = self.model.default_speaker(config)
        self._default_id: int | None = None
        if self.default_speaker is not None:
            self._default_id = find_speaker(self.default_speaker, self.speakers)
        self._passages = PassageSynthesizer(self.model, config, self._opened_vocoder, self._device)
        self._hop_length = self.model.mel.hop_length
        asked, known_phones = config.inference, self.model.assets.known_phones
        usual_rise = 0.0 if QUESTION in known_phones else _RISE
        self._question_rise = usual_rise if asked.question_rise is None else asked.question_rise
        unknown = asked.unknown_characters
        phones = VoicePhones(known_phones, asked.unknown_phones, unknown)
        p_arpabet = config.spoken_p_arpabet
        reader = TextReader(config.preprocess.text, asked.max_phones, phones, p_arpabet, unknown)
        self._lexicon = dictionary_of(lexicon)
        self._reader = reader.using(self._lexicon, self.speakers[0].language)
        # what the front end lacks is an error of the first text; phones are spoken without it
        with suppress(InputError):
            reader.load(self.speakers[self._default_id or 0].language)

    @overload
    def __call__(self, text: Text, settings: Given = None, **changes: Any) -> Speech: ...  # noqa: ANN401

    @overload
    def __call__(
        self,
        text: Sequence[Text],
        settings: Given = None,
        **changes: Any,  # noqa: ANN401
    ) -> list[Speech]: ...

    def __call__(
        self, text: Text | Sequence[Text], settings: Given = None, **changes: Any
    ) -> Speech | list[Speech]:
        """Synthesises a text of any length, or each of several.

        Args:
            text: Any text; it may contain phones as `{HH AH0 L OW1}` and pauses as `[pause:1.5]`,
                or be a `Markup` or an `Ssml`. A list or tuple of texts gives a list.
            settings: Speaker, prosody and seed; None: the defaults.
            changes: Fields of `Settings` that replace those of `settings`, as in
                `duration_control=1.2`.

        Raises:
            InputError: If the text contains no word, the speaker is unknown, none of several is
                named and none is the default, the model lacks a control, a setting is unknown, of
                another type or out of range, or the pitch has not one value per phone.
        """
        settings = self.checked(settings, **changes)
        if isinstance(text, list | tuple) and not isinstance(text, Ssml | Markup):
            return [self._speak(item, settings) for item in text]
        return self._speak(cast("Text", text), settings)

    def _speak(self, text: Text, settings: Settings) -> Speech:
        speaker, passages = self._read(text, settings)
        n_spoken = sum(bool(passage.spoken.phones) for passage in passages)
        several = n_spoken > self.config.inference.batch_size  # otherwise it is over at once
        clauses: list[Speech] = []
        wavs: list[np.ndarray] = []
        with progress(n_spoken, "sentences") if several else nullcontext() as bar:
            for clause, pieces in self._passages.speak(passages, speaker, settings, streamed=False):
                clauses.append(clause)
                wavs += pieces
                if bar is not None and clause.normalized:
                    bar.advance()
        speech = join(clauses, wavs)
        fastest = min((p.duration for passage in passages for p in passage.prosody), default=1)
        warn_if_untrained(speech, settings.duration_control * min(1, fastest))
        faded = np.concatenate([*faded_out([speech.wav], settings.fade_out * self._hop_length)])
        texts = tuple((clause.text, len(clause.words)) for clause in clauses)
        spoken = _written(text) or speech.text
        return replace(speech, text=spoken, clauses=texts, wav=faded, tag=self.tag)

    def generate(
        self,
        text: Text | Iterator[str],
        settings: Given = None,
        **changes: Any,  # noqa: ANN401
    ) -> SpeechStream:
        """Synthesises a text in pieces of its sentences, for playback that starts at once.

        Args:
            text: Text as in `__call__`, or an iterator of the parts of a plain text, such as the
                tokens of a language model. Each sentence is spoken as soon as it is complete.
            settings: Those of `__call__`; each sentence starts from the seed, and the last piece
                comes later by the time of `fade_out`.

        Returns:
            Pieces of the wav, (n,) float32 in [-1, 1]. Joined, they are the wav of `__call__`,
            except where that scales it down: later peaks are not known yet, so samples beyond
            full scale are clipped. Its `words`, `sentences` and `marks` have the times of each
            clause before its sound comes, and its `spans` the place of each word in the text.

        Raises:
            InputError: At once as `__call__`; later if a model gives values that are not finite, or
                if the parts of an iterator cannot be spoken.
        """
        settings = self.checked(settings, **changes)
        n_faded = settings.fade_out * self._hop_length
        if isinstance(text, Iterator):
            self.speaker_id(settings.speaker)
            if settings.pitch is not None:
                raise InputError("the pitch of each phone needs a whole text, not an iterator")
            return SpeechStream(self._spoken_parts(text, settings), n_faded)
        speaker, passages = self._read(text, settings)
        clauses = self._passages.speak(passages, speaker, settings, streamed=True)
        return SpeechStream(clauses, n_faded, _written(text))

    def _spoken_parts(self, parts: Iterator[str], settings: Settings) -> Iterator[Clause]:
        """Synthesises each sentence of a text in parts when it is complete."""
        stream, n_frames = SentenceStream(), 0
        for sentence in stream.of(parts):
            speaker, passages = self._read(sentence, settings)
            asked = passages, speaker, settings
            for clause, pieces in self._passages.speak(*asked, streamed=True, n_before=n_frames):
                n_frames += int(clause.durations.sum())
                yield clause, pieces
        if n_frames == 0:
            self._read("", settings)  # refuses a text without a word

    def phone_names(
        self, text: str, *, speaker: str | None = None, duration_control: float = 1.0
    ) -> tuple[str, ...]:
        """Lists the phones and pauses that a text is spoken with, as in `Speech.phone_names`."""
        check_text(text)
        language = self.speakers[self.speaker_id(speaker)].language
        pauses = self._passages.pause_frames(duration_control) > 0
        return phone_names(self._reader(PAUSE.sub(" ", text), language), pauses=pauses)

    def pronounce(self, text: str, *, speaker: str | None = None) -> list[PronouncedWord]:
        """Lists the words of a text with their phones, and where these come from."""
        check_text(text)
        language = self.speakers[self.speaker_id(speaker)].language
        extractor = self.config.preprocess.text.phone_extractor
        rows: list[PronouncedWord] = []
        for entry, part, ending in (self._lexicon or Dictionary([])).parts(text):
            is_read = entry or has_word(part) or part == text
            clauses = self._reader(part + ending, language) if is_read else ()
            words = [
                PronouncedWord(
                    word,
                    clause.phones[start:end],
                    "letter-to-sound" if word in clause.out_of_vocabulary else extractor,
                )
                for clause in chain.from_iterable(clauses)
                for word, start, end in clause.words
            ]
            if entry:
                phones = tuple(chain.from_iterable(word.phones for word in words))
                words = [PronouncedWord(" ".join(part.split()) + ending, phones, "your dictionary")]
            rows += words
        return rows

    def speaker_id(self, name: str | None) -> int:
        """Finds the id of a speaker, None: the default; an InputError if there is none."""
        if name is not None:
            return find_speaker(name, self.speakers)
        if self._default_id is None:
            known = f"known: {', '.join(speaker.name for speaker in self.speakers)}"
            raise InputError(f"the model has {len(self.speakers)} speakers; choose one ({known})")
        return self._default_id

    def checked(self, settings: Given = None, **changes: Any) -> Settings:  # noqa: ANN401
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
        """Computes a digest of all that speech depends on, except the arguments of `__call__`."""
        return fingerprint(
            *model_facts(self.model, self.config, self._device.type),
            *self._opened_vocoder.facts(self._passages.vocoder, self.config.inference),
            *([] if self._lexicon is None else self._lexicon.facts),
        )

    def _read(self, text: Text, settings: Settings) -> tuple[int, list[Passage]]:
        """Finds the id of the speaker, and reads the passages of the text; its questions rise."""
        speaker = self.speaker_id(settings.speaker)
        language = self.speakers[speaker].language
        passages = self._read_passages(text, language, settings)
        raises = "pitch" in self._passages.controls and settings.transform is None
        if raises and self._question_rise > 0 and is_english(language):
            passages = [with_rise(passage, self._question_rise) for passage in passages]
        return speaker, passages

    def _read_passages(self, text: Text, language: str, settings: Settings) -> list[Passage]:
        reader = self._reader
        if settings.lexicon is not None:
            reader = reader.using(dictionary_of(settings.lexicon), language)
        source = text.source if isinstance(text, Ssml | Markup) else text
        check_text(source)
        runs = None  # of a plain text
        if not isinstance(text, str) or PAUSE.search(text):
            voice = SsmlVoice(
                model=self.config.model_type,
                language=language,
                languages={speaker.language for speaker in self.speakers},
                controls=self._passages.controls,
                text=self.config.preprocess.text,
                known_phones=self.model.assets.known_phones,
            )
            runs = read_runs(text, voice)
        if runs is not None and settings.pitch is not None:
            raise InputError("markup and pauses, and the pitch of each phone, exclude each other")
        if runs is not None:
            return marked_up_passages(reader, runs, language)
        sentences = reader(source, language)
        if not sentences:  # of characters that are skipped, such as a sentence of a book
            pause_s = self.config.inference.sentence_pause_s
            return [Passage(NOTHING, starts_sentence=True, break_s=pause_s)]
        if settings.pitch is not None:
            pauses = self._passages.pause_frames(settings.duration_control) > 0
            return pitched_passages(sentences, settings.pitch, pauses=pauses)
        return [Passage(clause, i == 0) for row in sentences for i, clause in enumerate(row)]


def _written(text: Text) -> str | None:
    """Returns the text in which spoken words are found; None for SSML."""
    if isinstance(text, Ssml) or (isinstance(text, Markup) and text.format == "ssml"):
        return None
    return text if isinstance(text, str) else text.source
