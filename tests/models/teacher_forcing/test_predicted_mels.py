"""Stage 1 of a vocoder on the mels of an acoustic model, from a real corpus to its store."""

import json
import logging
import re
import shutil
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from safetensors.torch import load_file, save_file

from models.base.registry import find_model, load_config
from models.checkpoint.loading import load_model
from models.teacher_forcing import durations, predicted_mels
from models.teacher_forcing.durations import VoiceData, duration_finder
from models.teacher_forcing.predicted_mels import prepare_from_acoustic
from models.training.data import ProcessRank, collect_assets, load_data
from models.tts.fastspeech2 import FastSpeech2
from modules.mel import MelSpectrogram
from preprocessors.manifest import read_splits
from processors.audio.frames import from_pcm16
from processors.dataset.batch import TtsBatch
from processors.dataset.store import FeatureStore, MelWavStore
from tests.models.teacher_forcing.voices import (
    FLOW,
    TACOTRON,
    VOICE,
    make_voice,
    write_config,
    write_voice,
)
from tests.processors.small_corpus import IDS, copy_corpus, prepare_dataset
from tests.processors.stores import damaged_ids
from utils.config import to_plain
from utils.errors import InputError
from utils.files import read_json, read_jsonl

GENERATOR = {
    **{"upsample_rates": [16, 16], "upsample_kernel_sizes": [32, 32]},
    **{"upsample_initial_channel": 8},
    **{"resblock_kernel_sizes": [3], "resblock_dilation_sizes": [[1]]},
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """A corpus, its features, an acoustic model and the configuration of a vocoder."""
    root = tmp_path_factory.mktemp("prepared")
    copy_corpus(root / "corpus")
    keys = {"processed_dir": str(root / "data")}
    voice = write_config(root / "voice.json", "tts", "FastSpeech2", VOICE, **keys)
    prepare_dataset(load_config(voice), "LJSpeech", 1)
    write_voice(root, "voice", seed=0)
    return root


def copy_of(source: Path, target: Path) -> Path:
    """Copies files, and makes paths in them those of the copy."""
    shutil.copytree(source, target)
    names = ("*.json", "**/config.json", "**/fingerprint.json", "**/*.jsonl")
    for path in chain.from_iterable(map(target.glob, names)):
        path.write_text(path.read_text().replace(str(source), str(target)))
    return target


@pytest.fixture
def place(prepared, tmp_path) -> Path:
    """A copy of it whose paths are its own."""
    return copy_of(prepared, tmp_path / "place")


@pytest.fixture(scope="module")
def predicted(prepared, tmp_path_factory) -> Path:
    """The same, with the mels that the model predicts."""
    root = copy_of(prepared, tmp_path_factory.mktemp("predicted") / "place")
    prepare(root)
    return root


@pytest.fixture
def finished(predicted, tmp_path) -> Path:
    """A copy of that."""
    return copy_of(predicted, tmp_path / "place")


def vocoder_config(place: Path, **preprocess: object):
    model = {"generator": GENERATOR}
    keys = {"processed_dir": str(place / "data/vocoder"), "max_seconds": 600} | preprocess
    return load_config(write_config(place / "vocoder.json", "vocoder", "HiFiGAN", model, **keys))


def prepare(place: Path, voice: str | Path = "ckpts/voice", **preprocess: object) -> None:
    prepare_from_acoustic(vocoder_config(place, **preprocess), place / voice)


def store_of(place: Path) -> MelWavStore:
    return MelWavStore(place / "data/vocoder/LJSpeech")


def test_features_in_another_folder_than_that_of_the_model_are_named_and_read(place, monkeypatch):
    monkeypatch.chdir(place)
    path = place / "ckpts/voice/config.json"
    config = json.loads(path.read_text())
    config["preprocess"] |= {"processed_dir": "", "f0_max": 500.0}
    path.write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"f0_max was 600.0, is 500.0; .* --acoustic_data=data$"):
        prepare_from_acoustic(vocoder_config(place), path.parent)
    prepare_from_acoustic(vocoder_config(place), path.parent, processed=place / "data")
    assert list(store_of(place).ids) == IDS


def test_mels_are_predicted_and_wavs_are_those_of_the_features(finished):
    store, features = store_of(finished), FeatureStore(finished / "data/LJSpeech")
    model = load_model(finished / "ckpts/voice")
    assert list(store.ids) == IDS
    assert damaged_ids(store) == []
    assert store.frames.tolist() == features.frames.tolist()
    for id in IDS:
        record, truth = store.read(id), features.read(id)
        samples, _ = soundfile.read(finished / f"corpus/wavs/{id}.flac", dtype="int16")
        S = min(len(samples) - truth.start, len(record.wav))
        np.testing.assert_array_equal(record.wav[:S], samples[truth.start :][:S])
        true_mel = MelSpectrogram(store.mel)(torch.from_numpy(from_pcm16(record.wav))[None])[0]
        np.testing.assert_allclose(true_mel.numpy(), truth.mel, atol=1e-2)
        np.testing.assert_allclose(record.mel, predict(model, truth), atol=1e-4)
        assert np.abs(record.mel - truth.mel).mean() > 0.5


