"""From text to speech: a trained acoustic model and a vocoder behind one call.

Long texts are synthesised by sentences, in batches. Batches do not change the speech: padding
never changes a result, and sentences are put back in order.
"""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from config.schema import Config
from models.base.acoustic import TtsOutput
from models.base.assets import LEXICON, Speaker
from models.base.interfaces import ControllableModel
from models.base.registry import config_of
from models.checkpoint.loading import LoadedModel, open_model
from models.synthesizer.clauses import ClauseSplitter
from models.synthesizer.fingerprint import fingerprint, model_facts
from models.synthesizer.speech import Part, Speech, faded_pieces, join, silence
from models.synthesizer.vocoders import open_vocoder
from models.synthesizer.voice_phones import VoicePhones
from processors.records import SpokenText
from processors.text.symbols import SILENCE
from utils.config import nearest, overridden
from utils.errors import InputError
from utils.logging import get_logger, progress

CONTROL_RANGE = (0.1, 10.0)
_CHUNK_FRAMES = 64  # of a piece of a sentence, 0.7 s: playback starts early


class Controls(NamedTuple):
    """Factors on what the model predicts: 1.2 is 20 % higher, louder or slower."""

    pitch: float = 1.0
    energy: float = 1.0
    duration: float = 1.0

    def checked(self) -> "Controls":
        """Returns these controls after a check of their range.

        Raises:
            InputError: If one is not a number from 0.1 to 10.
        """
        low, high = CONTROL_RANGE
        for name, value in self._asdict().items():
            if not (isinstance(value, int | float) and low <= value <= high):
                raise InputError(f"{name}_control is {value!r}; expected {low:g} to {high:g}")
        return self


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
        self._network = cast("ControllableModel", self.model.network)
        self._vocabulary = self.model.assets.required_vocabulary(self.model.home)
        self.config = with_overrides(self.model, overrides)
        self._device = torch.device(device)
        self._vocoder = self._opened_vocoder.load(self.config.inference, device)
        self._split_clauses = ClauseSplitter(
            self.config.preprocess.text,
            self.config.inference.max_phones,
            self.config.spoken_p_arpabet,
        )
        self._phones = VoicePhones(
            self.model.assets.known_phones, self.config.inference.unknown_phones
        )

    def __call__(
        self,
        text: str,
        *,
        speaker: str | None = None,
        pitch_control: float = 1.0,
        energy_control: float = 1.0,
        duration_control: float = 1.0,
        seed: int = 0,
    ) -> Speech:
        """Synthesises a text of any length.

        Args:
            text: Any text; it may contain phones as `{HH AH0 L OW1}`.
            speaker: Name; may be left out when the model has one speaker only.
            pitch_control: Factor on f0 in Hz.
            energy_control: Factor on the energy.
            duration_control: Factor on the length of phones and pauses; 1.2 is slower.
            seed: For models that draw random numbers in inference; the same seed gives the same
                speech. FastSpeech 2 draws none, nor do HiFi-GAN, FreeVGL and Griffin-Lim.

        Raises:
            InputError: If the text contains no word, the speaker is unknown, there
                are several and none is named, or a control is out of range.
        """
        controls = Controls(pitch_control, energy_control, duration_control).checked()
        index = choose_speaker(self.speakers, speaker)
        sentences = self._read(text, index)
        clauses = [clause for sentence in sentences for clause in sentence]
        with self._seeded(seed):
            spoken = iter(self._synthesise(clauses, index, controls, seed))
        parts = [[next(spoken) for _ in sentence] for sentence in sentences]
        speech = join(
            list(self._with_pauses(parts, controls.duration)),
            text=text,
            speaker=self.speakers[index].name,
            sample_rate=self.model.mel.sample_rate,
            hop_length=self.model.mel.hop_length,
            out_of_vocabulary=[word for clause in clauses for word in clause.out_of_vocabulary],
        )
        if speech.gain < 1:
            get_logger(__name__).info(
                "peak %.2f: scaled down by %.1f dB", 1 / speech.gain, -20 * math.log10(speech.gain)
            )
        return speech

    def generate(
        self,
        text: str,
        *,
        speaker: str | None = None,
        pitch_control: float = 1.0,
        energy_control: float = 1.0,
        duration_control: float = 1.0,
        seed: int = 0,
    ) -> Iterator[np.ndarray]:
        """Synthesises a text piece by piece, for playback that starts at once.

        HiFi-GAN and WaveGlow give pieces of a sentence, the other vocoders whole sentences.

        Args:
            text: As in `__call__`.
            speaker: Name.
            pitch_control: Factor on f0 in Hz.
            energy_control: Factor on the energy.
            duration_control: Factor on the length of phones and pauses.
            seed: For models that draw random numbers; each sentence starts from it.

        Returns:
            Pieces of the wav, (n,) float32 in [-1, 1]. Joined, they are the wav of `__call__`,
            except where that scales it down: later peaks are not known yet, so samples beyond
            full scale are clipped.

        Raises:
            InputError: At once as `__call__`; later if a model gives values that are not finite.
        """
        controls = Controls(pitch_control, energy_control, duration_control).checked()
        index = choose_speaker(self.speakers, speaker)
        sentences = self._read(text, index)
        return self._pieces(sentences, index, controls, seed)

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

    def _read(self, text: str, speaker: int) -> list[list[SpokenText]]:
        """The sentences of a text as clauses; warns of signs and phones that are not spoken."""
        sentences = self._split_clauses(text, self.speakers[speaker].language)
        clauses = [clause for sentence in sentences for clause in sentence]
        if unspoken := dict.fromkeys(sign for clause in clauses for sign in clause.unspoken):
            get_logger(__name__).warning("signs that are not spoken: %s", " ".join(unspoken))
        fitted = iter(self._phones.fit(clauses))
        return [[next(fitted) for _ in sentence] for sentence in sentences]

    def _pieces(
        self, sentences: Sequence[Sequence[SpokenText]], speaker: int, controls: Controls, seed: int
    ) -> Iterator[np.ndarray]:
        pause = np.zeros(self._pause_frames(controls.duration) * self.model.mel.hop_length)
        for i, sentence in enumerate(sentences):
            if i > 0 and len(pause) > 0:
                yield pause.astype(np.float32)
            for clause in sentence:
                yield from self._pieces_of(clause, speaker, controls, seed)

    def _pieces_of(
        self, clause: SpokenText, speaker: int, controls: Controls, seed: int
    ) -> Iterator[np.ndarray]:
        with self._seeded(seed):
            mel = self._mels([clause], speaker, controls).mel  # (1, M, T)
        pieces = (
            to_numpy(piece)[0] for piece in self._vocoder.generate(mel, _CHUNK_FRAMES, seed=seed)
        )
        n_samples = mel.shape[2] * self.model.mel.hop_length
        for piece in faded_pieces(pieces, n_samples, self.model.mel.sample_rate):
            _check_finite(clause, piece)
            yield piece.clip(-1, 1)

    def _synthesise(
        self, clauses: Sequence[SpokenText], speaker: int, controls: Controls, seed: int
    ) -> list[Part]:
        """Synthesises clauses, in their order; those of similar length share a forward pass."""
        by_length = sorted(range(len(clauses)), key=lambda i: len(clauses[i].phones))
        parts: dict[int, Part] = {}
        size = self.config.inference.batch_size
        several = len(clauses) > size  # otherwise it takes no longer than one batch
        with progress(len(clauses), "sentences") if several else nullcontext() as bar:
            for start in range(0, len(by_length), size):
                chosen = by_length[start : start + size]
                batch = self._forward([clauses[i] for i in chosen], speaker, controls, seed)
                parts.update(zip(chosen, batch, strict=True))
                if bar is not None:
                    bar.advance(len(chosen))
        return [parts[i] for i in range(len(clauses))]

    def _forward(
        self, clauses: Sequence[SpokenText], speaker: int, controls: Controls, seed: int
    ) -> list[Part]:
        """Runs the acoustic model and the vocoder on one batch."""
        out = self._mels(clauses, speaker, controls)
        wavs = self._vocoder.infer(out.mel, out.mel_lengths, seed=seed)  # (B, T * hop)
        outputs = (out.durations, out.mel, *out.contours_per_frame(), wavs)
        arrays = [to_numpy(output) for output in outputs]
        return [self._part(clause, *(x[i] for x in arrays)) for i, clause in enumerate(clauses)]

    def _mels(self, clauses: Sequence[SpokenText], speaker: int, controls: Controls) -> TtsOutput:
        """Runs the acoustic model on one batch."""
        rows = [torch.tensor(self._vocabulary.ids(clause.phones)) for clause in clauses]
        phone_ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)  # (B, N)
        phone_lengths = torch.tensor([len(row) for row in rows])  # (B,)
        return self._network.infer(
            phone_ids.to(self._device),
            phone_lengths.to(self._device),
            speaker_ids=torch.full((len(rows),), speaker, device=self._device),
            pitch_control=controls.pitch,
            energy_control=controls.energy,
            duration_control=controls.duration,
        )

    def _part(
        self,
        clause: SpokenText,
        durations: np.ndarray,
        mel: np.ndarray,
        f0: np.ndarray,
        energy: np.ndarray,
        wav: np.ndarray,
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
            f0=f0[:n_frames],
            energy=energy[:n_frames],
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

    @contextmanager
    def _seeded(self, seed: int) -> Iterator[None]:
        """Inference mode with seeded random generators, which are restored afterwards."""
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices), torch.inference_mode():
            torch.manual_seed(seed)
            yield


