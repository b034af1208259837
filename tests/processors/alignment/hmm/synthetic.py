"""Recordings drawn from a known model, with boundaries known to the frame."""

from typing import NamedTuple

import numpy as np

from processors.alignment.hmm.chain import segments_of
from processors.alignment.hmm.model import FRAME_S
from processors.alignment.hmm.training import Example

PHONES = ("a", "b", "c", "d", "e", "f")
N_FEATURES = 6


class Drawn(NamedTuple):
    """An example and its truth."""

    example: Example
    starts_s: np.ndarray  # of each phone
    silences_s: np.ndarray  # after each word but the last


def corpus(n=40, seed=0, noise=0.4, speaker="ann"):
    """Utterances of two to five words; silence after every mark, and after no other word."""
    rng = np.random.default_rng(seed)
    means = np.random.default_rng(99).normal(0, 2, (len(PHONES), 4, N_FEATURES))
    means[..., 0] = np.abs(means[..., 0]) + 4  # loudness
    return [_utterance(rng, means, noise, speaker) for _ in range(n)]


def _utterance(rng, means, noise, speaker):
    n_words = int(rng.integers(2, 6))
    words = tuple(
        tuple(rng.choice(PHONES, int(rng.integers(1, 5))).tolist()) for _ in range(n_words)
    )
    marked = tuple(bool(rng.integers(2)) for _ in words)
    rows, starts, silences = [_silence(rng)], [], []
    for number, word in enumerate(words):
        for phone in word:
            starts.append(sum(map(len, rows)))
            rows += [_state(rng, mean) for mean in means[PHONES.index(phone)]]
        pause = _silence(rng) if marked[number] or number == n_words - 1 else np.zeros((0, 6))
        silences.append(len(pause))
        rows.append(pause)
    frames = np.concatenate(rows)
    frames = (frames + rng.normal(0, noise, frames.shape)).astype(np.float32)
    example = Example(speaker, frames, words, marked)
    return Drawn(example, np.array(starts) * FRAME_S, np.array(silences[:-1]) * FRAME_S)


def _state(rng, mean):
    return np.repeat(mean[None], int(rng.integers(1, 5)), axis=0)


def _silence(rng):
    return np.zeros((int(rng.integers(10, 40)), N_FEATURES))


def segments_in(model, example):
    """What the model looks for."""
    return segments_of([model.numbers_of(word) for word in example.words], example.punctuated)


def found_in(model, example):
    """Start of each phone and length of the silence after each word but the last, seconds."""
    segments = segments_in(model, example)
    ends = model.align(model.normalized(example.frames, example.speaker), segments).ends_s
    lengths = np.diff(ends, prepend=0)
    starts = (ends - lengths)[[not segment.place for segment in segments]]
    inner = [segment.place != "edge" and segment.place != "" for segment in segments]
    return starts, lengths[inner]
