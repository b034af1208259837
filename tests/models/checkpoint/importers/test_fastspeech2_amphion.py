import json
from functools import partial
from itertools import pairwise

import pytest
import torch
from safetensors.torch import save_file

from models.base.registry import find_model
from models.checkpoint.foreign import find
from models.checkpoint.loading import load_model
from models.synthesizer.synthesizer import Synthesizer
from models.training.initialisation import initialise
from models.tts.fastspeech2 import FastSpeech2Task
from processors.text.voice_phones import arpabet_vocabulary
from tests.models.checkpoint.importers import fastspeech2_originals as theirs
from tests.models.checkpoint.importers.reading import read_foreign, write_as_json5
from utils.errors import InputError
from utils.files import write_json

NEWEST = "epoch-0125_step-0097902_loss-1.074404"
PITCH = {"mean": 207.58, "std": 46.75, "min": 71.18, "max": 740.46}
ENERGY = {"mean": 37.32, "std": 26.04, "min": 0.056, "max": 250.48}
# with the stress and the silences that a forced aligner gives
TEXTS = {
    "words": "HH AH0 L OW1 <sp> W ER1 L D",
    "one phone": "AH0",
    "silences": "DH AH0 <sil> <spn> K AE1 T <sp> S AE1 T",
    "longer than the table": "DH AH0 K W IH1 K B R AW1 N F AA1 K S " * 5,
}
check = partial(theirs.check_spoken, TEXTS.values())


def args_json(**preprocess):
    """The values in args.json of Amphion; base_config is in it already."""
    values = {
        "base_config": "config/fs2.json",
        "dataset": ["LJSpeech"],
        "model": theirs.SIZES | {"text_token_num": 512},
        "model_type": "FastSpeech2",
        "preprocess": {
            **{"sample_rate": 22050, "n_fft": 1024, "win_size": 1024, "hop_size": 256},
            **{"n_mel": 80, "fmin": 0, "fmax": 8000, "mel_extract_mode": "taco"},
            **{"use_frame_pitch": False, "use_frame_energy": False, "processed_dir": "/elsewhere"},
            **{"pitch_extractor": "dio", "f0_min": 71, "f0_max": 800},
            **preprocess,
        },
        "train": {"multi_speaker_training": False, "random_seed": 10086},
    }
    return json.dumps(values)


def statistics(folder, names=("LJSpeech_LJSpeech",), level="phone_", factor=1.0):
    for kind, numbers in (("pitches", PITCH), ("energys", ENERGY)):
        position = {name: factor * value for name, value in numbers.items()}
        position["median"] = 0.0
        # each holds all numbers, and two of them count
        voiced, total = position | {"min": 1.0, "max": 2.0}, position | {"mean": 3.0, "std": 4.0}
        one = {"voiced_positions": voiced, "total_positions": total}
        write_json(folder / f"{level}{kind}/statistics.json", dict.fromkeys(names, one))


def write(root, tensors, weights="pytorch_model.bin", prefix="", **preprocess):
    """An experiment whose older checkpoints lack weights, and other files between them."""
    others = {"mel_linear.bias": torch.zeros(80)}
    for folder, content in {
        "epoch-0005_step-0009999_loss-9.500000": others,
        "final_epoch-0126_step-0097000_loss-0.900000": others,
        NEWEST: {prefix + name: tensor for name, tensor in tensors.items()},
    }.items():
        path = root / "checkpoint" / folder / weights
        path.parent.mkdir(parents=True)
        (save_file if weights.endswith("safetensors") else torch.save)(content, path)
    (root / "checkpoint" / "epoch-9999_step-9999999_loss-0.000001").mkdir()  # nothing in it
    (root / "checkpoint" / "notes.txt").touch()
    (root / "args.json").write_text(args_json(**preprocess))
    statistics(root / "LJSpeech")
    return root


@pytest.fixture(scope="module")
def tensors():
    return theirs.checkpoint(n_rows=152)


@pytest.fixture(scope="module")
def light(tensors):
    return theirs.without_postnet(tensors)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory, tensors):
    return write(tmp_path_factory.mktemp("amphion"), tensors)


