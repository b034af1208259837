import re
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch
import yaml

from models.checkpoint.loading import load_model
from models.synthesizer.synthesizer import Synthesizer
from modules.mel import MelConfig
from tests.models.checkpoint.importers.fastspeech2_originals import (
    SIZES,
    Levels,
    check_spoken,
    checkpoint,
    synthesise,
    without_postnet,
)
from tests.models.checkpoint.importers.reading import Command, read_foreign
from utils.errors import InputError
from utils.files import write_json

PITCH, ENERGY = [-2.91, 11.4, 207.6, 46.77], [-1.43, 8.18, 37.3, 26.0]  # min, max, mean, std
TEXTS = ("HH AH0 L OW1 <sp> W ER1 L D", "AH0", "DH AH0 <sil> K AE1 T " * 12)
check = partial(check_spoken, TEXTS)
PREPROCESS = {
    "dataset": "LJSpeech",
    "path": {
        **{"corpus_path": "/elsewhere/LJSpeech-1.1", "raw_path": "./raw_data/LJSpeech"},
        "lexicon_path": "lexicon/librispeech-lexicon.txt",
        "preprocessed_path": "./preprocessed_data/LJSpeech",
    },
    "preprocessing": {
        "val_size": 512,
        "text": {"text_cleaners": ["english_cleaners"], "language": "en"},
        "audio": {"sampling_rate": 22050, "max_wav_value": 32768.0},
        "stft": {"filter_length": 1024, "hop_length": 256, "win_length": 1024},
        "mel": {"n_mel_channels": 80, "mel_fmin": 0, "mel_fmax": 8000},
        "pitch": {"feature": "phoneme_level", "normalization": True},
        "energy": {"feature": "phoneme_level", "normalization": True},
    },
}
MODEL = SIZES | {"multi_speaker": False, "vocoder": {"model": "HiFi-GAN", "speaker": "LJSpeech"}}


STATS = {"pitch": PITCH, "energy": ENERGY}


def write(root, tensors, place=".", preprocess=PREPROCESS, model=MODEL, stats=STATS):
    """A model with an older checkpoint and another file; the folder of the weights is `place`."""
    # the numbers of an optimizer, among them a learning rate of NumPy's
    optimizer = {"state": {0: {"step": 5}}, "param_groups": [{"lr": np.float64(1e-3)}]}
    others = {
        n: t if "position" in n else t.new_zeros(()).expand(t.shape) for n, t in tensors.items()
    }
    (root / place).mkdir(parents=True, exist_ok=True)
    for name, content in (("100000", others), ("900000", tensors), ("best", others)):
        saved = {"model": content, "optimizer": optimizer}
        torch.save(saved, root / place / f"{name}.pth.tar")
    for name, values in (("preprocess", preprocess), ("model", model), ("train", {})):
        (root / f"{name}.yaml").write_text(yaml.safe_dump(values))
    write_json(root / "stats.json", stats)
    write_json(root / "speakers.json", {"LJSpeech": 0})
    return root


def changed(path, value):
    """PREPROCESS with one value of its section `preprocessing` changed."""
    values = deepcopy(PREPROCESS)
    section = values["preprocessing"]
    for name in path[:-1]:
        section = section[name]
    section[path[-1]] = value
    return values


@pytest.fixture(scope="module")
def tensors():
    return checkpoint(n_rows=361)


@pytest.fixture(scope="module")
def light(tensors):
    return without_postnet(tensors)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, tensors):
    return write(tmp_path_factory.mktemp("ming024"), tensors)


@pytest.mark.parametrize("place", [".", "ckpt"])
def test_the_newest_checkpoint_gives_the_originals_numbers(tmp_path, tensors, place):
    model = load_model(write(tmp_path, tensors, place) / place)
    check(model, tensors)
    assert model.step == 900000
    assert model.vocabulary.ids(["AA1", "<sp>", "<spn>", "<sil>"]) == [66, 357, 358, 359]


def test_one_checkpoint_can_be_named_also_from_inside(tmp_path, tensors, monkeypatch):
    weights = write(tmp_path, tensors, "ckpt") / "ckpt"  # the settings are one folder up
    check(load_model(weights / "900000.pth.tar"), tensors)
    assert load_model(weights / "100000.pth.tar").step == 100000
    assert load_model(weights / "best.pth.tar").step is None
    monkeypatch.chdir(weights)
    check(load_model("./900000.pth.tar"), tensors)


def test_the_settings_are_imported(trained):
    model = load_model(trained)
    assert [tuple(speaker) for speaker in model.speakers] == [("LJSpeech", "en-us")]
    pitch = model.assets.stats.speakers["LJSpeech"].f0_phone
    assert (pitch.mean, pitch.std) == (207.6, 46.77)
    assert (pitch.min, pitch.max) == pytest.approx((207.6 - 2.91 * 46.77, 207.6 + 11.4 * 46.77))
    assert model.mel == MelConfig()
    assert model.config.dataset == ("LJSpeech",)
    assert read_foreign(trained).unused[-1] == "optimizer: training starts with a new one"


