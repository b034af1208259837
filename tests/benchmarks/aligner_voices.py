"""Voices trained on the durations of several aligners, compared on unseen sentences.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.aligner_voices [--config FILE]
        [--aligners A B ...] [--seeds N ...]

The recipe of FastSpeech 2 trains a voice for each aligner and seed and synthesises the test split;
existing voices are kept. Two scores are the mean absolute difference, frame by frame, between the
recorded mel and the mel that a voice predicts for the durations of its aligner, with predicted or
with recorded pitch and energy. Only frames that all aligners assign to the sentence count, since
they differ about its ends. MCD and word error are those of stage 4 with predicted durations;
recordings are trimmed to the span of the first aligner.

The difference of every two aligners has a confidence interval of 95 % over sentences. It does not
cover the variation over seeds, which the means of each seed show.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch

from models.base.registry import load_config
from models.checkpoint.loading import LoadedModel, load_model
from models.evaluation.bootstrap import estimate_differences
from models.evaluation.evaluate import evaluate
from models.evaluation.inputs.options import EvaluationOptions, inputs_of_model
from models.tts.fastspeech2 import FastSpeech2
from preprocessors.split import read_splits
from processors.dataset.batch import TtsBatch, collate
from processors.dataset.datasets import FeatureDataset
from processors.dataset.sampler import Draw
from processors.dataset.store import FeatureStore, processed_folder
from utils.files import user_path

RECIPE = Path(__file__).parents[2] / "egs/tts/FastSpeech2"
ALIGNERS = ("textgrid", "pocketsphinx", "hmm")
SPOKEN = ("mcd", "wer")
COLUMNS = ("mel L1", "mel L1 with the recorded pitch and energy", *SPOKEN)


class Voice(NamedTuple):
    """What was trained on one aligner's durations."""

    aligner: str
    seed: int
    experiment: Path


class Prepared(NamedTuple):
    """A voice with its own data."""

    model: LoadedModel
    store: FeatureStore


class Cell(NamedTuple):
    """A score of one sentence, and its weight in the mean."""

    value: float
    weight: float = 1.0


Sentences = Mapping[str, tuple[Cell, ...]]  # by id: a cell for each of COLUMNS