@pytest.mark.parametrize("place", [".", "checkpoint", f"checkpoint/{NEWEST}", "file"])
def test_an_experiment_and_its_checkpoints_give_the_originals_numbers(experiment, tensors, place):
    place = f"checkpoint/{NEWEST}/pytorch_model.bin" if place == "file" else place
    model = load_model(experiment / place)
    check(model, tensors)
    assert model.step == 97902


@pytest.mark.parametrize("weights", ["pytorch_model.bin", "model.safetensors"])
def test_weights_of_a_parallel_run_in_either_format(tmp_path, tensors, weights):
    check(load_model(write(tmp_path, tensors, weights, prefix="module.")), tensors)


def test_the_settings_and_bins_are_imported(tmp_path, tensors):
    write_as_json5(write(tmp_path, tensors) / "args.json")
    model = load_model(tmp_path)
    assert model.network.pitch.edges.equal(tensors["variance_adaptor.pitch_bins"])
    assert model.mel.padding == "centre"
    assert model.config.preprocess.text.pauses == "sp"
    assert model.config.preprocess.pitch_extractor == "pyworld"
    assert [tuple(speaker) for speaker in model.speakers] == [("LJSpeech", "en-us")]
    (stats,) = model.assets.stats.speakers.values()
    pitch = stats.f0_phone
    assert (pitch.mean, pitch.std, pitch.min, pitch.max) == tuple(PITCH.values())


def test_prosody_is_reported_in_hz_and_controls_are_factors_on_it(experiment, tensors):
    model = load_model(experiment)
    ids = model.vocabulary.ids(TEXTS["words"].split())
    expected = theirs.synthesise(tensors, ids)
    batch = torch.tensor([ids]), torch.tensor([len(ids)])
    out = model.network.infer(*batch)
    hz = expected.contours["pitch"][0] * PITCH["std"] + PITCH["mean"]
    torch.testing.assert_close(out.pitch[0], hz, rtol=1e-5, atol=1e-3)
    energy = (expected.contours["energy"][0] * ENERGY["std"] + ENERGY["mean"]).clamp(min=0)
    torch.testing.assert_close(out.energy[0], energy, rtol=1e-5, atol=1e-3)
    higher = model.network.infer(*batch, pitch_control=1.5).pitch[0]
    torch.testing.assert_close(higher, 1.5 * hz, rtol=1e-5, atol=1e-3)


def test_everything_but_the_sinusoids_is_used(experiment):
    imported = read_foreign(experiment)
    unused = [line.split(":")[0] for line in imported.unused]
    assert unused == ["encoder.positions", "decoder.positions"]
    assert imported.tensors.keys() == load_model(experiment).network.state_dict().keys()


def test_values_per_frame(tmp_path, tensors):
    root = write(tmp_path, tensors, use_frame_energy=True)
    statistics(root / "LJSpeech", level="", factor=2.0)
    model = load_model(root)
    check(model, tensors, levels=theirs.Levels("phone", "frame"))
    assert float(model.network.energy.norm.mean) == pytest.approx(2 * ENERGY["mean"])
    assert float(model.network.pitch.norm.mean) == pytest.approx(PITCH["mean"])


@pytest.mark.parametrize("names", [("LJSpeech_LJSpeech",), ("LJSpeech_ann", "LJSpeech_bob")])
def test_several_speakers(tmp_path, names):
    tensors = theirs.checkpoint(n_rows=152, n_speakers=2)
    root = write(tmp_path, tensors)
    statistics(root / "LJSpeech", names)
    with pytest.raises(InputError, match=r"args.json: no spk2id.json in its folder; copy that"):
        load_model(root)
    write_json(root / "spk2id.json", {"LJSpeech_bob": 1, "LJSpeech_ann": 0})
    model = load_model(root)
    assert [speaker.name for speaker in model.speakers] == ["ann", "bob"]
    check(model, tensors, speaker=0)
    check(model, tensors, speaker=1)


def test_statistics_are_asked_for_by_their_place(tmp_path, tensors):
    write(tmp_path, tensors, processed_dir="/" + "x" * 300)  # of another machine
    (tmp_path / "LJSpeech").rename(tmp_path / "moved")
    with pytest.raises(InputError) as error:
        load_model(tmp_path)
    for kind in ("phone_pitches", "phone_energys"):
        assert f"{tmp_path}/LJSpeech/{kind}/statistics.json" in str(error.value)
    (tmp_path / "moved").rename(tmp_path / "LJSpeech")
    check(load_model(tmp_path), tensors)
    (tmp_path / "LJSpeech/phone_pitches/statistics.json").unlink()
    with pytest.raises(InputError, match=r"LJSpeech/phone_pitches/statistics.json missing"):
        load_model(tmp_path)


