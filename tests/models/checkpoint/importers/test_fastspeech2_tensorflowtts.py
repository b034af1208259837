import math
import sys

import numpy as np
import pytest
import torch
import yaml

from models.checkpoint.importers.fastspeech2_tensorflowtts import translated_name
from models.checkpoint.loading import load_model
from modules.mel import MelConfig
from processors.text.frontend import TextFrontend
from tests.models.checkpoint.importers import tensorflowtts_originals as original
from utils.errors import InputError

pytest.importorskip("h5py")
IDS = [45, 42, 49, 49, 52, 11, 60, 148]
ONES = np.ones(8, "f4")


@pytest.fixture(scope="module")
def arrays():
    return original.weights()


@pytest.fixture
def checkpoint(tmp_path, arrays):
    return original.write(tmp_path / "voice", arrays)


@pytest.mark.parametrize("scope", ["tf_fast_speech2/", "tf_fast_speech2_1/", ""])
def test_the_imported_voice_gives_the_numbers_of_the_original(tmp_path, arrays, scope):
    model = load_model(original.write(tmp_path / "voice", arrays, scope=scope).parent)
    mel, durations, f0, energy = original.Network(arrays).speak(IDS)
    out = model.network.infer(torch.tensor([IDS]), torch.tensor([len(IDS)]))
    assert out.durations[0].tolist() == durations.tolist()
    assert 5 < sum(durations) < original.ROWS
    np.testing.assert_allclose(out.mel[0].T.numpy(), mel * math.log(10), atol=1e-4)
    np.testing.assert_allclose(out.pitch[0].numpy(), f0, rtol=1e-4)
    np.testing.assert_allclose(out.energy[0].numpy(), energy.clip(min=0), rtol=1e-4, atol=1e-4)


def test_the_voice_knows_its_mel_and_reads_text_with_its_ids(checkpoint):
    model = load_model(checkpoint)
    expected = MelConfig(f_min=80.0, f_max=7600.0, log_floor=1e-10, n_mels=original.N_MELS)
    assert model.mel == expected
    spoken = TextFrontend(model.config.preprocess.text, "en-us")("Hello, you!")
    symbols = ["pad", *"-!'(),.:;? ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"]
    ids = [*(symbols.index(char) for char in "hello, you!"), 148]
    assert model.assets.vocabulary.ids(spoken.phones) == ids


def test_every_name_of_a_checkpoint_has_another_place(arrays):
    own = [translated_name(f"layer/tf_fast_speech2/{name}") for name in arrays]
    assert all(own)
    assert len(set(own)) == len(own)
    assert translated_name("gst/tf_fast_speech2/gst/kernel:0") == "gst/tf_fast_speech2/gst/kernel:0"


SYMBOLS = "embeddings/charactor_embeddings/weight:0"


def test_other_symbols_are_refused(tmp_path, arrays):
    with pytest.raises(InputError, match="has 100 symbols, expected the 149 of tensorflowtts_engl"):
        load_model(original.write(tmp_path, {**arrays, SYMBOLS: arrays[SYMBOLS][:100]}).parent)


FAULTS = [
    ({"decoder/speaker_fc/bias:0": ONES}, "left over: decoder/tf_fast_speech2/decoder/speaker_fc"),
    ({"decoder/project_compatible_decoder/bias:0": ONES}, "left over: decoder/tf_fast_speech2"),
    ({"vocoder/kernel:0": ONES}, "left over: vocoder/tf_fast_speech2/vocoder"),
    ({"mel_before/kernel:0": None}, "mel_linear.weight is missing"),
    (
        {"encoder/layer_._1/attention/self/key/kernel:0": None},
        "missing: encoder.layers.1.attention.qkv",
    ),
    ({"f0_embeddings/bias:0": None}, "pitch.embedding.bias"),
    ({"f0_embeddings/kernel:0": None}, "pitch.embedding.weight is missing"),
    ({"encoder/layer_._0/intermediate/conv1d_1/kernel:0": None}, "conv_1.weight is missing"),
    ({"mel_before/kernel:0": np.array(1, "f4")}, r"mel_linear.weight is of the shape \(\)"),
    ({SYMBOLS: np.array(1, "f4")}, r"phone_embedding.weight is of the shape \(\)"),
    ({"mel_before/bias:0": np.full(10, np.nan, "f4")}, "NaN"),
    ({"mel_before/kernel:0": ONES}, "mel_linear.weight has 8 mel bands"),
    ({"mel_before/bias:0": ONES}, "linear.bias has 8 mel bands, and stats.npy 10"),
    ({"postnet/batch_norm_._4/beta:0": ONES}, "norms.4.bias has 8 mel bands"),
    (
        {"decoder/layer_._0/attention/self/key/bias:0": np.ones(9, "f4")},
        r"missing: .*attention.qkv.bias; left over: .*attention.key",
    ),
]


@pytest.mark.parametrize(("change", "message"), FAULTS)
def test_what_does_not_fit_is_named(tmp_path, arrays, change, message):
    changed = {name: value for name, value in {**arrays, **change}.items() if value is not None}
    with pytest.raises(InputError, match=message):
        load_model(original.write(tmp_path, changed))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("stats.npy", "no stats.npy in its folder; copy"),
        ("stats_f0.npy", "no stats_f0.npy in its folder"),
        ("config.yml", "no yaml file with fastspeech2_params"),
    ],
)
def test_a_missing_file_is_named(checkpoint, file, message):
    (checkpoint.parent / file).unlink()
    with pytest.raises(InputError, match=message):
        load_model(checkpoint)


def test_the_newest_of_several_is_read(tmp_path, arrays):
    original.write(tmp_path, arrays, "model-5000.h5")
    original.write(tmp_path, arrays, "fastspeech2-150k.h5")
    assert load_model(tmp_path).step == 150000
    (tmp_path / "fastspeech2-150k.h5").rename(tmp_path / "a.h5")
    (tmp_path / "model-5000.h5").rename(tmp_path / "b.h5")
    with pytest.raises(InputError, match="several models"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("decoder_hidden_act", "relu", "encoder_hidden_act and decoder_hidden_act must be equal"),
        ("decoder_hidden_act", ["relu"], "must be equal"),
        ("encoder_num_attention_heads", None, r"encoder_num_attention_heads is missing"),
    ],
)
def test_a_setting_that_cannot_be_is_named(checkpoint, key, value, message):
    path = checkpoint.with_name("config.yml")
    settings = yaml.safe_load(path.read_text())
    params = {**settings["fastspeech2_params"], key: value}
    settings["fastspeech2_params"] = {k: v for k, v in params.items() if v is not None}
    path.write_text(yaml.safe_dump(settings))
    with pytest.raises(InputError, match=rf"config\.yml: .*{message}"):
        load_model(checkpoint)


def test_without_h5py_the_message_names_the_package(checkpoint, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match="tensorflowtts"):
        load_model(checkpoint)
