"""The recipes from a corpus to speech, as a user calls them, with networks that train in no time.

FastSpeech 2 and HiFi-GAN have files of their own.
"""

import json
from functools import cache

import pytest
import soundfile
from safetensors.torch import load_file

from models.base.registry import load_config
from models.tts.matcha.config import MatchaConfig
from tests.recipes.runs import EGS, HELD_OUT, TEST_SET, lines_of, prepare, run_stages
from tests.recipes.tiny import TWO_UPDATES, tiny_model

STACK = {"n_layers": 1, "heads": 2, "head_size": 4, "filter_size": 16}
FASTPITCH = {
    **{"hidden": 16, "encoder": STACK, "decoder": STACK},
    **{f"{what}_predictor": {"filter_size": 16} for what in ("duration", "pitch", "energy")},
    "aligner": {"hidden": 8, "attention_channels": 8},
}
FLOWSPEECH = {
    "hidden": 16,
    "encoder": {"n_layers": 1, "filter_size": 16, "kernel_size": 3},
    "prosody": {"channels": 16, "kernel_size": 3, "n_bins": 16},
    "estimator": {"channels": 16, "n_blocks": 2, "kernel_size": 3},
}
MATCHA = {
    "encoder": {"hidden": 16, "n_layers": 1, "filter_size": 16, "duration_filter_size": 16},
    "decoder": {"channels": [16, 16], "n_middle_stages": 1, "head_size": 8},
    "out_size": 64,
    "steps": 2,
}
TACOTRON2 = {
    "encoder": {"hidden": 16},
    "decoder": {
        **{"prenet_size": 16, "attention_lstm_size": 16, "decoder_lstm_size": 16},
        **{"attention_size": 8, "n_frames_per_step": 3},
    },
    "postnet": {"channels": 16},
    "guided_attention": 1.0,
}
MOVING = {"adam": {"lr": 0.05}, "lr_scheduler": {"num_warmup": 0}}  # so that the flow moves
# sections of the configuration that differ from those of the recipe
VOICES = {
    "FastPitch": {"model": FASTPITCH, "train": TWO_UPDATES | {"gradient_accumulation_step": 2}},
    "FlowSpeech": {"model": FLOWSPEECH, "train": TWO_UPDATES | MOVING},
    "Matcha": {
        "model": MATCHA,
        "train": TWO_UPDATES | {"tracker": "jsonl"},
        "keys": {"text": {"phone_extractor": "lexicon"}},  # no need of espeak-ng
    },
    "Tacotron2": {
        "model": TACOTRON2,
        "train": TWO_UPDATES | {"tracker": "tensorboard", "valid_samples": 1},
        "inference": {"attention_attempts": 1, "save_plots": True},
    },
}
VOCODERS = {
    "WaveGlow": {"flows": 3, "channels": 4, "n_layers": 2},
    "Vocos": tiny_model("vocos"),
}
SPEAK = ("--infer_text", "No, it was not.", "--vocoder_dir", "griffin_lim")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Runs a recipe, once, from a folder that is not the repository's."""

    @cache
    def run(name):
        folder = tmp_path_factory.mktemp("a recipe")
        if name in VOCODERS:
            keys = {"n_mels": 20}  # WaveGlow's convolution of 80 bands takes half a second
            sections = {"model": VOCODERS[name], "train": TWO_UPDATES}
            place = prepare(folder, EGS / "vocoder" / name, keys, **sections)
            run_stages(place, (), (), TEST_SET, (*TEST_SET, "--metrics", "mel_l1", "--page", "no"))
        else:
            few = {"griffin_lim_iterations": 2, **VOICES[name].get("inference", {})}
            place = prepare(folder, EGS / "tts" / name, **VOICES[name] | {"inference": few})
            run_stages(place, (), (), (*TEST_SET, "--vocoder_dir", "griffin_lim"))
        (folder / "ckpts" / "tiny").rename(place.experiment)
        return place

    return run


def weights_of(place, name):
    (checkpoint,) = (place.experiment / "checkpoints").glob("step-*2")
    return load_file(checkpoint / f"{name}.safetensors")


@pytest.mark.parametrize("name", VOICES)
def test_three_stages_give_speech_for_every_test_sentence(trained, name):
    result = trained(name).experiment / "result"
    lines = lines_of(result)
    assert [line["id"] for line in lines] == sorted(HELD_OUT)
    for line in lines:
        info = soundfile.info(result / line["file"])
        assert (info.samplerate, info.channels) == (22050, 1)
        ends = [phone["start_s"] + phone["duration_s"] for phone in line["phones"]]
        assert ends[-1] == pytest.approx(info.duration, abs=1e-3)


