import json
import logging
import re
import shutil
from pathlib import Path

import pytest
import torch
from accelerate.utils import DistributedType
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from models.base.registry import load_config
from models.checkpoint.folders import fault_of, steps_of
from models.checkpoint.loading import load_model
from models.training import run as run_module
from models.training.run import shared_facts
from processors.dataset.store import FeatureStore
from tests.models.training import small_tasks
from tests.models.training.small_tasks import make_processed, write_corpus, write_voice_config
from tests.worlds.experiments import train_anew, trained_voice
from utils.errors import InputError
from utils.locks import locked

ROOT = Path(__file__).parents[3]


@pytest.fixture
def root(tmp_path):
    make_processed(tmp_path / "data" / "mini", speakers=("anna", "ben"))
    return tmp_path


@pytest.fixture
def trained(tmp_path):
    """The same folder with the experiment `voice` after four updates."""
    trained_voice(tmp_path, speakers=("anna", "ben"))
    return tmp_path


ONCE = "train.max_steps=1"


def run(root, *overrides, name="voice", model="FastSpeech2", **flags):
    return train_anew(write_voice_config(root, model=model), *overrides, name=name, **flags)


def test_an_experiment_is_self_contained(root, monkeypatch):
    monkeypatch.chdir(root)
    run(root)
    folder = root / "ckpts" / "voice"
    config = json.loads((folder / "config.json").read_text())
    assert {path.name for path in folder.iterdir()} == {
        *("config.json", "audio.json", "vocabulary.json", "speakers.json", "stats.json"),
        "trained_phones.json",
        *("README.md", "history.json", "checkpoints", "manifest.json", ".lock"),
    }
    assert steps_of(folder / "checkpoints") == [2, 4]
    assert fault_of(folder / "checkpoints" / "step-00000004") == ""
    assert config["preprocess"]["processed_dir"] == "data"
    assert str(root) not in (folder / "config.json").read_text()
    speakers = [{"name": name, "language": "en-us"} for name in ("anna", "ben")]
    assert json.loads((folder / "speakers.json").read_text()) == speakers


def test_two_runs_of_one_name_at_a_time_are_refused(root):
    folder = root / "ckpts" / "voice"
    message = "is using it; wait for its end, or give another --n"
    with locked(folder, ""), pytest.raises(InputError, match=message):
        run(root)
    assert [path.name for path in folder.iterdir()] == [".lock"]
    run(root, ONCE)
    assert steps_of(folder / "checkpoints") == [1]


def test_the_model_card_describes_the_model(trained):
    card = (trained / "ckpts" / "voice" / "README.md").read_text()
    for part in ("FastSpeech2", "4 updates", "8000 Hz", "8 bands", "anna, ben", "mini", "mel "):
        assert part in card
    assert card.startswith('---\nlicense: "unknown"\nlanguage: ["en"]\n')


def test_the_card_names_the_source_of_initial_weights_also_after_a_resume(trained):
    card = trained / "ckpts" / "second" / "README.md"
    row = "| initialised from | voice, 4 updates |"
    run(trained, ONCE, name="second", init_from=str(trained / "ckpts" / "voice"))
    assert row in card.read_text()
    run(trained, "train.max_steps=2", name="second", resume=True)
    assert row in card.read_text()
    assert "for 2 updates" in card.read_text()


def test_resume_continues_and_restart_starts_again(trained, caplog):
    run(trained, "train.max_steps=5", resume=True)
    checkpoints = trained / "ckpts" / "voice" / "checkpoints"
    assert steps_of(checkpoints)[-1] == 5

    with caplog.at_level(logging.WARNING):
        run(trained, ONCE, restart=True)
    assert steps_of(checkpoints) == [1]
    assert "--restart: deleting the checkpoints (" in caplog.text


def test_resuming_does_not_need_the_statistics_of_the_data(trained):
    for name in ("stats.json", "phones.json", "speakers.json"):
        (trained / "data" / "mini" / name).unlink()
    assert run(trained, "train.max_steps=5", resume=True) is None


