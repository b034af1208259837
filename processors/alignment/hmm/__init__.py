"""The aligner "hmm": a hidden Markov model trained on the corpus, for any language and phones.

Stage 1 trains the model on a part of the recordings before it aligns the first of them, and keeps
it in the folder of the processed data. A few utterances more or less do not train it again.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment import aligner
from processors.alignment.aligner import AlignmentError
from processors.alignment.hmm import model
from processors.alignment.hmm.chain import N_STATES, segments_of
from processors.alignment.hmm.edits import score_of
from processors.alignment.hmm.training import Example, train
from processors.audio.files import read_audio
from processors.records import Alignment, SpokenText, TimedPhone
from processors.text.frontend import Frontends
from utils.errors import InputError, UtteranceError
from utils.files import sha256_of, size_and_time
from utils.logging import get_logger, progress
from utils.parallel import run_chunks
from utils.seed import derived_seed

_log = get_logger(__name__)

MODEL_FILE = "aligner.safetensors"
MAX_UTTERANCES = 1500  # of the training: two or three hours; more of them change little
MAX_FRAMES = 1_440_000  # four hours, however long recordings are: half a gigabyte of features
_SAME_SHARE = 0.9  # of the training utterances that are unchanged: the model is kept
_LEAST_S = 60  # seconds: with 86, 68 % of the boundaries were within 20 ms of MFA's
_PER_CHUNK = 25  # utterances that a process reads at a time
_Origin = dict[str, Any]  # what a model depends on: keys of the configuration, and utterances by id
# Keys of the configuration that training features depend on, besides the section `text`
_KEYS = ("sample_rate", "strict_sample_rate", "rescale", "min_seconds", "max_seconds")


def align(
    config: PreprocessConfig,
    hmm: model.PhoneHmm,
    utterance: Utterance,
    wav: np.ndarray,
    spoken: SpokenText,
) -> Alignment:
    """Aligns one utterance, (S,) float32 in [-1, 1], in any language, with a score.

    Raises AlignmentError if the recording is too short for the text or does not fit it.
    """
    words = [spoken.phones[word.start : word.end] for word in spoken.words]
    duration_s = len(wav) / config.sample_rate
    aligner.check_length(sum(map(len, words)), N_STATES * model.FRAME_S, duration_s)
    units = [hmm.numbers_of(phones) for phones in words]
    segments = segments_of(units, aligner.is_punctuated(spoken))
    frames = hmm.normalized(model.mfcc(wav, config.sample_rate), utterance.speaker)
    aligned = hmm.align(frames, segments)
    if aligned is None:
        raise AlignmentError("text and recording do not fit: no path leads through all words")
    times = zip(segments, [0.0, *aligned.ends_s[:-1]], aligned.ends_s, strict=True)
    spans = iter([(start, end) for segment, start, end in times if not segment.place])
    timed = [[TimedPhone(phone, *next(spans)) for phone in phones] for phones in words]
    names = [word.text for word in spoken.words]
    score = score_of(aligned, hmm.chain(segments), segments, names)
    aligned_words = aligner.aligned_words(spoken, timed)
    return replace(aligner.merge(aligned_words, duration_s, config.edge_silence_s), score=score)


def train_model(
    config: PreprocessConfig, path: Path, utterances: list[Utterance], origin: _Origin, n_jobs: int
) -> None:
    """Trains the model in `n_jobs` processes and then threads, unless the file holds it.

    `origin` is what it depends on: keys of the config, and utterances by id.
    """
    if model.read_origin(path) == origin:  # perhaps by another run, since planned
        return
    _log.info("aligner hmm: trains on %d recordings", len(utterances))
    n_chunks = -(-len(utterances) // _PER_CHUNK)
    # by strides, so that the limit of frames cuts all speakers alike
    chunks = {f"{start:06d}": utterances[start::n_chunks] for start in range(n_chunks)}
    work = partial(_examples, config, MAX_FRAMES // max(n_chunks, 1))
    examples: dict[str, list[Example]] = {}
    with progress(len(utterances), "aligner hmm: reads") as bar:
        for done in run_chunks(work, chunks, n_jobs, config.backend):
            examples[done.key] = done.result
            bar.advance(len(chunks[done.key]))
    in_order = [example for key in sorted(examples) for example in examples[key]]
    seconds = sum(len(example.frames) for example in in_order) * model.FRAME_S
    if seconds < _LEAST_S:
        fault = f"{seconds:.0f} s of recordings, which is too little"
        remedy = "it needs a few minutes (for less in English there is pocketsphinx)"
        _log.warning("aligner hmm: %s: expect boundaries that are far off; %s", fault, remedy)
    model.save_model(path, train(in_order, n_jobs), origin)


def plan_training(
    config: PreprocessConfig, utterances: Sequence[Utterance], folder: Path
) -> aligner.TrainingPlan:
    """Plans the training of the model.

    A model in the folder is kept if it has the same configuration and nearly the same training
    utterances.
    """
    path = folder / MODEL_FILE
    chosen = choose(utterances, MAX_UTTERANCES)
    rows = {u.id: [u.spoken, u.speaker, u.language, *size_and_time(u.audio)] for u in chosen}
    read = {id: _digest(row) for id, row in rows.items()}
    # the part of the configuration that training features depend on
    text = asdict(config.text)
    del text["p_arpabet"]  # of training without an aligner
    if config.text.lexicon_path:
        text["lexicon_path"] = sha256_of(Path(config.text.lexicon_path))
    relevant = {"text": text, **{key: getattr(config, key) for key in _KEYS}}
    origin: _Origin = {"config": _digest(relevant), "utterances": read}
    previous = model.read_origin(path)
    if previous is not None and previous["config"] == origin["config"]:
        same = previous["utterances"].items() & read.items()
        if len(same) >= _SAME_SHARE * max(len(previous["utterances"]), len(read)):
            origin = previous
    digest = f"sha256 {_digest([model.FORMAT, origin])[:16]}"
    carry_out = partial(train_model, config, path, chosen, origin)
    return aligner.TrainingPlan({"preprocess.aligner.model": digest}, carry_out)


def choose(utterances: Sequence[Utterance], most: int) -> list[Utterance]:
    """Chooses training utterances, if possible equally many per speaker, by hash of the id."""
    by_speaker: dict[str, list[Utterance]] = {}
    for utterance in sorted(utterances, key=lambda u: derived_seed("aligner", u.id)):
        by_speaker.setdefault(utterance.speaker, []).append(utterance)
    rounds = zip_longest(*(by_speaker[speaker] for speaker in sorted(by_speaker)))
    return [utterance for turn in rounds for utterance in turn if utterance is not None][:most]


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _examples(
    config: PreprocessConfig, most_frames: int, name: str, utterances: Sequence[Utterance]
) -> list[Example]:
    """Reads utterances, up to `most_frames` together; extraction reports unreadable ones."""
    frontends = Frontends(config.text)
    examples: list[Example] = []
    n_frames = 0
    for utterance in utterances:
        frontend = frontends[utterance.language]
        try:
            audio, spoken = read_audio(utterance.audio, config), frontend(utterance.spoken)
        except (UtteranceError, InputError):
            continue
        frames = model.mfcc(audio.wav, config.sample_rate)
        n_frames += len(frames)
        if n_frames > most_frames:
            break
        words = tuple(spoken.phones[word.start : word.end] for word in spoken.words)
        punctuated = tuple(aligner.is_punctuated(spoken))
        examples.append(Example(utterance.speaker, frames, words, punctuated))
    return examples


def _make(config: PreprocessConfig, _root: Path, folder: Path) -> aligner.Align:
    return partial(align, config, model.load_model(folder / MODEL_FILE))


ALIGNER = aligner.Aligner(make=_make, plan_training=plan_training)