def predict(model, features) -> np.ndarray:
    """The refined mel with the true prosody, alone and not in a batch."""
    output = model.network(
        torch.tensor([model.vocabulary.ids(features.phones)]),
        torch.tensor([len(features.phones)]),
        torch.tensor([0]),
        torch.from_numpy(features.durations)[None],
        torch.tensor([features.mel.shape[1]]),
        torch.from_numpy(features.f0)[None],
        torch.from_numpy(features.energy)[None],
    )
    return output.refined_mel_hat[0].T.detach().numpy()


def test_a_flow_samples_for_each_utterance_the_mel_that_it_gives_it_alone(place):
    data = place / "data"
    write_config(place / "voice.json", "tts", "FlowSpeech", FLOW, processed_dir=str(data))
    folder = write_voice(place, "flow", seed=0)
    weights = load_file(folder / "model.safetensors")
    torch.nn.init.normal_(weights["estimator.velocity.weight"], std=0.1)  # 0 before training
    save_file(weights, folder / "model.safetensors")
    prepare(place, folder)
    voice = VoiceData(load_model(folder), FeatureStore(data / "LJSpeech"))
    network, store = voice.voice.network, store_of(place)
    assert list(store.ids) == IDS
    for id in IDS:
        alone = network.teacher_forced_mel(voice.batch([id]))
        np.testing.assert_allclose(store.read(id).mel, alone[0].numpy(), atol=1e-4)
    higher = voice.batch([id])._replace(f0=1.3 * voice.batch([id]).f0)
    assert (network.teacher_forced_mel(higher) - alone).abs().mean() > 0.01


def test_the_splits_are_those_of_the_acoustic_model(place):
    prepare(place, split={"valid_ids": ["LJ001-0002"], "test_ids": ["LJ001-0008"]})
    found = read_splits(place / "data/vocoder/LJSpeech")
    assert found == read_splits(place / "data/LJSpeech")
    assert found.test == ["LJ002-0035"]


def test_a_vocoder_can_be_trained_on_predicted_mels(finished):
    config = vocoder_config(finished)
    (batch,) = load_data(config, collect_assets(config), ProcessRank(), torch.device("cpu")).train
    assert sorted(batch.ids) == [id for id in IDS if not id.startswith("LJ002")]
    assert batch.wav.shape == (7, 32 * 256)


def test_with_another_padding_the_audio_is_shifted_to_the_mels(place):
    prepare(place, mel_padding="hifigan")
    store, features = store_of(place), FeatureStore(place / "data/LJSpeech")
    assert store.mel.padding == "hifigan"
    mel_of = MelSpectrogram(store.mel)
    for id in IDS:
        wav = torch.from_numpy(from_pcm16(store.read(id).wav))[None]
        inside = slice(3, -3)  # frames that no reflection reaches
        mel = mel_of(wav)[0, :, inside].numpy()
        # the quietest bands differ by HiFi-GAN's epsilon, half a hop would make more than 1
        np.testing.assert_allclose(mel, features.read(id).mel[:, inside], atol=0.1)
    assert min(store.starts) == -128  # reflected, for the span begins with the recording


def test_other_weights_predict_the_mels_again(finished, caplog):
    before = store_of(finished).read(IDS[0])
    with caplog.at_level(logging.INFO):
        prepare(finished, write_voice(finished, "other", seed=1))
    assert "from_acoustic.weights was 'sha256" in " ".join(caplog.text.split())
    after = store_of(finished).read(IDS[0])
    assert np.abs(after.mel - before.mel).mean() > 0.1
    np.testing.assert_array_equal(after.wav, before.wav)


def test_batches_hold_utterances_of_similar_length_up_to_a_number_of_frames(prepared, monkeypatch):
    store = FeatureStore(prepared / "data/LJSpeech")
    frames = {id: int(store.frames[store.index_of(id)]) for id in IDS}
    limit = 2 * max(frames.values())
    monkeypatch.setattr(durations, "_BATCH_FRAMES", limit)
    groups = list(VoiceData(load_model(prepared / "ckpts/voice"), store).groups(IDS))
    assert [id for group in groups for id in group] == sorted(IDS, key=lambda id: (frames[id], id))
    assert all(len(group) * frames[group[-1]] <= limit for group in groups)
    for group, after in pairwise(groups):
        assert (len(group) + 1) * frames[after[0]] > limit