def test_a_band_without_an_upper_edge_ends_at_half_the_rate(tmp_path, light):
    preprocess = changed(("mel", "mel_fmax"), None)
    model = load_model(write(tmp_path, light, preprocess=preprocess))
    assert model.mel.f_max == 11025


def test_energy_control_acts_on_energy_alone(trained):
    model = load_model(trained)
    ids = torch.tensor([model.vocabulary.ids(TEXTS[0].split())])
    lengths = torch.tensor([ids.shape[1]])
    plain = model.network.infer(ids, lengths)
    louder = model.network.infer(ids, lengths, energy_control=1.3)
    torch.testing.assert_close(louder.energy, 1.3 * plain.energy, rtol=1e-4, atol=1e-3)
    assert louder.pitch.equal(plain.pitch)


@pytest.mark.parametrize("levels", [("phone", "frame"), ("frame", "phone"), ("frame", "frame")])
def test_values_per_frame(tmp_path, tensors, levels):
    preprocess = deepcopy(PREPROCESS)
    for name, level in zip(("pitch", "energy"), levels, strict=True):
        feature = {"phone": "phoneme_level", "frame": "frame_level"}[level]
        preprocess["preprocessing"][name]["feature"] = feature
    model = load_model(write(tmp_path, tensors, preprocess=preprocess))
    check(model, tensors, levels=Levels(*levels))


def test_values_in_hz_with_logarithmic_bins(tmp_path):
    tensors = checkpoint(n_rows=361, ranges=torch.tensor([[80.0, 400.0], [-1.5, 2.5]]))
    low, high = np.log(80), np.log(400)
    bins = torch.linspace(low, high, len(tensors["variance_adaptor.pitch_bins"])).exp()
    tensors["variance_adaptor.pitch_bins"] = bins
    tensors["variance_adaptor.pitch_predictor.linear_layer.weight"] *= 80
    tensors["variance_adaptor.pitch_predictor.linear_layer.bias"] += 200
    embedding = SIZES["variance_embedding"] | {"pitch_quantization": "log"}
    settings = {"preprocess": changed(("pitch", "normalization"), False)}
    settings["model"] = MODEL | {"variance_embedding": embedding}
    stats = STATS | {"pitch": [80.0, 400.0, 0, 1]}
    model = load_model(write(tmp_path, tensors, **settings, stats=stats))
    check(model, tensors)
    ids = model.vocabulary.ids(TEXTS[0].split())
    out = model.network.infer(torch.tensor([ids]), torch.tensor([len(ids)]))
    expected = synthesise(tensors, ids).contours["pitch"][0]
    assert float(expected.std()) > 20  # several bins are met
    torch.testing.assert_close(out.pitch[0], expected.clamp(min=0), rtol=1e-4, atol=1e-3)
    assert model.network.scales() == {"pitch.edges": "log", "energy.edges": "linear"}


def test_bins_of_normalised_values_are_looked_up_among_these_whatever_the_settings(
    tmp_path, tensors
):
    kinds = {"pitch_quantization": "log", "energy_quantization": "log"}
    embedding = SIZES["variance_embedding"] | kinds
    model = load_model(write(tmp_path, tensors, model=MODEL | {"variance_embedding": embedding}))
    check(model, tensors)


def test_several_speakers(tmp_path):
    tensors = checkpoint(n_rows=361, n_speakers=3)
    write(tmp_path, tensors, model=MODEL | {"multi_speaker": True})
    speakers = tmp_path / "speakers.json"
    with pytest.raises(InputError, match=r"speakers.json: expected names with the ids 0 to 2"):
        load_model(tmp_path)
    write_json(speakers, {"p225": 2, "p226": 0, "p227": 1})
    model = load_model(tmp_path)
    assert [speaker.name for speaker in model.speakers] == ["p226", "p227", "p225"]
    for speaker in range(3):
        check(model, tensors, speaker)
    speakers.unlink()
    with pytest.raises(InputError, match=r"no speakers.json in its folder; copy that"):
        load_model(tmp_path)


@pytest.mark.parametrize(("n_rows", "n_speakers"), [(361, 1), (152, 0)])
def test_an_only_speaker_s_vector_counts_and_rows_tell_whether_pinyin_is_in_it(
    tmp_path, n_rows, n_speakers
):
    tensors = checkpoint(n_rows, n_speakers)
    check(load_model(write(tmp_path, tensors)), tensors, speaker=0 if n_speakers else None)


@pytest.mark.parametrize("section", ["model", "optimizer"])
def test_a_file_that_would_run_code_is_refused(tmp_path, light, section):
    root = write(tmp_path / "model", light)
    saved = {"model": dict(light), "optimizer": {"lr": np.float64(1)}}
    saved[section]["extra"] = Command(tmp_path / "was_run")
    torch.save(saved, root / "900000.pth.tar")
    with pytest.raises(InputError, match=r"900000.pth.tar: refused: it names \w+\.system"):
        load_model(root)
    assert not (tmp_path / "was_run").exists()


