import re
from copy import deepcopy
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from models.checkpoint.importers.fastspeech2_ming024 import (
    by_id,
    stat_of,
    translated,
    vocabulary_of,
)
from models.checkpoint.loading import load_model
from models.synthesizer.synthesizer import Synthesizer
from modules.layers.transformer import sinusoids
from modules.mel import MelConfig
from processors.dataset.statistics import Stat
from processors.text.symbols import ARPABET, PAUSES
from tests.models.checkpoint.importers import fastspeech2_originals as theirs
from tests.models.checkpoint.importers.reading import Command, read_foreign
from utils.errors import InputError
from utils.files import write_json

PITCH, ENERGY = [-2.91, 11.4, 207.6, 46.77], [-1.43, 8.18, 37.3, 26.0]  # min, max, mean, std
TEXTS = ("HH AH0 L OW1 <sp> W ER1 L D", "AH0", "DH AH0 <sil> K AE1 T " * 12)
check = partial(theirs.check_spoken, TEXTS)
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
MODEL = theirs.SIZES | {"multi_speaker": False, "vocoder": {"speaker": "LJSpeech"}}
STATS = {"pitch": PITCH, "energy": ENERGY}


def write(root, tensors, place=".", preprocess=PREPROCESS, model=MODEL, stats=STATS):
    """A model with an older checkpoint and another file; the folder of the weights is `place`."""
    # the numbers of an optimizer, among them a learning rate of NumPy's
    optimizer = {"state": {0: {"step": 5}}, "param_groups": [{"lr": np.float64(1e-3)}]}
    others = {name: tensor.new_zeros(()).expand(tensor.shape) for name, tensor in tensors.items()}
    others |= {name: tensor for name, tensor in tensors.items() if "position" in name}
    (root / place).mkdir(parents=True, exist_ok=True)
    for name, content in (("100000", others), ("900000", tensors), ("best", others)):
        torch.save({"model": content, "optimizer": optimizer}, root / place / f"{name}.pth.tar")
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
    return theirs.checkpoint(n_rows=361)


@pytest.fixture(scope="module")
def light(tensors):
    return theirs.without_postnet(tensors)


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
    model = load_model(write(tmp_path, light, preprocess=changed(("mel", "mel_fmax"), None)))
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
    check(model, tensors, levels=theirs.Levels(*levels))


def test_values_in_hz_with_logarithmic_bins(tmp_path):
    tensors = theirs.checkpoint(n_rows=361, ranges=torch.tensor([[80.0, 400.0], [-1.5, 2.5]]))
    low, high = np.log(80), np.log(400)
    bins = torch.linspace(low, high, len(tensors["variance_adaptor.pitch_bins"])).exp()
    tensors["variance_adaptor.pitch_bins"] = bins
    tensors["variance_adaptor.pitch_predictor.linear_layer.weight"] *= 80
    tensors["variance_adaptor.pitch_predictor.linear_layer.bias"] += 200
    embedding = theirs.SIZES["variance_embedding"] | {"pitch_quantization": "log"}
    settings = {"preprocess": changed(("pitch", "normalization"), False)}
    settings["model"] = MODEL | {"variance_embedding": embedding}
    stats = STATS | {"pitch": [80.0, 400.0, 0, 1]}
    model = load_model(write(tmp_path, tensors, **settings, stats=stats))
    check(model, tensors)
    ids = model.vocabulary.ids(TEXTS[0].split())
    out = model.network.infer(torch.tensor([ids]), torch.tensor([len(ids)]))
    expected = theirs.synthesise(tensors, ids).contours["pitch"][0]
    assert float(expected.std()) > 20  # several bins are met
    torch.testing.assert_close(out.pitch[0], expected.clamp(min=0), rtol=1e-4, atol=1e-3)
    assert model.network.scales() == {"pitch.edges": "log", "energy.edges": "linear"}


def test_normalised_values_are_looked_up_in_linear_bins_in_any_case(tmp_path, tensors):
    kinds = {"pitch_quantization": "log", "energy_quantization": "log"}
    embedding = theirs.SIZES["variance_embedding"] | kinds
    model = load_model(write(tmp_path, tensors, model=MODEL | {"variance_embedding": embedding}))
    check(model, tensors)


def test_several_speakers(tmp_path):
    tensors = theirs.checkpoint(n_rows=361, n_speakers=3)
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
def test_an_only_speaker_has_a_vector_and_rows_tell_of_pinyin(tmp_path, n_rows, n_speakers):
    tensors = theirs.checkpoint(n_rows, n_speakers)
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


FAULTS = [  # file, content, message
    ("stats.json", '{"pitch": [1, 2, 3]}', r"stats.json: pitch: mean, std, min and max are"),
    ("stats.json", '{"pitch": [1, 2, 3, 0]}', r"stats.json: pitch: .* std > 0"),
    ("model.yaml", "a: [", r"model.yaml: not YAML"),
    ("model.yaml", "- a", r"model.yaml: expected keys with values, found list"),
    ("model.yaml", "2020-13-45: 1", r"model.yaml: not YAML: month must be in 1..12"),
    ("model.yaml", "max_seq_len: 9", r"model.yaml: model.transformer.encoder_layer, model.tr"),
    (
        "model.yaml",
        MODEL | {"transformer": {"encoder_head": 2}},
        r"model.yaml: model.transformer.encoder_layer, .*, model.transformer.encoder_hidden",
    ),
    (
        "model.yaml",
        MODEL | {"transformer": theirs.SIZES["transformer"] | {"encoder_head": "2"}},
        r"model.yaml: model.transformer.encoder_head is \"2\", expected a whole number",
    ),
    ("model.yaml", "# \xe9", r"model.yaml: not UTF-8 at byte 2; save it as UTF-8$"),
    ("preprocess.yaml", "dataset: a", r"preprocess.yaml: preprocessing.pitch.feature, .* is missi"),
    (
        "preprocess.yaml",
        changed(("stft", "hop_length"), "short"),
        r"yaml: preprocess\.hop_length is \"short\"",
    ),
]