def test_a_second_run_finds_nothing_to_do_but_another_name_of_the_model(finished, caplog):
    report, renamed = finished / "data/vocoder/LJSpeech/report.json", finished / "ckpts/renamed"
    with caplog.at_level(logging.INFO):
        prepare(finished)
        assert "nothing to do" in caplog.text
        assert read_json(report)["mels_from"] == "voice"
        (finished / "ckpts/voice").rename(renamed)
        prepare(finished, renamed)
    assert read_json(report)["mels_from"] == "renamed"
    assert "(0 extracted)" in caplog.text


def test_the_store_keeps_who_spoke_the_recordings_and_a_licence_that_changes(place):
    report = place / "data/LJSpeech/report.json"
    for licence in ("", "cc0-1.0"):
        origin = {"spoken_by": "Toy 1", "licence": licence}
        report.write_text(json.dumps({**read_json(report), "origin": origin}))
        prepare(place)
        assert read_json(place / "data/vocoder/LJSpeech/report.json")["origin"] == origin


def test_predicted_mels_are_not_replaced_without_the_flag(finished):
    before = store_of(finished).read(IDS[0]).mel
    with pytest.raises(InputError, match="that the acoustic model voice predicted: give --from_ac"):
        prepare_dataset(vocoder_config(finished), "LJSpeech", 1)
    np.testing.assert_array_equal(store_of(finished).read(IDS[0]).mel, before)