SYMBOLS = "encoder.src_word_emb.weight"
FAULTS = [  # changes of tensors, None removes one
    ({"gst.weight": torch.ones(1)}, r"does not fit .*args.json: left over: gst.weight$"),
    ({"mel_linear.weight": None}, r"does not fit .*args.json: missing: mel_linear.weight$"),
    (
        {"encoder.layer_stack.1.slf_attn.w_ks.bias": None},
        r"missing: .*1.attention.qkv.bias; left over: .*1.attention.q.bias",
    ),
    (
        {SYMBOLS: torch.zeros(90, theirs.HIDDEN)},
        r"src_word_emb.weight has 90 rows, .* 152 \(Amphion\) or of 361",
    ),
    (
        {"mel_linear.weight": torch.zeros(100, theirs.HIDDEN)},
        r"of another shape: mel_linear.weight \(100, 16\) instead of \(80, 16\)$",
    ),
    ({"encoder.position_enc": torch.ones(5)}, r"left over: encoder.positions"),  # not a table
    ({SYMBOLS: torch.tensor(1.0)}, r"src_word_emb.weight is of the shape \(\)"),
    (
        {"variance_adaptor.energy_bins": torch.ones(0)},
        r"of another shape: .*energy.edges \(0,\) instead of",
    ),
    (
        {"encoder.layer_stack.0.slf_attn.w_qs.weight": torch.ones(16, 8)},
        r"missing: .*0.attention.qkv.weight; left over: .*0.attention.q.weight",
    ),
    ({"speaker_emb.weight": torch.ones(1, 7)}, r"left over: speaker_embedding.weight"),
    (
        {"mel_linear.bias": torch.ones(80, dtype=torch.int32)},
        r"of another type: mel_linear.bias torch.int32 instead of torch.float32$",
    ),
    (
        {"mel_linear.bias": torch.full((80,), torch.nan)},
        r"does not fit .*args.json: with infinity or NaN: mel_linear.bias$",
    ),
    (  # an impossible logarithm
        {"variance_adaptor.pitch_bins": torch.full((theirs.SMALL.n_bins - 1,), torch.nan)},
        r"infinity or NaN: pitch.edges$",
    ),
]


@pytest.mark.parametrize(("change", "message"), FAULTS)
def test_weights_that_do_not_fit_are_refused(tmp_path, light, change, message):
    changed = {n: tensor for n, tensor in (light | change).items() if tensor is not None}
    assert_refused(write(tmp_path, light), changed, message)


def assert_refused(root, tensors, message):
    torch.save(tensors, root / "checkpoint" / NEWEST / "pytorch_model.bin")
    with pytest.raises(InputError, match=message):
        load_model(root)


def test_other_positions_and_a_speaker_without_an_encoder_are_refused(tmp_path, light):
    root, name = write(tmp_path, light), "encoder.position_enc"
    assert_refused(root, light | {name: light[name] * 0.9}, r"left over: encoder.positions")
    alone = {"speaker_emb.weight": torch.ones(1, theirs.HIDDEN), SYMBOLS: light[SYMBOLS]}
    assert_refused(root, alone, r"missing: .*left over: speaker_embedding.weight")


@pytest.mark.parametrize(
    ("preprocess", "message"),
    [
        ({"use_log_scale_pitch": True}, r"use_log_scale_pitch: the logarithm of pitch cannot"),
        ({"use_min_max_norm_mel": True}, r"use_min_max_norm_mel: mels scaled"),
        ({"hop_size": None}, r"args.json: preprocess.hop_length is null, expected a whole number"),
        ({"n_mel": "80"}, r"args.json: preprocess.n_mels is \"80\", expected a whole number"),
    ],
)
def test_settings_that_cannot_be_kept_are_refused(tmp_path, light, preprocess, message):
    with pytest.raises(InputError, match=message):
        load_model(write(tmp_path, light, **preprocess))


