"""The aligner that learns from the corpus itself: no model to download, any language and phones.

Stage 1 trains a hidden Markov model on a part of the recordings (processors/alignment/markov)
before the first of them is aligned, and keeps it in the folder of the processed data. A model is
not trained again for a few utterances more or less.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from config.schema import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment import AlignmentError
from processors.alignment.markov.acoustics import FRAME_S, cepstra
from processors.alignment.markov.chain import N_STATES, segments_of
from processors.alignment.markov.files import FORMAT, load_model, read_origin, save_model
from processors.alignment.markov.scoring import score_of
from processors.alignment.markov.training import Example, train
from processors.alignment.merge import SaidWord, Segment, merge, pauses_after
from processors.audio.files import read_audio
from processors.records import Alignment, SpokenText
from processors.text.frontend import TextFrontend
from utils.errors import InputError, UtteranceError
from utils.files import sha256_of, size_and_time
from utils.logging import get_logger, progress
from utils.parallel import run_chunks
from utils.seed import derived_seed

MODEL_FILE = "aligner.safetensors"
MOST_UTTERANCES = 1500  # that are learnt from: two or three hours; more of them change little
MOST_FRAMES = 1_440_000  # four hours, however long recordings are: half a gigabyte of features
_SAME_SHARE = 0.9  # of the utterances learnt from that are still there: the model is kept
_PER_CHUNK = 25  # utterances that a process reads at a time
# What else the features depend on that are learnt from; the text section counts as well.
_KEYS = ("sample_rate", "strict_sample_rate", "rescale", "min_seconds", "max_seconds")


def load_aligner(config: PreprocessConfig, folder: Path) -> "HmmAligner":
    """The aligner with the model that its training left in the folder.

    Raises:
        InputError: If there is no model that can be read.
    """
    return HmmAligner(folder / MODEL_FILE, config.edge_silence_s)


def alignment_file(utterance: Utterance, config: PreprocessConfig, dataset_root: Path) -> None:
    """There is none: alignments are computed."""


class HmmAligner:
    """Aligns the phones of any language.

    Args:
        path: The model.
        edge_silence_s: Silence kept at both ends, seconds.

    Raises:
        InputError: If the model cannot be read.
    """

    def __init__(self, path: Path, edge_silence_s: float) -> None:
        self.edge_silence_s = edge_silence_s
        self._model = load_model(path)

    def __call__(
        self, utterance: Utterance, wav: np.ndarray, sample_rate: int, spoken: SpokenText
    ) -> Alignment:
        """Aligns one utterance.

        Args:
            utterance: Its speaker counts.
            wav: (S,) float32 in [-1, 1].
            sample_rate: Of `wav`, Hz.
            spoken: Its phones are found in the audio.

        Raises:
            AlignmentError: If the audio is too short for the phones, or there is no way through.
        """
        words = [spoken.phones[word.start : word.end] for word in spoken.words]
        pauses = pauses_after(spoken)
        duration_s = len(wav) / sample_rate
        _check_length(sum(map(len, words)), duration_s)
        numbers = [self._model.numbers_of(phones) for phones in words]
        segments = segments_of(numbers, [bool(pause) for pause in pauses], silence=0)
        frames = self._model.normalized(cepstra(wav, sample_rate), utterance.speaker)
        found = self._model.align(frames, segments)
        if found is None:
            raise AlignmentError("text and recording do not fit: there is no way through all words")
        times = zip(segments, [0.0, *found.ends_s[:-1]], found.ends_s, strict=True)
        spans = iter([(start, end) for segment, start, end in times if not segment.place])
        said = [
            SaidWord(word.text, tuple(Segment(phone, *next(spans)) for phone in phones), pause)
            for word, phones, pause in zip(spoken.words, words, pauses, strict=True)
        ]
        score = score_of(found, self._model.chain(segments), segments, spoken)
        return replace(merge(said, duration_s, self.edge_silence_s), score=score)


def _check_length(n_phones: int, duration_s: float) -> None:
    if n_phones * N_STATES > duration_s // FRAME_S:
        raise AlignmentError(
            f"{duration_s:.2f} s of audio are too short for {n_phones} phones; is it of this text?"
        )


@dataclass(frozen=True)
class Training:
    """The training that a corpus needs before its recordings are aligned.

    Attributes:
        config: Stage 1.
        path: Where the model goes.
        utterances: What is learnt from, in order.
        origin: What the model depends on: keys of the config, and utterances by id.
    """

    config: PreprocessConfig
    path: Path
    utterances: tuple[Utterance, ...]
    origin: dict[str, Any]

    @property
    def known(self) -> bool:
        """Whether there is such a model already."""
        return read_origin(self.path) == self.origin

    @property
    def identity(self) -> dict[str, object]:
        """What alignments depend on beside the config's keys, for the fingerprint."""
        return {"preprocess.aligner.model": f"sha256 {_digest([FORMAT, self.origin])[:16]}"}

    def carry_out(self, n_jobs: int) -> None:
        """Trains the model, in worker processes and then threads, unless there is one.

        Another run may have put its own there since this was planned.

        Raises:
            InputError: If there is nothing to learn from.
        """
        if self.known:
            return
        _log.info("aligner hmm: learns from %d recordings", len(self.utterances))
        n_chunks = -(-len(self.utterances) // _PER_CHUNK)
        # by strides: what is too much is the last turns of all speakers, whatever their number
        chunks = {f"{start:06d}": self.utterances[start::n_chunks] for start in range(n_chunks)}
        work = partial(_examples, self.config, MOST_FRAMES // max(n_chunks, 1))
        examples: dict[str, list[Example]] = {}
        with progress(len(self.utterances), "aligner hmm: reads") as bar:
            for done in run_chunks(work, chunks, n_jobs, self.config.backend):
                examples[done.key] = done.result
                bar.advance(len(chunks[done.key]))
        in_order = [example for key in sorted(examples) for example in examples[key]]
        save_model(self.path, train(in_order, n_jobs), self.origin)


def plan_training(
    config: PreprocessConfig, utterances: Sequence[Utterance], folder: Path
) -> Training:
    """Plans what has to be learnt before these utterances are aligned.

    A model in the folder is kept if it was made with the same configuration and nearly all that it
    would be learnt from now was there then.

    Args:
        config: Stage 1.
        utterances: The whole dataset.
        folder: Its processed data; it need not exist.
    """
    path = folder / MODEL_FILE
    chosen = tuple(choose(utterances, MOST_UTTERANCES))
    origin = {
        "config": _digest(_relevant(config)),
        "utterances": {utterance.id: _digest(_identity(utterance)) for utterance in chosen},
    }
    previous = read_origin(path)
    if previous is not None and _nearly_same(previous, origin):
        return Training(config, path, chosen, previous)
    return Training(config, path, chosen, origin)


def choose(utterances: Sequence[Utterance], most: int) -> list[Utterance]:
    """Utterances to learn from: as many of each speaker as possible, in an order by id alone.

    Args:
        utterances: In any order.
        most: How many there may be.
    """
    by_speaker: dict[str, list[Utterance]] = {}
    for utterance in sorted(utterances, key=lambda u: derived_seed("aligner", u.id)):
        by_speaker.setdefault(utterance.speaker, []).append(utterance)
    rounds = zip_longest(*(by_speaker[speaker] for speaker in sorted(by_speaker)))
    return [utterance for turn in rounds for utterance in turn if utterance is not None][:most]


def _relevant(config: PreprocessConfig) -> dict[str, object]:
    """What of the configuration the examples depend on."""
    text = asdict(config.text)
    if config.text.lexicon_path:
        text["lexicon_path"] = sha256_of(Path(config.text.lexicon_path))
    return {"text": text, **{key: getattr(config, key) for key in _KEYS}}


def _identity(utterance: Utterance) -> list[object]:
    said = [utterance.text, utterance.speaker, utterance.language]
    return [*said, *size_and_time(utterance.audio)]


def _nearly_same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    same = old["utterances"].items() & new["utterances"].items()
    larger = max(len(old["utterances"]), len(new["utterances"]))
    return old["config"] == new["config"] and len(same) >= _SAME_SHARE * larger


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _examples(
    config: PreprocessConfig, most_frames: int, name: str, utterances: Sequence[Utterance]
) -> list[Example]:
    """What can be learnt from; what is wrong with the others stage 1 says when it comes to them.

    They have `most_frames` together; those beyond are not read.
    """
    frontends = {
        language: TextFrontend(config.text, language)
        for language in {utterance.language for utterance in utterances}
    }
    examples: list[Example] = []
    n_frames = 0
    for utterance in utterances:
        for example in _example(config, utterance, frontends[utterance.language]):
            n_frames += len(example.frames)
            if n_frames > most_frames:
                return examples
            examples.append(example)
    return examples


def _example(
    config: PreprocessConfig, utterance: Utterance, frontend: TextFrontend
) -> Iterator[Example]:
    try:
        audio = read_audio(utterance.audio, config)
        spoken = frontend(utterance.text)
    except (UtteranceError, InputError):
        return
    yield Example(
        utterance.speaker,
        cepstra(audio.wav, config.sample_rate),
        tuple(spoken.phones[word.start : word.end] for word in spoken.words),
        tuple(bool(pause) for pause in pauses_after(spoken)),
    )


_log = get_logger(__name__)