def main() -> None:
    """Trains what is missing and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=RECIPE / "exp_config_demo.json")
    parser.add_argument("--aligners", nargs="+", default=ALIGNERS, choices=(*ALIGNERS, "imported"))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], metavar="N")
    given = parser.parse_args()
    config = load_config(given.config)
    dataset, kind = config.dataset[0], given.config.stem.removeprefix("exp_config_")
    voices = [
        Voice(aligner, seed, user_path(config.log_dir) / f"{kind}_{aligner}_{seed}")
        for seed in given.seeds
        for aligner in given.aligners
    ]
    for voice in voices:
        if not (voice.experiment / "result/metadata.jsonl").is_file():
            train(voice, given.config, dataset)
    print_tables(voices, score(voices, dataset))


def train(voice: Voice, config: Path, dataset: str) -> None:
    """Runs stages 1 to 3."""
    flags = ["--config", str(config.resolve()), "--name", voice.experiment.name]
    flags += ["--seed", str(voice.seed), "--stage", "1-3", "--infer_mode", "batch"]
    flags += ["--infer_dataset", dataset, "--infer_testing_set", "test"]
    flags += ["--set", f"preprocess.aligner={voice.aligner}", "--set", "train.score_steps=0"]
    flags += ["--set", f"preprocess.processed_dir=data/aligned_{voice.aligner}"]
    if any(voice.experiment.glob("checkpoints/step-*")):
        flags.append("--resume")
    environment = os.environ | {"PYTHON": sys.executable}
    subprocess.run(["sh", str(RECIPE / "run.sh"), *flags], check=True, env=environment)


def score(voices: Sequence[Voice], dataset: str) -> dict[Voice, Sentences]:
    """All scores of the sentences of the test split that every voice has data of."""
    prepared = [prepare(voice.experiment, dataset) for voice in voices]
    stores = [one.store for one in prepared]
    test = read_splits(stores[0].folder).test
    ids = [id for id in test if all(id in store for store in stores)]
    spoken = _score_spoken(voices, dataset)
    scored: dict[Voice, Sentences] = {}
    for voice, one, heard in zip(voices, prepared, spoken, strict=True):
        mel = {id: mel_errors(one, id, common_span(stores, id)) for id in ids}
        scored[voice] = {id: (*map(Cell, mel[id]), *heard[id]) for id in ids}
    return scored


def prepare(experiment: Path, dataset: str) -> Prepared:
    """A voice, and what stage 1 made for it."""
    model = load_model(experiment)
    folder = processed_folder(model.config.preprocess, dataset)
    return Prepared(model, FeatureStore(folder, model.mel))


def common_span(stores: Sequence[FeatureStore], id: str) -> tuple[int, int]:
    """What all stores hold of a recording: first sample, and the one after the last."""
    spans = []
    for store in stores:
        position = store.index_of(id)
        start = int(store.starts[position])
        spans.append((start, start + int(store.frames[position]) * store.mel.hop_length))
    return max(start for start, _ in spans), min(end for _, end in spans)


def mel_errors(voice: Prepared, id: str, span: tuple[int, int]) -> tuple[float, float]:
    """Mean absolute difference of predicted and recorded mel, nats.

    Args:
        voice: Predicts it with the durations of its own data.
        id: The sentence.
        span: Samples of the recording; frames count that begin in there.

    Returns:
        With pitch and energy as predicted, and as recorded.
    """
    batch = _batch_of(voice, id)
    network = cast("FastSpeech2", voice.model.network)
    given = network.infer(
        batch.phone_ids,
        batch.phone_lengths,
        speaker_ids=batch.speaker_ids,
        durations=batch.durations,
    )
    store = voice.store
    _, _, T = batch.mel.shape
    starts = int(store.starts[store.index_of(id)]) + np.arange(T) * store.mel.hop_length
    counted = torch.from_numpy((starts >= span[0]) & (starts < span[1]))  # (T,)
    own, true = (
        float((mel - batch.mel)[0, :, counted].abs().mean())
        for mel in (given.mel, network.teacher_forced_mel(batch))
    )
    return own, true


def _batch_of(voice: Prepared, id: str) -> TtsBatch:
    model = voice.model
    vocabulary = model.assets.required_vocabulary(model.home)
    speakers = [speaker.name for speaker in model.speakers]
    items = FeatureDataset([voice.store], [[id]], vocabulary, speakers)
    return collate([items[Draw(0, 0)]], model.mel.log_floor_value)


def _score_spoken(voices: Sequence[Voice], dataset: str) -> list[dict[str, tuple[Cell, ...]]]:
    """Stage 4 of all voices, compared with the same recordings."""
    folders = [voice.experiment / "result" for voice in voices]
    inputs = inputs_of_model(voices[0].experiment, folders)
    evaluation = evaluate(inputs, EvaluationOptions(SPOKEN, dataset, "test", copies=False), 1)
    return [
        {
            id: tuple(Cell(*scored.values[name][:2]) for name in SPOKEN)
            for id, scored in system.scored.items()
        }
        for system in evaluation.systems
    ]


def print_tables(voices: Sequence[Voice], scored: Mapping[Voice, Sentences]) -> None:
    """Means with those of each seed, then the differences of every two aligners."""
    aligners = list(dict.fromkeys(voice.aligner for voice in voices))
    arrays = {
        aligner: arrays_of([scored[voice] for voice in voices if voice.aligner == aligner])
        for aligner in aligners
    }
    for k, column in enumerate(COLUMNS):
        print(f"\n{column}")  # noqa: T201
        for aligner, (values, weights) in arrays.items():
            means = np.average(values[:, :, k], axis=1, weights=weights[:, k])  # (seeds,)
            each = " ".join(f"{mean:.3f}" for mean in means)
            print(f"  {aligner:30}{means.mean():8.3f}   by seed: {each}")  # noqa: T201
        for first, second in combinations(aligners, 2):
            low_high = _difference(arrays[first], arrays[second], k)
            print(f"  {first + ' - ' + second:30}{low_high}")  # noqa: T201


def arrays_of(seeds: Sequence[Sentences]) -> tuple[np.ndarray, np.ndarray]:
    """Values of one aligner, (seeds, sentences, columns), and weights, (sentences, columns)."""
    values = [[[cell.value for cell in cells] for cells in one.values()] for one in seeds]
    weights = [[cell.weight for cell in cells] for cells in seeds[0].values()]
    return np.array(values), np.array(weights)


def _difference(
    first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray], k: int
) -> str:
    """The paired difference of one column, the seeds of each aligner taken together."""
    sides = [values.mean(axis=0)[:, k : k + 1] for values, _ in (first, second)]
    weights = [weights[:, k : k + 1] for _, weights in (first, second)]
    (estimate,) = estimate_differences(sides[0], sides[1], weights[0], weights[1])
    if estimate is None or estimate.low is None or estimate.high is None:
        raise ValueError("the test split has one sentence; differences need more")
    verdict = "unclear" if estimate.low <= 0 <= estimate.high else "clear"
    return f"{estimate.mean:+8.3f}   ({estimate.low:+.3f} to {estimate.high:+.3f})  {verdict}"


if __name__ == "__main__":
    main()