@pytest.mark.parametrize(
    "key",
    [
        *("preprocess.mel_extract_mode", "preprocess.fmax"),
        *("model.transformer.encoder_head", "model.variance_embedding.n_bins"),
    ],
)
def test_a_missing_setting_is_named_and_has_no_default(tmp_path, light, key):
    path = write(tmp_path, light) / "args.json"
    path.write_text(path.read_text().replace(f'"{key.split(".")[-1]}"', '"other"'))
    with pytest.raises(InputError, match=rf"args.json: {key} is missing; expected"):
        load_model(tmp_path)


def test_phones_that_are_not_those_of_a_lexicon_are_refused(tmp_path, light):
    root = write(tmp_path, light, phone_extractor="espeak")
    assert load_model(root).step == 97902  # without symbols.dict it is read
    (root / "symbols.dict").touch()
    with pytest.raises(InputError, match=r"phone_extractor: its phones are those of symbols.dict"):
        load_model(root)


def test_statistics_that_are_none_are_refused(tmp_path, light):
    path = write(tmp_path, light) / "LJSpeech/phone_pitches/statistics.json"
    write_json(path, {"LJSpeech_LJSpeech": {"voiced_positions": {"mean": 1.0, "std": 0.0}}})
    with pytest.raises(InputError, match=r"statistics.json: LJSpeech_LJSpeech: mean, std, min and"):
        load_model(tmp_path)
    write_json(path, {"LJSpeech_ann": {}, "LJSpeech_bob": {}})
    message = r"no statistics of LJSpeech_LJSpeech; it has those of .*ann"
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


def test_other_experiments_of_amphion_are_left_to_others(tmp_path, light):
    root = write(tmp_path, light)
    (root / "args.json").write_text((root / "args.json").read_text().replace("FastSpeech2", "VITS"))
    assert find(root) is None


@pytest.fixture(scope="module")
def voice(experiment):
    settings = ["inference.griffin_lim_iterations=2", "inference.sentence_pause_s=0.1"]
    return Synthesizer(experiment, overrides=settings)


def test_the_words_of_its_speech_cover_the_audio(voice):
    speech = voice("Hello, world! It costs $5 -- {AH0} {T AH0 M EY1 T OW2}.")
    assert " ".join(speech.phone_names).startswith("HH AH0 L OW1 <sp> W ER1 L D <sil> IH1 T K")
    words = [word.text for word in speech.words]
    assert words == ["Hello", "world", "It", "costs", "five", "dollars", "AH0", "T AH0 M EY1 T OW2"]
    assert speech.words[0].start_s == 0
    assert speech.words[-1].end_s == pytest.approx(speech.seconds)
    pauses = {(p.start_s, p.end_s) for p in speech.phones if p.name.startswith("<")}
    gaps = {(a.end_s, b.start_s) for a, b in pairwise(speech.words) if a.end_s < b.start_s}
    assert gaps == {(start, end) for start, end in pauses if start < end}
    assert len(speech.wav) == speech.mel.shape[1] * 256


def test_sentences_are_as_they_are_alone_with_the_usual_pause_between(voice):
    both, first, second = voice("Hello, you. Good bye!"), voice("Hello, you."), voice("Good bye!")
    pause = round(0.1 * 22050 / 256)
    assert both.durations.tolist() == [*first.durations, pause, *second.durations]


def test_fine_tuning_takes_phones_over_by_name(experiment, voice):
    assets = voice.model.assets
    own = type(assets)(assets.mel, arpabet_vocabulary(), assets.speakers, assets.stats)
    network = find_model("tts", "fastspeech2").network.build(voice.model.config.model, own)
    transfer = initialise(FastSpeech2Task(network, own), own, experiment)
    original = voice.model.network.phone_embedding.weight
    for phone in ("AA1", "<sp>", "<sil>", "ZH"):
        (old,), (new,) = assets.vocabulary.ids([phone]), own.vocabulary.ids([phone])
        assert network.phone_embedding.weight[new].equal(original[old])
    similar = [name for name in transfer.similar if name.startswith("phone_embedding")]
    marks = ("<,>=<sp>", "<.>=<sil>", "<?>=<sil>", "<!>=<sil>")
    assert similar == [f"phone_embedding.weight: {mark}" for mark in marks]
