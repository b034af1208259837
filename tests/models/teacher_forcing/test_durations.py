"""Durations from a Tacotron 2 whose attention is known, through stage 1 to a FastPitch."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch

from models.base.aligner import JointAligner, JointAlignerConfig
from models.base.assets import Assets, Speaker
from models.base.registry import find_model, load_config
from models.teacher_forcing.durations import (
    _between_steps,
    attention_source,
    is_voice,
    load_joint_aligner,
)
from models.training.data import ProcessRank, collect_assets, load_data
from models.tts.tacotron2.decoder import LocationAttention
from modules.alignment.search import monotonic_durations
from modules.mel import MelConfig
from processors.dataset.store import FeatureStore
from processors.durations.importing import import_durations
from processors.text.voice_phones import arpabet_vocabulary
from tests.models.checkpoint.importers.tacotron2_originals import SMALL as SMALL_ORIGINAL
from tests.models.checkpoint.importers.tacotron2_originals import original
from tests.models.teacher_forcing.voices import FLOW, TACOTRON, VOICE, make_voice, write_config
from tests.processors.small_corpus import IDS, copy_corpus, prepare_dataset
from utils.errors import InputError
from utils.files import read_json, read_jsonl

CHOSEN = IDS[-3:]
STEPS = 2  # of each phone; the first has twice as many, the last all that follow
JUMP = 1  # at this step attention is on the last phone, and not on the first
SMALL = {"n_layers": 1, "head_size": 4, "filter_size": 4}
FASTPITCH = {"variant": "1.0", "hidden": 8, "encoder": SMALL, "decoder": SMALL}
PITCH_MODEL = ("FastPitch", FASTPITCH)

CONFIG = JointAlignerConfig(hidden=4, attention_channels=3)
ASSETS = Assets(MelConfig(), arpabet_vocabulary(), (Speaker("a", "en-us"), Speaker("b", "en-us")))


def known_attention(_, state, keys, past, kernel, mask):
    """Two steps on each phone, four on the first, of which one is at the end."""
    step = past[:, 1].sum(dim=1).round().long()  # (B,): cumulative weights grow by 1 in each step
    last = mask.sum(dim=1) - 1
    place = torch.where(step == JUMP, last, ((step - STEPS).clamp(min=0) // STEPS).minimum(last))
    return torch.nn.functional.one_hot(place, mask.shape[1]).float()


@pytest.fixture
def _known_attention(monkeypatch):
    monkeypatch.setattr(LocationAttention, "forward", known_attention)


def copy_steady_corpus(root: Path) -> None:
    """A corpus of one tone, which has no silence that an alignment could miss."""
    copy_corpus(root, CHOSEN)
    for path in (root / "wavs").iterdir():
        S, rate = soundfile.info(path).frames, 22050
        phase = 2 * np.pi * 150 * np.arange(S) / rate
        soundfile.write(path, 0.1 * sum(np.sin(k * phase) / k for k in range(1, 20)), rate)


@pytest.fixture(scope="module", params=[1, 3], ids=["r=1", "r=3"])
def made(request, tmp_path_factory) -> tuple[Path, int]:
    """A Tacotron 2 and its frames per step."""
    root, r = tmp_path_factory.mktemp("voice"), request.param
    decoder = {**TACOTRON["decoder"], "n_frames_per_step": r}
    copy_steady_corpus(root / "corpus")
    make_voice(root, "Tacotron2", {**TACOTRON, "decoder": decoder}, "none")
    return root, r


def bring_in(root, target, path="monotonic", voice="", model=PITCH_MODEL, **preprocess):
    """Imports the durations of the voice; returns the configuration of another model."""
    keys = {"imported_dir": str(target / "imported"), "processed_dir": str(target / "data")}
    keys |= {"aligner": "imported", "split": {}} | preprocess
    # next to the corpus, so that it is found
    config = load_config(write_config(root / "other.json", "tts", *model, **keys))
    source = attention_source(str(voice or root / "ckpts/voice"), root / "data/LJSpeech", path)
    import_durations(config, "LJSpeech", source)
    return config


def path_of(n_phones: int, n_frames: int, r: int) -> list[int]:
    """Two steps on each phone, twice as many on the first, and the rest on the last."""
    frames = [2 * STEPS * r, *[STEPS * r] * (n_phones - 2)]
    return [*frames, n_frames - sum(frames)]


@pytest.mark.usefixtures("_known_attention")
@pytest.mark.parametrize("path", ["monotonic", "argmax"])
def test_the_durations_of_a_known_attention_arrive_in_the_features(path, made, tmp_path):
    root, r = made
    truth = FeatureStore(root / "data/LJSpeech")
    assert any(truth.frames % 3)  # the last step of r=3 is cut
    prepare_dataset(bring_in(root, tmp_path, path), "LJSpeech", 1)
    store = FeatureStore(tmp_path / "data/LJSpeech")
    assert list(store.ids) == sorted(CHOSEN)
    for id in CHOSEN:
        before, after = truth.read(id), store.read(id)
        expected = path_of(len(before.phones), before.mel.shape[1], r)
        assert expected[-1] > 0
        if path == "argmax":  # the phone of the jump has a step less, the last one more
            expected[0] -= r
            expected[-1] += r
        assert after.durations.tolist() == expected
        assert (after.phones, after.start) == (before.phones, before.start)
        np.testing.assert_array_equal(after.mel, before.mel)


def test_boundaries_lie_between_the_steps_that_share_an_attention():
    steps = torch.tensor([[1.0, 0.0], [0.8, 0.2], [0.0, 1.0]])
    frames = _between_steps(steps.repeat_interleave(3, dim=0)[:8], 3)  # the last step is cut
    torch.testing.assert_close(frames[1::3], steps)
    expected = [1, 1, 14 / 15, 13 / 15, 0.8, 8 / 15, 4 / 15, 0]
    assert frames[:, 0].tolist() == pytest.approx(expected, abs=1e-6)
    log_attention = frames.clamp(min=1e-6).log()[None]
    assert monotonic_durations(log_attention, *torch.tensor([[2], [8]])).tolist() == [[6, 2]]
    torch.testing.assert_close(_between_steps(steps, 1), steps)


@pytest.mark.usefixtures("_known_attention")
def test_the_report_has_the_quality_of_each_utterance_worst_first(made, tmp_path):
    root, r = made
    bring_in(root, tmp_path)
    report = read_json(tmp_path / "imported/import.json")
    assert (report["format"], report["matched"]) == ("attention, monotonic", 3)
    rows = read_jsonl(tmp_path / "imported/attention.jsonl")
    assert sorted(row["id"] for row in rows) == sorted(CHOSEN)
    store = FeatureStore(root / "data/LJSpeech")
    for row in rows:
        T = int(store.frames[store.index_of(row["id"])])
        assert (row["focus"], row["coverage"]) == (1.0, 1.0)
        assert row["diagonality"] == pytest.approx(1 - r / T, abs=1e-4)  # all but the jump
    least = [min(row["focus"], row["coverage"], row["diagonality"]) for row in rows]
    assert least == sorted(least)


@pytest.mark.usefixtures("_known_attention")
@pytest.mark.parametrize("model", [PITCH_MODEL, ("FastSpeech2", VOICE), ("FlowSpeech", FLOW)])
def test_models_that_need_durations_train_with_them(model, made, tmp_path):
    config = bring_in(made[0], tmp_path, model=model)
    prepare_dataset(config, "LJSpeech", 1)
    assets = collect_assets(config)
    data = load_data(config, assets, ProcessRank(), torch.device("cpu"))
    task = find_model("tts", model[0]).task.build(config, assets)
    for batch in data.train:
        assert batch.durations.sum(dim=1).tolist() == batch.mel_lengths.tolist()
        (update,) = task.training_step(batch)
        sum(loss.total for loss in update.losses.values()).backward()
    gradients = [weight.grad for weight in task.networks["model"].parameters()]
    assert all(gradient is not None for gradient in gradients)


def test_attention_that_has_not_learned_to_read_is_left_out_and_named(made, tmp_path):
    root, _ = made  # random weights
    message = r"(?s)3 of 3 utterances have no durations.*poor attention"
    with pytest.raises(InputError, match=message):
        bring_in(root, tmp_path)
    rows = read_jsonl(tmp_path / "imported/rejected.jsonl")
    assert all("poor attention" in row["reason"] for row in rows)
    assert [row["id"] for row in rows] == sorted(CHOSEN)
    assert not [*(tmp_path / "imported").glob("LJ*.json")]
    bring_in(root, tmp_path, min_attention=0.0)
    assert len([*(tmp_path / "imported").glob("LJ*.json")]) == 3


def test_the_durations_are_the_same_at_every_run(made, tmp_path):
    for target in ("a", "b"):
        bring_in(made[0], tmp_path / target, min_attention=0.0)
    for id in CHOSEN:
        first, second = (tmp_path / name / f"imported/{id}.json" for name in "ab")
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.usefixtures("_known_attention")
def test_a_text_that_changed_since_stage_1_is_named(made, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(made[0], root)
    for path in root.rglob("*.json*"):
        path.write_text(path.read_text().replace(str(made[0]), str(root)))
    table = root / "corpus/metadata.csv"
    table.write_text(table.read_text().replace("|", "|So "))
    with pytest.raises(InputError, match=r"it is of the text '.*', not 'So "):
        bring_in(root, tmp_path / "out", max_bad_ratio=0.0)


@pytest.mark.usefixtures("_known_attention")
def test_a_tacotron_of_nvidia_gives_durations_of_letters(tmp_path):
    config = SMALL_ORIGINAL | {"n_mel_channels": 80, "n_symbols": 148}
    checkpoint = tmp_path / "checkpoint_Tacotron2_1500.pt"
    state = original(config).state_dict()
    torch.save({"epoch": 1500, "config": config, "state_dict": state}, checkpoint)
    copy_steady_corpus(tmp_path / "corpus")
    letters = {"text": {"phone_extractor": "nvidia_english", "p_arpabet": 0.0}, "split": {}}
    keys = {"processed_dir": str(tmp_path / "data"), "aligner": "none", **letters}
    write_config(tmp_path / "voice.json", "tts", "Tacotron2", TACOTRON, **keys)
    prepare_dataset(load_config(tmp_path / "voice.json"), "LJSpeech", 1)
    bring_in(tmp_path, tmp_path / "out", voice=checkpoint, **letters)
    store = FeatureStore(tmp_path / "data/LJSpeech")
    for id in CHOSEN:
        phones = read_json(tmp_path / f"out/imported/{id}.json")["phones"]
        features = store.read(id)
        assert tuple(phone["phone"] for phone in phones) == features.phones
        frames = [(phone["end_s"] - phone["start_s"]) * 22050 / 256 for phone in phones]
        expected = path_of(len(phones), features.mel.shape[1], 1)
        assert frames == pytest.approx(expected, abs=1e-6)


def test_a_voice_without_attention_and_features_that_are_not_there_are_refused(made, tmp_path):
    copy_corpus(tmp_path / "corpus", CHOSEN)
    voice = make_voice(tmp_path, "FastSpeech2", VOICE, "learned")
    with pytest.raises(InputError, match="voice is a FastSpeech2 and has no attention "):
        attention_source(str(voice), tmp_path / "data/LJSpeech", "monotonic")
    voice = str(made[0] / "ckpts/voice")
    with pytest.raises(InputError, match=r"by --set preprocess\.processed_dir: .*json is missing"):
        attention_source(voice, tmp_path, "monotonic")


def test_a_voice_is_told_from_a_folder_of_durations(made):
    names = (str(made[0] / "ckpts/voice"), "org/name", str(made[0] / "corpus"))
    assert [is_voice(name) for name in names] == [True, True, False]


def voice(tensors, aligner="learned"):
    """A voice whose checkpoint holds these tensors of a joint aligner."""
    sections = {"model": SimpleNamespace(aligner=CONFIG)}
    sections["preprocess"] = SimpleNamespace(aligner=aligner)
    config = SimpleNamespace(task="tts", model_type="FastSpeech2", **sections)
    stored = {"aligner": tensors}.get
    return SimpleNamespace(folder=Path("voice"), config=config, assets=ASSETS, stored=stored)


def test_the_aligner_has_the_weights_of_the_checkpoint_and_is_in_eval_mode():
    trained = JointAligner.build(CONFIG, ASSETS).eval()
    found = load_joint_aligner(voice(trained.state_dict()))
    phones = (torch.tensor([[3, 4, 5]]), torch.tensor([3]), torch.tensor([1]))
    batch = (*phones, torch.randn(1, 80, 6), torch.tensor([6]))
    assert not found.training
    assert torch.equal(found(*batch), trained(*batch))


def test_a_checkpoint_without_its_aligner_and_one_of_another_size_are_refused():
    with pytest.raises(InputError, match=r"voice/aligner\.safetensors is missing, .*--with_disc"):
        load_joint_aligner(voice(None))
    with pytest.raises(InputError, match=r"^voice: trained with preprocess\.aligner hmm, and has"):
        load_joint_aligner(voice(None, aligner="hmm"))
    other = JointAligner.build(JointAlignerConfig(hidden=5, attention_channels=3), ASSETS)
    with pytest.raises(InputError, match=r"does not fit its config\.json: of another shape: phone"):
        load_joint_aligner(voice(other.state_dict()))