@pytest.mark.parametrize("name", VOCODERS)
def test_recordings_become_scored_copies_of_their_length(trained, name):
    result = trained(name).experiment / "result"
    lines = lines_of(result)
    assert sorted(line["id"] for line in lines) == sorted(HELD_OUT)
    for line in lines:
        assert soundfile.info(result / line["file"]).frames % 256 == 0
        assert line["mel_l1"] > 0.1  # two updates teach nothing
    scores = json.loads((result / "scores.json").read_text())["scores"]
    assert scores["mel_l1"]["n"] == len(HELD_OUT)


def test_an_aligner_and_the_weights_of_an_average_have_files_of_their_own(trained):
    voice, aligner = (weights_of(trained("FastPitch"), name) for name in ("model", "aligner"))
    assert "energy.embedding.weight" in voice
    assert "phone_keys.weight" in aligner
    assert not aligner.keys() & voice.keys()
    average, raw = (weights_of(trained("FlowSpeech"), name) for name in ("model", "raw_model"))
    assert average.keys() == raw.keys()
    assert "estimator.velocity.weight" in average
    assert any(not tensor.equal(raw[name]) for name, tensor in average.items())


def test_steps_temperature_and_seed_are_recorded_and_each_gives_a_file_of_its_own(trained):
    place = trained("FlowSpeech")
    wanted = [(None, None, 0), (2, None, 0), (None, 0.9, 0), (None, None, 5)]
    for steps, temperature, seed in (*wanted, wanted[1]):
        flags = [f"--seed={seed}"]
        flags += [] if steps is None else [f"--steps={steps}"]
        flags += [] if temperature is None else [f"--temperature={temperature}"]
        done = place.speak(*SPEAK, *flags)
        assert done.returncode == 0, done.stderr
    lines = lines_of(place.experiment / "result" / "single")
    newest = {line["id"]: line for line in lines}.values()
    assert [(line["steps"], line["temperature"], line["seed"]) for line in newest] == wanted
    files = [(place.experiment / "result/single" / line["file"]).read_bytes() for line in newest]
    assert len(set(files)) == 4


def test_the_losses_of_matchas_paper_are_logged(trained):
    text = (trained("Matcha").experiment / "log" / "metrics.jsonl").read_text()
    names = {name for line in text.splitlines()[1:] for name in json.loads(line)}
    for loss in ("flow", "prior", "duration"):
        assert any(name.endswith(loss) for name in names), names


def test_matchas_published_configuration_is_the_default_of_its_dataclass():
    full, vctk = (load_config(EGS / f"tts/Matcha/exp_config{name}.json") for name in ("", "_vctk"))
    assert full.model == MatchaConfig()
    assert (vctk.model.mel_mean, vctk.model.mel_std) == (-6.630575, 2.482914)
    for config in (full, vctk):
        assert (config.train.batch_size, config.train.adam.lr) == (32, 1e-4)
        assert (config.train.max_steps, config.train.grad_clip_thresh) == (500000, 5)
        assert config.preprocess.mel.padding == "hifigan"
        assert config.preprocess.text.phone_extractor == "espeak_characters"


def test_speech_of_a_tacotron_has_plots_and_a_report_on_its_attention(trained):
    result = trained("Tacotron2").experiment / "result"
    for line in lines_of(result):
        assert {*line["attention"]} == {"focus", "skipped", "repeated", "stopped"}
        assert (result / f"{line['id']}.png").is_file()


@pytest.mark.parametrize("name", ["Matcha", "Tacotron2"])
def test_controls_that_the_model_lacks_are_refused(trained, name):
    place = trained(name)
    done = place.speak(*SPEAK, "--pitch_control", "1.2", cwd=place.folder)
    assert done.returncode == 1
    assert f"{name} has no control of pitch" in done.stderr


def test_checkpoints_of_vocoders_hold_normalised_weights_and_discriminators(trained):
    names = weights_of(trained("WaveGlow"), "model").keys()
    assert "flows.2.coupling.mel_conv.parametrizations.weight.original1" in names
    assert {"flows.2.coupling.end.weight", "flows.2.mixing.weight"} <= names
    assert "blocks.0.scale" in weights_of(trained("Vocos"), "model")
    names = weights_of(trained("Vocos"), "discriminator").keys()
    assert {name.split(".")[0] for name in names} == {"periods", "resolutions"}


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (("--seed", "1"), ""),
        (("--set", "inference.vocoder_options.sigma=0.6"), ""),
        (("--set", "inference.vocoder_options.sigm=0.6"), "sigma? (its options: sigma, denois"),
    ],
)
def test_seed_and_options_of_stage_3_change_the_speech_of_waveglow(trained, tmp_path, flags, fault):
    place = trained("WaveGlow")
    place_flags = ("--infer_expt_dir", str(place.experiment), "--infer_output_dir", str(tmp_path))
    done = place.run("--stage", "3", *place_flags, *TEST_SET, *flags)
    assert (done.returncode, fault in done.stderr) == (int(fault != ""), True), done.stderr
    if not fault:
        first = (place.experiment / "result" / f"{HELD_OUT[0]}.wav").read_bytes()
        assert (tmp_path / f"{HELD_OUT[0]}.wav").read_bytes() != first
