"""A voice that finds its durations while it is trained: from its start to the published model."""

import logging
import re
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from models.base.registry import find_model, load_config
from models.checkpoint.folders import latest_checkpoint, step_folder
from models.checkpoint.loading import load_model
from models.checkpoint.publish import export_experiment
from models.teacher_forcing.durations import duration_finder, load_joint_aligner
from models.training.data import ProcessRank, collect_assets, load_data
from processors.dataset.store import FeatureStore
from tests.models.training.small_tasks import make_processed, write_corpus, write_voice_config
from tests.worlds.experiments import train_experiment
from utils.errors import InputError

LEARNED = "preprocess.aligner=learned"
SIZES = ("model.aligner.hidden=8", "model.aligner.attention_channels=8")
KEYS = ("prior_end=1", "binarization_weight=1", "binarization_start=2", "binarization_warmup=2")
SCHEDULE = tuple(f"model.aligner.{key}" for key in KEYS)
AVERAGED = {"FastSpeech2": (), "FlowSpeech": ("train.ema_decay=0.9",)}  # as in the recipes
FIVE_UPDATES = ("train.max_steps=5", "train.gradient_accumulation_step=2", "train.keep_last=9")


@pytest.fixture(autouse=True)
def _accelerate():
    AcceleratorState._reset_state(reset_partial_state=True)


def run(root, *overrides, name="voice", **flags):
    AcceleratorState._reset_state(reset_partial_state=True)
    path = write_voice_config(root, model=root.name)
    settings = [LEARNED, *SIZES, *SCHEDULE, *AVERAGED[root.name], *overrides]
    return train_experiment(load_config(path, settings), name, **flags)


@pytest.fixture(scope="module", params=AVERAGED)
def root(request, tmp_path_factory):
    """A voice of two speakers, after five updates of two micro-batches."""
    root = tmp_path_factory.mktemp("learned") / request.param
    make_processed(root / "data" / "mini", speakers=("anna", "ben"), timed=False)
    run(root, *FIVE_UPDATES)
    return root


def tensors_of(folder: Path) -> dict[str, torch.Tensor]:
    checkpoint = latest_checkpoint(folder / "checkpoints")
    return {
        f"{path.stem}.{name}": tensor
        for path in checkpoint.glob("*.safetensors")
        for name, tensor in load_file(path).items()
    }


def test_the_exported_network_is_the_same_as_with_another_aligner(root):
    voice = load_model(root / "ckpts" / "voice")
    config = load_config(write_voice_config(root, model=root.name))
    plain = find_model("tts", root.name).network.build(config.model, voice.assets)
    assert voice.network.state_dict().keys() == plain.state_dict().keys()
    stored = load_file(voice.folder / "model.safetensors")
    assert stored.keys() == plain.state_dict().keys()
    ids, lengths, speakers = (torch.tensor(values) for values in ([[1, 2, 3]], [3], [1]))
    out = voice.network.infer(ids, lengths, speaker_ids=speakers)
    assert out.mel.isfinite().all()


@pytest.mark.parametrize("stop", [1, 3, 4])  # before, during and after the warm-up
def test_a_resumed_run_is_bit_equal_to_an_uninterrupted_one(root, stop):
    run(root, *FIVE_UPDATES, f"train.max_steps={stop}", name=f"parts-{stop}")
    run(root, *FIVE_UPDATES, name=f"parts-{stop}", resume=True)
    whole, parts = (tensors_of(root / "ckpts" / name) for name in ("voice", f"parts-{stop}"))
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    second_update = step_folder(root / "ckpts" / "voice" / "checkpoints", 2)
    first = load_file(second_update / "aligner.safetensors")
    assert any(not torch.equal(first[n], whole[f"aligner.{n}"]) for n in first)


def test_losses_of_the_aligner_are_in_the_log_and_do_not_choose_the_best(root, caplog):
    with caplog.at_level(logging.INFO):
        run(root, "train.max_steps=2", "train.log_steps=1", name="logged")
    lines = [line for line in caplog.messages if line.startswith("update 2")]
    assert all("forward_sum " in line and "binarization " in line for line in lines)
    (valid,) = (line for line in lines if "validation loss" in line)
    numbers = dict(pair.split() for pair in valid.split("(")[1].rstrip(")").split(", "))
    of_aligner = ("forward_sum", "binarization")
    voice = sum(float(value) for name, value in numbers.items() if name not in of_aligner)
    assert float(valid.split("validation loss ")[1].split()[0]) == pytest.approx(voice, rel=1e-3)


