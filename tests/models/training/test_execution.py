"""Compiled networks are compiled once for each shape, and leave checkpoints as they are."""

import json
import logging
from dataclasses import replace

import pytest
import torch
from accelerate.state import AcceleratorState

from config.train import ProfileConfig
from models.base.assets import Assets
from models.checkpoint.folders import latest_checkpoint
from models.tts import fastpitch, fastspeech2, flowspeech, tacotron2
from processors.text.voice_phones import arpabet_vocabulary
from tests.models.compiled import set_backend
from tests.models.training import small_tasks
from tests.models.training.small_tasks import PREPROCESS, TinyTask, make_trainer, train_config
from tests.models.tts import test_fastpitch, test_fastspeech2, test_flowspeech, test_tacotron2
from tests.models.tts.batches import PITCH

MODELS = {
    "FastPitch": (fastpitch, test_fastpitch, (PITCH,)),
    "FastSpeech2": (fastspeech2, test_fastspeech2, (PITCH, test_fastspeech2.ENERGY)),
    "FlowSpeech": (flowspeech, test_flowspeech, (PITCH, test_flowspeech.ENERGY)),
}
BUCKETS = {"compile": "buckets", "compile_buckets": 2}


@pytest.fixture(autouse=True)
def _eager(monkeypatch):
    set_backend(monkeypatch, "eager")
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture
def store(tmp_path):
    return small_tasks.make_processed(tmp_path / "data", n_utterances=24)


def small_model(name):
    """The task of a small model, for the corpus of small_tasks; a tiny one without a name."""
    if not name:
        return TinyTask()
    package, tests, statistics = MODELS.get(name, (tacotron2, test_tacotron2, ()))
    torch.manual_seed(0)
    config = tests.SMALL
    if name == "Tacotron2":  # its graphs have every step of the decoder: fewer, of more frames
        config = replace(config, decoder=replace(config.decoder, n_frames_per_step=12))
    sizes = config, len(arpabet_vocabulary()), PREPROCESS.mel
    network = vars(package)[name](*sizes, *statistics)
    return vars(package)[f"{name}Task"](network, Assets(PREPROCESS.mel))


@pytest.mark.parametrize(
    "name",
    [
        *("", "Tacotron2"),  # the others take long to trace
        *(pytest.param(name, marks=pytest.mark.slow) for name in MODELS),
    ],
)
def test_nothing_is_compiled_after_every_shape_was_seen(store, tmp_path, caplog, name):
    """In three epochs, with validation, whose shapes are others."""
    caplog.set_level(logging.INFO, "arion")
    config = train_config(max_steps=0, max_epoch=3, valid_steps=4, **BUCKETS)
    trainer = make_trainer(store, tmp_path / "checkpoints", config, small_model(name))
    trainer.fit()
    shapes = trainer.run.data.sampler.fixed.batch_shapes
    assert 2 <= len(shapes) <= 3
    assert trainer._compilation.n_graphs == len(shapes)
    compiled = [line for line in caplog.messages if " compiled graphs: 1, for batches of " in line]
    assert {line.split(" of ")[1].split(",")[0] for line in compiled} == set(map(str, shapes))


def test_with_dynamic_shapes_one_graph_serves_all_batches_but_single_utterances(store, tmp_path):
    config = train_config(max_steps=0, max_epoch=2, compile="dynamic")
    trainer = make_trainer(store, tmp_path / "checkpoints", config)
    trainer.fit()
    batches = list(trainer.run.data.train)
    assert len({tuple(batch.mel.shape) for batch in batches}) > 3
    assert any(len(batch.ids) == 1 for batch in batches)
    assert trainer._compilation.n_graphs == 2


def test_fixed_shapes_give_the_update_of_the_same_batches_without_them(store, tmp_path):
    weights = []
    for shapes in (BUCKETS, {}):
        data = small_tasks.make_data(store, train_config(**BUCKETS))
        config = train_config(max_steps=0, max_epoch=2, **shapes)
        if not shapes:  # the same utterances in each batch, without padding to a shape
            plain = small_tasks.make_data(store, config)
            data.train.dataset.collator = plain.train.dataset.collator
        trainer = make_trainer(store, tmp_path / str(len(shapes)), config, data=data)
        trainer.fit()
        weights.append(trainer.run.task.networks["model"].state_dict())
    for name, weight in weights[0].items():
        assert torch.allclose(weight, weights[1][name], rtol=1e-5, atol=1e-6), name


def test_a_compiled_run_resumes_bit_for_bit_from_ordinary_weights(store, tmp_path):
    config = train_config(max_steps=8, gradient_accumulation_step=2, **BUCKETS)
    whole = make_trainer(store, tmp_path / "whole", config, TinyTask(dropout=0.3))
    whole.fit()
    half = replace(config, max_steps=3)
    make_trainer(store, tmp_path / "halves", half, TinyTask(dropout=0.3)).fit()
    resumed = make_trainer(store, tmp_path / "halves", config, TinyTask(dropout=0.3))
    resumed.checkpointer.resume(latest_checkpoint(tmp_path / "halves"))
    resumed.fit()
    found = resumed.run.task.networks["model"].state_dict()
    assert found.keys() == TinyTask().networks["model"].state_dict().keys()
    for name, weight in whole.run.task.networks["model"].state_dict().items():
        assert torch.equal(found[name], weight), name


def train_profiled(store, folder, steps):
    config = train_config(max_steps=4, profile=ProfileConfig(steps))
    trainer = make_trainer(store, folder / "checkpoints", config)
    trainer.fit()
    return folder / "profile", trainer.run.task.networks["model"].state_dict()


def test_a_profiled_run_has_a_trace_and_a_table_and_the_same_weights(store, tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        folder, weights = train_profiled(store, tmp_path / "a", (2, 3))
    other, plain = train_profiled(store, tmp_path / "b", ())
    trace = json.loads((folder / "trace.json").read_text())
    names = [event.get("name") for event in trace["traceEvents"]]
    table = (folder / "operations.txt").read_text()
    assert all(torch.equal(weights[name], plain[name]) for name in plain)
    assert not other.exists()
    steps = [name for name in names if name.startswith("ProfilerStep")]
    assert steps[:2] == ["ProfilerStep#1", "ProfilerStep#2"]
    assert "aten::addmm" in names
    assert "Self CPU" in table
    assert table.count("aten::") > 3
    assert table in caplog.text
    assert not (folder / "memory.pickle").exists()


def test_a_run_that_ends_early_writes_what_it_has(store, tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        folder, _ = train_profiled(store, tmp_path, (3, 9))
    assert (folder / "trace.json").exists()
    assert f"profile in {folder}" in caplog.text