@pytest.mark.parametrize(("name", "content", "message"), FAULTS)
def test_a_broken_file_is_named(tmp_path, light, name, content, message):
    text = content if isinstance(content, str) else yaml.safe_dump(content)
    (write(tmp_path, light) / name).write_text(text, encoding="latin-1")
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
    voice = Synthesizer(write(tmp_path, light, preprocess=changed(("text", "language"), "zh")))
    message = r"the lexicon is English, the language of the text is 'cmn'"
    with pytest.raises(InputError, match=message):
        voice("Hello")


FILE = Path("stats.json")
SAMPLES = {
    **{"AA": 64, "AA0": 65, "AE1": 70, "AH0": 73, "B": 88, "CH": 89, "ER2": 99, "IY1": 113},
    **{"NG": 120, "S": 131, "T": 133, "UW": 139, "ZH": 147},
    **{"<sp>": 148, "<spn>": 149, "<sil>": 150},
}


def test_phones_have_the_ids_of_amphion_and_pinyin_moves_the_silences_alone():
    with_pinyin, without = vocabulary_of(361, FILE), vocabulary_of(152, FILE)
    assert without.ids([*SAMPLES]) == [*SAMPLES.values()]
    sentence = ["HH", "AH0", "L", "OW1", "<sp>", "W", "ER1", "L", "D"]
    assert without.ids(sentence) == [106, 73, 117, 123, 148, 144, 98, 117, 90]
    assert with_pinyin.ids(["<sp>", "<spn>", "<sil>"]) == [357, 358, 359]
    assert with_pinyin.symbols[:148] == without.symbols[:148]


@pytest.mark.parametrize("n_rows", [152, 361])
def test_no_character_or_syllable_can_be_taken_for_a_phone(n_rows):
    symbols = vocabulary_of(n_rows, FILE).symbols
    assert len(symbols) == n_rows
    others = set(symbols) - set(ARPABET)
    assert set(ARPABET) < set(symbols)
    assert all(name.startswith("<") and name.endswith(">") for name in others)
    assert others & set(PAUSES) == {"<pad>", "<sp>", "<sil>"}  # no row is a class of punctuation


@pytest.mark.parametrize("n_rows", [0, 151, 153, 360])
def test_other_tables_are_not_guessed_at(n_rows):
    with pytest.raises(InputError, match=rf"^stats.json: .* has {n_rows} rows, .* of 152 .* 361"):
        vocabulary_of(n_rows, FILE)


def test_queries_keys_and_values_are_joined_in_this_order_or_left_for_the_strict_check():
    name = "encoder.layer_stack.3.slf_attn.w_{}s.bias"
    parts = {name.format(part): torch.full((2,), i) for i, part in enumerate("vqk")}
    joined = translated(parts)[0]
    assert list(joined) == ["encoder.layers.3.attention.qkv.bias"]
    assert joined["encoder.layers.3.attention.qkv.bias"].tolist() == [1, 1, 2, 2, 0, 0]
    del parts[name.format("v")]
    left = {f"encoder.layers.3.attention.{part}.bias" for part in "qk"}
    assert translated(parts)[0].keys() == left
    parts[name.format("v")] = torch.zeros(3)
    assert len(translated(parts)[0]) == 3


def test_sinusoids_are_left_out_and_learnt_positions_left_for_the_strict_check():
    names = ["encoder.position_enc", "decoder.position_enc"]
    sines = {name: sinusoids(6, 4)[None] for name in names}
    tensors, unused = translated(sines | {names[0]: torch.ones(1, 6, 4)})
    assert list(tensors) == ["encoder.positions"]
    assert unused == ("decoder.positions: sinusoids, which are computed",)


def test_the_vector_of_a_single_speaker_is_added_to_the_last_layer_of_the_encoder():
    bias = "{}.layer_stack.{}.pos_ffn.layer_norm.bias"
    layers = [("encoder", 9), ("encoder", 10), ("decoder", 11)]
    tensors = {bias.format(*layer): torch.zeros(2) for layer in layers}
    found, _ = translated(tensors | {"speaker_emb.weight": torch.tensor([[1.0, 2.0]])})
    assert found["encoder.layers.10.conv_norm.bias"].tolist() == [1, 2]
    assert not found["encoder.layers.9.conv_norm.bias"].any()
    assert "speaker_embedding.weight" not in found


@pytest.mark.parametrize(
    "ids",
    [{"a": 0, "b": 2}, {"a": 0, "b": "1"}, {"a": 0}, {"a": 0, "b": 1, "c": 1}, {"a": [0]}, ["a"]],
)
def test_names_are_in_the_order_of_ids_and_those_with_gaps_or_of_other_types_are_refused(ids):
    assert by_id({"b": 1, "c": 2, "a": 0}, 3, FILE) == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"^stats.json: expected names with the ids 0 to 1, found"):
        by_id(ids, 2, FILE)


def test_statistics_must_be_finite_and_vary():
    assert stat_of([200, 30.0, 80, 400], FILE, "pitch") == Stat(200.0, 30.0, 80.0, 400.0)
    for numbers in ([200, 0, 80, 400], [200, 30, 80, float("inf")], [200, None, 80, 400], [1], 3):
        with pytest.raises(InputError, match=r"^stats.json: pitch: .* expected finite numbers and"):
            stat_of(numbers, FILE, "pitch")