def test_finished_shards_are_kept_after_an_interruption(place, monkeypatch, caplog):
    work, calls = predicted_mels.PredictionWork.__call__, []

    def stop_at_the_third(self, name, utterances):
        calls.append(name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return work(self, name, utterances)

    with monkeypatch.context() as patch:
        patch.setattr(predicted_mels.PredictionWork, "__call__", stop_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            prepare(place)
    with caplog.at_level(logging.INFO):
        prepare(place)
    assert re.search(r"9 utterances, .*\([1-8] extracted\)", caplog.text)
    whole = {path.name: path.read_bytes() for path in shards_of(place)}
    shutil.rmtree(place / "data/vocoder")
    prepare(place)
    assert {path.name: path.read_bytes() for path in shards_of(place)} == whole


def shards_of(place: Path) -> list[Path]:
    return sorted((place / "data/vocoder/LJSpeech/features").glob("*.safetensors"))


def test_a_recording_that_changed_is_rejected(place):
    wavs = place / "corpus/wavs"
    samples, rate = soundfile.read(wavs / "LJ001-0008.flac")
    soundfile.write(wavs / "LJ001-0008.flac", samples[::-1], rate)
    short, _ = soundfile.read(wavs / "LJ001-0011.flac")
    soundfile.write(wavs / "LJ001-0011.flac", short[: len(short) // 2], rate)
    prepare(place)
    rejected = read_jsonl(place / "data/vocoder/LJSpeech/rejected.jsonl")
    reasons = {row["id"]: row["reason"] for row in rejected}
    assert reasons.keys() == {"LJ001-0008", "LJ001-0011"}
    assert "are of another recording" in reasons["LJ001-0008"]
    assert "samples after the recording" in reasons["LJ001-0011"]


def test_damaged_features_are_an_error_until_they_are_restored(place):
    shard, *_ = (place / "data/LJSpeech/features").glob("*-*.s*")
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=rf"{shard.name}: cannot read .*run stage 1 again"):
        prepare(place)
    shard.write_bytes(whole)
    prepare(place)
    assert list(store_of(place).ids) == IDS


def test_all_datasets_are_checked_before_the_first_is_processed(place):
    config = replace(vocoder_config(place), dataset=("LJSpeech", "other"))
    with pytest.raises(InputError, match=r"needs the features of other that voice was .*data"):
        prepare_from_acoustic(config, place / "ckpts/voice")
    assert not (place / "data/vocoder").exists()
    shutil.rmtree(place / "data/LJSpeech")
    with pytest.raises(InputError, match=r"needs the features of LJSpeech that voice was .*data"):
        prepare(place)


def test_the_network_uses_the_given_threads_up_to_the_cores_and_the_rest_one(place, monkeypatch):
    found = {}

    def note(cls, method: str) -> None:
        original = getattr(cls, method)

        def noting(*arguments):
            found[method] = torch.get_num_threads()
            return original(*arguments)

        monkeypatch.setattr(cls, method, noting)

    note(FastSpeech2, "teacher_forced_mel")
    note(predicted_mels.PredictionWork, "_cut")
    monkeypatch.setattr(predicted_mels, "n_cores", lambda: 3)
    prepare_from_acoustic(vocoder_config(place), place / "ckpts/voice", n_threads=4)
    assert found == {"teacher_forced_mel": 3, "_cut": 1}


def test_another_mel_is_refused_with_both_values(place):
    other = {"n_mels": (100, "n_mels 80 and 100"), "f_max": (11025.0, "f_max 8000.0 and 11025.0")}
    for key, (value, message) in other.items():
        with pytest.raises(InputError, match=message):
            prepare(place, **{key: value})


def test_only_a_vocoder_takes_mels_and_only_from_an_acoustic_model(place):
    with pytest.raises(InputError, match="training data of a vocoder; the task of this"):
        prepare_from_acoustic(load_config(place / "voice.json"), place / "ckpts/voice")
    config = vocoder_config(place)
    folder = place / "ckpts/vocoder"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(to_plain(config)))
    shutil.copy(place / "ckpts/voice/audio.json", folder)
    assets = load_model(place / "ckpts/voice").assets
    network = find_model("vocoder", "HiFiGAN").network.build(config.model, assets)
    save_file(network.state_dict(), folder / "model.safetensors")
    with pytest.raises(InputError, match=r"ckpts/vocoder is a vocoder; expected an acoustic model"):
        prepare_from_acoustic(config, folder)


def rename_the_speaker(voice: Path) -> None:
    (voice / "speakers.json").write_text(json.dumps([{"name": "Somebody", "language": "en-us"}]))
    stats = read_json(voice / "stats.json")
    stats["speakers"] = {"Somebody": stats["speakers"]["LJSpeech"]}
    (voice / "stats.json").write_text(json.dumps(stats))


def test_names_of_one_speaker_and_of_that_of_the_model_may_differ(finished, caplog):
    expected = [store_of(finished).read(id).mel for id in IDS]
    shutil.rmtree(finished / "data/vocoder")
    rename_the_speaker(finished / "ckpts/voice")
    prepare(finished)
    notice = "voice speaks as Somebody for the utterances of LJSpeech"
    assert notice in " ".join(caplog.text.split())
    for id, mel in zip(IDS, expected, strict=True):
        np.testing.assert_array_equal(store_of(finished).read(id).mel, mel)


def test_one_of_several_speakers_whom_the_model_does_not_know_is_refused(place, monkeypatch):
    rename_the_speaker(place / "ckpts/voice")
    store = FeatureStore(place / "data/LJSpeech")
    monkeypatch.setattr(store, "speakers", ("Somebody", *store.speakers[1:]))
    message = "the speaker of LJ001-0008, 'LJSpeech', is not among the speakers"
    with pytest.raises(InputError, match=message):
        VoiceData(load_model(place / "ckpts/voice"), store)


def test_durations_come_from_the_joint_aligner_if_stage_1_stored_none(tmp_path):
    copy_corpus(tmp_path / "corpus", IDS[-3:])
    folder = make_voice(tmp_path, "FastSpeech2", VOICE, "learned")
    with pytest.raises(InputError, match=r"aligner\.safetensors is missing"):
        prepare(tmp_path, folder)
    voice = load_model(folder)
    task = find_model("tts", "FastSpeech2").task.build(voice.config, voice.assets)
    save_file(task.networks["aligner"].state_dict(), folder / "aligner.safetensors")
    prepare(tmp_path, folder)
    store, features = store_of(tmp_path), FeatureStore(tmp_path / "data/LJSpeech")
    find_in = duration_finder(folder, features.folder)
    for id in store.ids:
        expected = predict(voice, find_in(features.read(id)))
        np.testing.assert_allclose(store.read(id).mel, expected, atol=1e-4)


@pytest.mark.parametrize("r", [1, 3])
def test_a_model_that_needs_no_durations_predicts_from_the_frames_before(r, tmp_path):
    copy_corpus(tmp_path / "corpus", IDS[-3:])
    model = {**TACOTRON, "decoder": {**TACOTRON["decoder"], "n_frames_per_step": r}}
    folder = make_voice(tmp_path, "Tacotron2", model, "none")
    prepare(tmp_path, folder)
    store, features = store_of(tmp_path), FeatureStore(tmp_path / "data/LJSpeech")
    voice = load_model(folder)
    assert store.frames.tolist() == features.frames.tolist()
    assert any(store.frames % 3)  # a last step that is not whole
    for id in store.ids:
        found, record = features.read(id), store.read(id)
        assert (record.mel.shape, record.start) == (found.mel.shape, found.start)
        assert len(record.wav) == 256 * found.mel.shape[1]
        phones = torch.tensor([voice.vocabulary.ids(found.phones)])
        mel = torch.from_numpy(found.mel)[None]
        lengths = torch.tensor([phones.shape[1]]), torch.tensor([mel.shape[2]])
        contours = torch.from_numpy(found.f0)[None], torch.from_numpy(found.energy)[None]
        batch = phones, lengths[0], torch.tensor([0]), None, mel, lengths[1], *contours
        output = voice.network(TtsBatch((id,), *batch))
        expected = output.refined_mel_hat[0].T.detach().numpy()
        np.testing.assert_allclose(record.mel, expected, atol=1e-4)