def test_bf16_training_logs_figures_of_alignments_and_curves(root):
    logged = ("train.tracker=tensorboard", "train.valid_samples=1", "train.log_steps=1")
    run(root, "train.mixed_precision=bf16", *logged, "train.max_steps=2", name="seen")
    (folder,) = {path.parent for path in (root / "ckpts/seen").rglob("events.out.*")}
    events = EventAccumulator(str(folder)).Reload()
    assert any(name.endswith("/alignment") for name in events.Tags()["images"])
    expected = {"train/forward_sum", "train/binarization", "valid/forward_sum"}
    assert expected <= set(events.Tags()["scalars"])


def test_scores_during_training_need_no_durations_of_recordings(root, caplog):
    write_corpus(root, FeatureStore(root / "data" / "mini"))
    metrics = 'train.score_metrics=["mcd","duration_rmse"]'
    with caplog.at_level(logging.INFO):
        run(root, "train.score_steps=1", metrics, "train.max_steps=1", name="scored")
    (line,) = (line for line in caplog.messages if line.startswith("update 1: scores of 2"))
    assert re.search(r"mcd \d+.*duration_rmse nan", line)


def test_durations_of_the_trained_aligner_fill_the_recordings(root):
    store = FeatureStore(root / "data" / "mini")
    find_in = duration_finder(root / "ckpts" / "voice", root / "data" / "mini")
    for id in store.ids:
        features = find_in(store.read(id))
        assert features.durations.sum() == features.mel.shape[1]
        assert len(features.durations) == len(features.phones)
        assert features.durations.min() >= 1


def test_a_published_voice_loads_without_the_aligner(root, tmp_path):
    published = tmp_path / "published"
    export_experiment(root / "ckpts" / "voice", published, "voice", licence=None)
    assert not (published / "aligner.safetensors").exists()
    assert load_model(published).network is not None
    with pytest.raises(InputError, match=r"aligner\.safetensors is missing.*--with_discriminators"):
        load_joint_aligner(load_model(published))
    whole = tmp_path / "whole"
    voice = root / "ckpts" / "voice"
    export_experiment(voice, whole, "voice", licence=None, with_discriminators=True)
    assert (whole / "aligner.safetensors").exists()


def test_weights_of_a_voice_without_an_aligner_leave_the_aligner_randomly_initialised(root, caplog):
    make_processed(root / "data" / "timed", speakers=("anna", "ben"))
    path = write_voice_config(root, "timed", root.name)
    timed = load_config(path, ["train.max_steps=1", *AVERAGED[root.name]])
    train_experiment(timed, "timed")
    with caplog.at_level(logging.INFO):
        run(root, "train.max_steps=1", name="tuned", init_from=str(root / "ckpts/timed"))
    assert "initialised as without --init_from: network aligner" in caplog.text
    with pytest.raises(InputError, match=r"trained with .* pocketsphinx, and has no"):
        load_joint_aligner(load_model(root / "ckpts/timed"))


def test_rows_of_the_aligner_are_matched_by_symbol_and_speaker(root, caplog):
    make_processed(root / "data" / "other", speakers=("ben", "cleo"), timed=False)
    path = write_voice_config(root, "other", root.name)
    config = load_config(path, [LEARNED, *SIZES, *SCHEDULE, "train.max_steps=1"])
    with caplog.at_level(logging.INFO):
        train_experiment(config, "cleo", init_from=str(root / "ckpts/voice"))
    assert "speaker_keys.weight: cleo" in caplog.text


def test_data_with_durations_are_refused_for_a_joint_aligner(root):
    make_processed(root / "data" / "aligned", speakers=("anna",))
    config = load_config(write_voice_config(root, "aligned", root.name), [LEARNED])
    with pytest.raises(InputError, match=r"aligned .*\.aligner was 'pocketsphinx', is 'learned'"):
        collect_assets(config)


def test_data_without_durations_are_refused_on_resume_too(root):
    config = load_config(write_voice_config(root))
    assets = load_model(root / "ckpts" / "voice").assets
    with pytest.raises(InputError, match=r"mini .*\.aligner was 'learned', is 'pocketsphinx'"):
        load_data(config, assets, ProcessRank(), torch.device("cpu"))