def _check_finite(clause: SpokenText, *made: np.ndarray) -> None:
    if not all(np.isfinite(values).all() for values in made):
        raise InputError(
            f"{clause.text!r}: the model gives values that are not finite; its weights are "
            "damaged or its training diverged"
        )


def with_overrides(model: LoadedModel, overrides: Sequence[str]) -> Config:
    """Applies overrides to the configuration that a model came with.

    The lexicon is the one kept with the model, unless an override names another.

    Args:
        model: A loaded model.
        overrides: `key.path=value`.

    Raises:
        InputError: If an override is wrong.
    """
    config = config_of(overridden(model.tree, overrides)) if overrides else model.config
    check_overrides(model, config)
    text = config.preprocess.text
    if (
        model.assets.lexicon is None
        or text.lexicon_path != model.config.preprocess.text.lexicon_path
    ):
        return config
    text = replace(text, lexicon_path=str(model.home / LEXICON))
    return replace(config, preprocess=replace(config.preprocess, text=text))


def check_overrides(model: LoadedModel, config: Config) -> None:
    """Makes sure that overrides leave alone what the weights were trained with.

    Args:
        model: A loaded model.
        config: Its configuration with overrides.

    Raises:
        InputError: If they change its network or its mel.
    """
    if config.model != model.config.model:
        raise InputError(
            f"--set changes the model section, but {model.folder} is trained; leave that out"
        )
    if different := model.config.preprocess.mel.differences(config.preprocess.mel):
        raise InputError(
            f"--set changes the mel that {model.folder} was trained on: {', '.join(different)};"
            " leave that out"
        )