@pytest.mark.parametrize(
    ("model", "of_synthesis"),
    [
        ("FastSpeech2", []),
        ("FlowSpeech", ["model.steps=2", "model.temperature=0.5"]),
        pytest.param("Matcha", ["model.steps=2", "model.temperature=0.5"], marks=pytest.mark.slow),
    ],
)
def test_a_moving_average_is_resumed_and_is_what_another_run_starts_from(root, model, of_synthesis):
    averaged = ("train.optimizer=lamb", "train.ema_decay=0.5", "train.keep_milestones=[1]")
    longer = (*averaged[:2], "train.keep_milestones=[1,3]", "train.max_steps=4")
    run(root, *averaged, "train.max_steps=2", model=model)
    run(root, *longer, *of_synthesis, model=model, resume=True)
    run(root, *longer, model=model, name="whole")
    folder = root / "ckpts" / "voice"
    spoken, raw = load_model(folder), load_model(folder, overrides=["inference.ema=false"])
    assert steps_of(folder / "checkpoints")[0] == 1
    assert fault_of(folder / "checkpoints" / "step-00000003") == ""
    card = (folder / "README.md").read_text()
    assert "| weights | moving average over the updates, decay 0.5 |" in card
    same = load_model(root / "ckpts" / "whole").network.state_dict()
    assert all(torch.equal(same[name], t) for name, t in spoken.network.state_dict().items())

    run(root, "train.adam.lr=0", ONCE, model=model, name="second", init_from=str(folder))
    embedding = "encoder." * (model == "Matcha") + "phone_embedding.weight"
    initial = load_model(root / "ckpts" / "second").network.get_parameter(embedding)
    assert torch.equal(initial, spoken.network.get_parameter(embedding))
    assert not torch.equal(initial, raw.network.get_parameter(embedding))


TWO_KEYS = ("train.batch_size=4", "model.transformer.n_encoder_layers=2")
SIZE = "model.transformer.conv_filter_size"


@pytest.mark.parametrize(
    ("overrides", "resume", "message"),
    [
        ([], False, r"up to update 4: give --resume .* --restart"),
        (["train.ema_decay=0.5"], True, r"train\.ema_decay was 0\.0, is 0\.5; undo"),
        (TWO_KEYS, True, r"\.n_encoder_layers was 1, is 2; train\.batch_size was 3, is 4; undo"),
    ],
)
def test_an_earlier_run_is_not_continued_without_a_flag_or_with_other_updates(
    trained, overrides, resume, message
):
    others = ("train.log_steps=7", "train.dataloader.num_worker=1")  # these may change
    with pytest.raises(InputError, match=message):
        run(trained, *overrides, *others, resume=resume)