def test_numbers_of_numpy_are_read_as_old_and_new_versions_write_them(tmp_path, tensors):
    root = write(tmp_path, tensors)
    weights = root / "900000.pth.tar"
    zipped = weights.read_bytes()
    saved = {"model": tensors, "optimizer": {"lr": np.float64(0.5)}}
    torch.save(saved, weights, _use_new_zipfile_serialization=False)
    plain = weights.read_bytes()
    assert plain != zipped
    for module in (b"numpy._core", b"numpy.core"):
        named, count = re.subn(rb"numpy\._?core(?=\.multiarray\nscalar)", module, plain)
        assert count > 0
        weights.write_bytes(named)
        check(load_model(root), tensors)


@pytest.mark.parametrize("name", ["model.yaml", "preprocess.yaml", "stats.json"])
def test_a_missing_file_is_named(tmp_path, light, name):
    (write(tmp_path, light) / name).unlink()
    with pytest.raises(InputError, match=rf"no {name} in its folder; copy that"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("stats.json", '{"pitch": [1, 2, 3]}', r"stats.json: pitch: mean, std, min and max are"),
        ("stats.json", '{"pitch": [1, 2, 3, 0]}', r"stats.json: pitch: .* std > 0"),
        ("model.yaml", "a: [", r"model.yaml: not YAML"),
        ("model.yaml", "- a", r"model.yaml: expected keys with values, found list"),
        ("model.yaml", "2020-13-45: 1", r"model.yaml: not YAML: month must be in 1..12"),
        ("model.yaml", "max_seq_len: 9", r"model.yaml: model.transformer.encoder_layer, model.tr"),
        (
            "model.yaml",
            yaml.safe_dump(MODEL | {"transformer": {"encoder_head": 2}}),
            r"model.yaml: model.transformer.encoder_layer, .*, model.transformer.encoder_hidden",
        ),
        (
            "model.yaml",
            yaml.safe_dump(MODEL | {"transformer": SIZES["transformer"] | {"encoder_head": "2"}}),
            r"model.yaml: model.transformer.encoder_head is \"2\", expected a whole number",
        ),
        (
            "preprocess.yaml",
            "dataset: a",
            r"preprocess.yaml: preprocessing.pitch.feature, .* is missi",
        ),
        (
            "preprocess.yaml",
            yaml.safe_dump(changed(("stft", "hop_length"), "short")),
            r"yaml: preprocess\.hop_length is \"short\"",
        ),
        ("model.yaml", "# \xe9", r"model.yaml: not UTF-8 at byte 2; save it as UTF-8$"),
    ],
)
def test_a_broken_file_is_named(tmp_path, light, name, content, message):
    (write(tmp_path, light) / name).write_text(content, encoding="latin-1")
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


def test_a_file_that_is_none_of_its_kind_is_named(tmp_path, light):
    root = write(tmp_path, light)
    torch.save(light, root / "900000.pth.tar")
    with pytest.raises(InputError, match=r"900000.pth.tar: model: expected tensors by name"):
        load_model(root)
    (root / "900000.pth.tar").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"900000.pth.tar: not a file of tensors"):
        load_model(root)


def test_a_folder_with_a_checkpoint_below_it_is_none(tmp_path, tensors):
    write(tmp_path / "LJSpeech", tensors)
    message = r"^\S*: neither an experiment .*; of one in a folder below it"
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)
    check(load_model(tmp_path / "LJSpeech"), tensors)


def test_several_models_without_a_step_in_their_names_are_an_error(tmp_path, tensors):
    root = write(tmp_path, tensors)
    (root / "100000.pth.tar").unlink()
    (root / "900000.pth.tar").rename(root / "last.pth.tar")
    with pytest.raises(InputError, match=r"several models in it \(best.pth.tar, last.pth.tar\); g"):
        load_model(root)
    check(load_model(root / "last.pth.tar"), tensors)


def test_the_words_of_its_speech_cover_the_audio(trained):
    voice = Synthesizer(trained, overrides=["inference.griffin_lim_iterations=2"])
    speech = voice("Hello, my world!")
    assert " ".join(speech.phone_names) == "HH AH0 L OW1 <sp> M AY1 W ER1 L D"
    assert [word.text for word in speech.words] == ["Hello", "my", "world"]
    assert speech.words[0].start_s == 0
    assert speech.words[-1].end_s == pytest.approx(speech.seconds)


def test_a_voice_of_another_language_says_what_it_cannot_read(tmp_path, light):
    preprocess = changed(("text", "language"), "zh")
    voice = Synthesizer(write(tmp_path, light, preprocess=preprocess))
    message = r"the lexicon is English, the language of the text is 'cmn'"
    with pytest.raises(InputError, match=message):
        voice("Hello")