def choose_speaker(speakers: Sequence[Speaker], name: str | None) -> int:
    """Returns the index of the speaker with this name, or of the only speaker.

    Args:
        speakers: Of the model.
        name: Or its end, if no other name ends so, such as p225 for VCTK_p225; None: the model
            has one only.

    Raises:
        InputError: If there is none of that name, or several and no name; lists those there are.
    """
    names = [speaker.name for speaker in speakers]
    known = f"known: {', '.join(names)}"
    if name is None:
        if len(names) > 1:
            raise InputError(f"the model has {len(names)} speakers; choose one ({known})")
        return 0
    if name in names:
        return names.index(name)
    ending = [other for other in names if re.search(rf"(?<![^\W_]){re.escape(name)}$", other)]
    if len(ending) == 1 and name:
        return names.index(ending[0])
    # a speaker of another number is no likely meaning
    alike = [other for other in names if re.findall(r"\d+", other) == re.findall(r"\d+", name)]
    suggestion = nearest(name, ending or alike)
    raise InputError(f"the model has no speaker {name!r}{suggestion} ({known})")


def to_numpy(tensor: Tensor) -> np.ndarray:
    """Converts a tensor of any device and float type to an array of float32 or integers."""
    return (tensor.float() if tensor.is_floating_point() else tensor).cpu().numpy()