@pytest.mark.parametrize(
    ("overrides", "flags", "message"),
    [
        ([], {"resume": True}, "no checkpoint to continue from"),
        ([], {"init_from": "/missing/voice"}, "/missing/voice"),
        (["train.mixed_precision=fp16"], {}, "fp16 needs a GPU"),
        (['train.score_metrics=["mdc"]'], {}, r"train\.score_metrics: mdc is no metric.*mcd"),
        ([f"{SIZE}=1000000000000000"], {}, r"networks of FastSpeech2 cannot be built: .*; lower"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_there_is_a_folder(
    root, monkeypatch, overrides, flags, message
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=message):
        run(root, *overrides, **flags)
    assert not (root / "ckpts").exists()


@pytest.mark.parametrize(
    ("files", "content", "message"),
    [
        ("checkpoints/*/model.safetensors", "", "no whole checkpoint in it"),
        ("history.json", "{", r"history\.json: not JSON"),
    ],
)
def test_a_damaged_experiment_is_not_resumed(trained, files, content, message):
    for path in (trained / "ckpts" / "voice").glob(files):
        path.write_text(content)
    with pytest.raises(InputError, match=message):
        run(trained, "train.max_steps=5", resume=True)


def test_a_damaged_newest_checkpoint_costs_the_updates_since_the_one_before(root, caplog):
    two = ("train.keep_last=1", "train.save_steps=1", "train.valid_steps=0", "train.max_steps=2")
    run(root, *two)
    checkpoints = root / "ckpts" / "voice" / "checkpoints"
    path = checkpoints / "step-00000002" / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with caplog.at_level(logging.INFO):
        run(root, *two, resume=True)
    fault = "step-00000002 is not used: model.safetensors has changed since it was written"
    assert fault in caplog.text
    assert f"resumed from {checkpoints / 'step-00000001'}" in caplog.messages
    assert steps_of(checkpoints) == [1, 2]
    assert path.read_bytes() == whole
    assert (checkpoints / "step-00000002.damaged" / path.name).read_bytes() == whole[:-1]


def test_training_needs_what_stage_1_writes(root):
    shutil.rmtree(root / "data")
    with pytest.raises(InputError, match="run it"):
        run(root)


@pytest.mark.parametrize(
    ("precision", "is_fast", "used"),
    [
        ("bf16", False, "bf16"),
        ("bf16", True, "bf16"),
        ("auto", False, "fp32"),
        ("auto", True, "bf16"),
    ],
)
def test_bf16_trains_on_a_cpu_and_auto_uses_it_where_the_cpu_has_it(
    root, monkeypatch, caplog, precision, is_fast, used
):
    monkeypatch.setattr("torch.cpu._is_avx512_bf16_supported", lambda: is_fast)
    caplog.set_level("INFO")
    run(root, f"train.mixed_precision={precision}", ONCE)
    assert (root / "ckpts" / "voice" / "checkpoints").is_dir()
    assert f"an epoch, cpu, {used};" in caplog.text
    assert ("take ten times as long" in caplog.text) == (used == "bf16" and not is_fast)


def test_a_tracker_that_is_not_installed_is_an_error(root, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(InputError, match=r"wandb is not installed: .* train\.tracker=none"):
        run(root, "train.tracker=wandb")


def test_tensorboard_gets_curves_figures_and_audio(root):
    logged = ("train.tracker=tensorboard", "train.log_steps=1")
    run(root, *logged, "train.valid_samples=1", "train.max_steps=2")
    run(root, *logged, "train.max_steps=3", resume=True)
    events = EventAccumulator(str(root / "ckpts" / "voice" / "log")).Reload()
    tags = events.Tags()
    assert {"train/mel", "train/lr", "train/frames_per_s", "valid/loss"} < set(tags["scalars"])
    assert "train/grad_norm/model" in tags["scalars"]
    assert [event.step for event in events.Scalars("train/mel")] == [1, 2, 3]
    assert tags["images"] == ["samples/utt-010/mel"]
    assert tags["audio"] == ["samples/utt-010/synthesised"]
    assert events.Audio("samples/utt-010/synthesised")[0].sample_rate == 8000


def test_the_log_has_the_run_its_configuration_and_the_global_batch(root, caplog):
    overrides = ("train.gradient_accumulation_step=2", "train.keep_milestones=[2]")
    with caplog.at_level(logging.INFO):
        run(root, 'train.tracker=["jsonl"]', "train.log_steps=1", *overrides)
    path = root / "ckpts" / "voice" / "log" / "metrics.jsonl"
    first, *rows = [json.loads(line) for line in path.read_text().splitlines()]
    frames = [small_tasks.make_features(number).mel.shape[1] for number in range(10)]
    assert (first["run"], first["step"]) == ("voice", 0)
    assert first["config"]["train.gradient_accumulation_step"] == 2
    assert first["config"]["model.transformer.encoder_hidden"] == 8
    assert first["config"]["utterances_per_update"] == 5  # 10 in 4 micro-batches of an epoch
    assert first["config"]["frames_per_update"] == sum(frames) / 2
    assert [row["step"] for row in rows if "train/mel" in row] == [1, 2, 3, 4]
    line = f"2 micro-batches x 1 processes, together 5 utterances and {sum(frames) / 2:.0f} frames"
    assert line in caplog.text


def test_scores_are_logged_to_tensorboard_and_in_the_card(root, caplog):
    write_corpus(root, FeatureStore(root / "data" / "mini"))
    scores = ("train.score_steps=1", 'train.score_metrics=["mcd","duration_rmse"]')
    with caplog.at_level(logging.INFO):
        run(root, "train.tracker=tensorboard", "train.max_steps=2", *scores)
    events = EventAccumulator(str(root / "ckpts" / "voice" / "log")).Reload()
    line = "scores every 1 updates, 10 s at most: mcd, duration_rmse of 2 validation utterances"
    assert line in caplog.messages
    for name in ("mcd", "duration_rmse", "utterances"):
        assert [event.step for event in events.Scalars(f"score/{name}")] == [1, 2], name
    assert events.Scalars("score/utterances")[0].value == 2
    assert "score/mcd" in (root / "ckpts" / "voice" / "README.md").read_text()


def test_a_slow_run_on_a_cpu_shows_the_time_left(root, caplog, monkeypatch):
    monkeypatch.setattr("models.training.observing.tracker._LONGEST_WAIT_S", 0)
    with caplog.at_level(logging.INFO):
        run(root, "train.max_steps=2")
    assert len([line for line in caplog.messages if line.endswith(" left")]) == 2


def test_without_the_corpus_training_runs_without_scores(root, caplog):
    write_corpus(root, FeatureStore(root / "data" / "mini"))
    shutil.rmtree(root / "corpus")
    with caplog.at_level(logging.INFO):
        assert run(root, "train.score_steps=2", ONCE) is None
        (root / "data" / "mini" / "manifest.jsonl").unlink()
        assert run(root, "train.score_steps=2", ONCE, name="second") is None

    lines = [line for line in caplog.messages if "score" in line]
    assert len(lines) == 2
    assert re.search(r": utt-01\d\.wav: cannot be opened", lines[0])
    lack = r"no scores during training: utt-01\d is not in .*manifest\.jsonl"
    assert re.fullmatch(lack, lines[1])


def test_what_differs_between_machines_is_left_out_of_what_they_agree_on(root):
    config = load_config(write_voice_config(root), ["train.max_steps=7"])
    facts = shared_facts(config, "plan", 0)
    assert facts["train.max_steps"] == 7
    assert facts["the data of stage 1"] == "plan"
    assert not [key for key in facts if key.startswith(("dataset_path", "preprocess", "log_dir"))]


def test_a_launch_for_what_the_trainer_does_not_do_is_refused(root, monkeypatch):
    monkeypatch.setattr(run_module, "_UNSUPPORTED", {DistributedType.NO})
    with pytest.raises(InputError, match="accelerate was launched for NO, which this trainer"):
        run(root)
