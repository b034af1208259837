"""The comparison of aligners by the voices that are trained on their durations."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from models.base.registry import load_config
from processors.dataset.store import FeatureStore
from tests.benchmarks.aligner_voices import (
    COLUMNS,
    Cell,
    Prepared,
    Voice,
    common_span,
    mel_errors,
    prepare,
    print_tables,
    train,
)
from tests.models.teacher_forcing.voices import VOICE, write_config, write_voice
from tests.processors.small_corpus import copy_corpus, prepare_dataset

ID = "LJ042-0094"  # has silence at both ends
HOP = 256


@pytest.fixture(scope="module")
def voices(tmp_path_factory) -> tuple[Prepared, Prepared]:
    """Two voices with random weights; the data of the second have less silence at their ends."""
    corpus = copy_corpus(tmp_path_factory.mktemp("corpus") / "corpus")
    prepared = []
    for edge_silence_s in (0.1, 0.02):
        root = tmp_path_factory.mktemp("voice")
        (root / "corpus").symlink_to(corpus)
        keys = {"processed_dir": str(root / "data"), "edge_silence_s": edge_silence_s}
        config = write_config(root / "voice.json", "tts", "FastSpeech2", VOICE, **keys)
        prepare_dataset(load_config(config), "LJSpeech", 1)
        prepared.append(prepare(write_voice(root, "voice", seed=0), "LJSpeech"))
    return prepared[0], prepared[1]


def span_of(store: FeatureStore) -> tuple[int, int]:
    features = store.read(ID)
    return features.start, features.start + features.mel.shape[1] * HOP


def test_frames_count_where_all_aligners_found_the_sentence(voices):
    first, second = (span_of(voice.store) for voice in voices)
    assert first[0] < second[0] < second[1] < first[1]
    assert common_span([voice.store for voice in voices], ID) == second
    assert common_span([voices[0].store], ID) == first


class _Spoken(NamedTuple):
    mel: Tensor


class WrongByKnownAmounts(torch.nn.Module):
    """Predicts the recorded mel and a known error: another one outside of a span of frames."""

    def __init__(self, mel: Tensor, durations: Tensor, inside: slice) -> None:
        super().__init__()
        self.error = torch.full_like(mel, 100.0)
        self.error[:, :, inside] = 0.5
        self.mel, self.durations = mel, durations

    def teacher_forced_mel(self, batch) -> Tensor:
        return self.mel + self.error

    def infer(self, phone_ids, phone_lengths, *, speaker_ids, durations) -> _Spoken:
        assert durations.tolist() == self.durations.tolist()
        return _Spoken(self.mel - 2 * self.error)


def test_the_error_is_the_mean_of_the_frames_that_count(voices):
    wide, _ = voices
    features = wide.store.read(ID)
    mel = torch.from_numpy(features.mel)[None]  # (1, M, T)
    network = WrongByKnownAmounts(mel, torch.from_numpy(features.durations)[None], slice(3, -4))
    voice = Prepared(_with(wide, network), wide.store)
    first, end = span_of(wide.store)
    own, recorded = mel_errors(voice, ID, (first + 3 * HOP, end - 4 * HOP))
    assert own == pytest.approx(1.0)
    assert recorded == pytest.approx(0.5)


def _with(voice: Prepared, network: torch.nn.Module):
    return replace(voice.model, network=network)


def test_of_a_real_voice_both_errors_are_of_its_own_durations(voices):
    wide, _ = voices
    features = wide.store.read(ID)
    own, recorded = mel_errors(wide, ID, span_of(wide.store))
    network = wide.model.network
    ids = torch.tensor([wide.model.vocabulary.ids(features.phones)])
    lengths, durations = torch.tensor([ids.shape[1]]), torch.from_numpy(features.durations)[None]
    spoken = network.infer(ids, lengths, durations=durations)
    assert own == pytest.approx(
        float((spoken.mel[0] - torch.from_numpy(features.mel)).abs().mean())
    )
    assert recorded != own


def sentences(mel: list[float], words: list[float]) -> dict[str, tuple[Cell, ...]]:
    """Scores of sentences; the word error of the first has the weight of all others together."""
    n = len(mel)
    return {
        str(i): (Cell(mel[i]), Cell(mel[i]), Cell(5.0), Cell(words[i], n - 1 if i == 0 else 1))
        for i in range(n)
    }


def test_tables_tell_clear_differences_from_unclear_ones(capsys):
    words = [30.0] + 7 * [10.0]
    scored = {
        Voice("a", 1, Path()): sentences([0.9, 1.0, 1.1, 0.9, 1.0, 1.1, 1.0, 1.0], words),
        Voice("a", 2, Path()): sentences([0.8, 0.9, 1.0, 0.8, 0.9, 1.0, 0.9, 0.9], words),
        Voice("b", 1, Path()): sentences([0.7, 0.8, 0.9, 0.7, 0.8, 0.9, 0.8, 0.8], words[::-1]),
    }
    print_tables(list(scored), scored)
    mel, _, mcd, words_table = capsys.readouterr().out.strip().split("\n\n")
    assert mel.splitlines()[0] == COLUMNS[0]
    assert mel.splitlines()[1].split() == ["a", "0.950", "by", "seed:", "1.000", "0.900"]
    difference = " ".join(mel.splitlines()[3].split())
    assert difference == "a - b +0.150 (+0.150 to +0.150) clear"
    assert mcd.splitlines()[3].endswith("unclear")
    assert words_table.splitlines()[1].split()[1] == "20.000"  # half of the words at 30 %


@pytest.mark.parametrize("is_begun", [False, True])
def test_the_recipe_is_asked_for_the_aligner_and_the_seed(tmp_path, monkeypatch, is_begun):
    if is_begun:
        (tmp_path / "demo_hmm_7/checkpoints/step-00000100").mkdir(parents=True)
    calls = []
    monkeypatch.setattr("subprocess.run", lambda words, **_: calls.append(words))
    train(Voice("hmm", 7, tmp_path / "demo_hmm_7"), Path("demo.json"), "Anna")
    (words,) = calls
    flags = " ".join(words)
    assert "--name demo_hmm_7 --seed 7 --stage 1-3" in flags
    assert "--set preprocess.aligner=hmm" in flags
    assert ("--resume" in words) == is_begun
