"""The configurations that the recipes come with."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from models.base import registry
from models.base.aligner import JointAlignerConfig
from models.base.assets import Assets
from models.base.registry import find_model
from models.tts.fastpitch.config import FastPitchConfig
from models.tts.fastspeech2 import FastSpeech2
from models.tts.fastspeech2.config import FastSpeech2Config
from models.tts.flowspeech.config import FlowSpeechConfig
from modules.mel import MelConfig
from modules.variance.contours import ContourStats
from processors.dataset.batch import VocoderBatch

REPOSITORY = Path(__file__).parents[2]
CONFIGS = sorted(REPOSITORY.glob("egs/*/*/exp_config*.json"))
VOCODER_CONFIGS = REPOSITORY / "config" / "vocoder"
EVERY_VOCODER = sorted(VOCODER_CONFIGS.glob("*.json"))
EVERY_HIFIGAN = sorted(VOCODER_CONFIGS.glob("hifigan*.json"))
FASTPITCH = REPOSITORY / "egs" / "tts" / "FastPitch"
FLOWSPEECH = REPOSITORY / "egs" / "tts" / "FlowSpeech"
FASTSPEECH2 = REPOSITORY / "egs" / "tts" / "FastSpeech2"
TENSORFLOWTTS = FASTSPEECH2 / "exp_config_tensorflowtts.json"
PITCH = ContourStats(*torch.tensor([[200.0], [50], [80], [400]]))
CORPUS = ('dataset=["any"]', 'dataset_path={any: "somewhere"}')
load_config = cache(registry.load_config)  # each takes a tenth of a second


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_recipe_config_is_valid_and_ends_by_itself(path):
    config = load_config(path)
    assert config.task == path.parent.parent.name
    assert config.model_type == path.parent.name
    assert config.train.max_steps > 0
    assert config.log_dir == f"ckpts/{config.task}"
    assert set(config.dataset) == set(config.dataset_path)
    assert not any(Path(folder).is_absolute() for folder in config.dataset_path.values())


def test_the_full_size_model_is_the_default_of_its_dataclass():
    config = load_config(FASTSPEECH2 / "exp_config.json")
    assert config.model == FastSpeech2Config()
    assert config.train.adam.lr == pytest.approx(config.model.transformer.encoder_hidden**-0.5)


def test_flowspeech_is_one_network_for_all_corpora():
    configs = {path.stem: load_config(path) for path in FLOWSPEECH.glob("*.json")}
    assert configs.keys() == {
        *("exp_config", "exp_config_vctk", "exp_config_libritts", "exp_config_folder"),
        *("exp_config_small", "exp_config_bundled", "exp_config_demo"),
        *("exp_config_finetune_5min", "exp_config_finetune_1h", "exp_config_bundled_adversarial"),
    }
    adversarial = configs.pop("exp_config_bundled_adversarial")
    assert adversarial.preprocess == configs["exp_config_bundled"].preprocess
    assert adversarial.model == FlowSpeechConfig(lambda_adversarial=0.02)
    for name, config in configs.items():
        train = config.train
        assert config.model == FlowSpeechConfig()
        assert (train.optimizer, train.scheduler) == ("adamw", "cosine")
        is_short = "finetune" in name or "demo" in name
        averaged = (0.993, False) if is_short else (0.999, True)
        assert (train.ema_decay, train.ema_warmup) == averaged
    small, full = configs["exp_config_small"].train, configs["exp_config"].train
    assert small.max_steps < full.max_steps
    assert (small.mixed_precision, full.mixed_precision) == ("auto", "fp32")


def test_fastpitch_of_full_size_is_trained_as_nvidias():
    config = load_config(FASTPITCH / "exp_config.json")
    binarization = {"binarization_start": 0, "binarization_warmup": 4900}
    aligner = JointAlignerConfig(384, prior_end=4900, binarization_weight=1.0, **binarization)
    assert config.model == FastPitchConfig(aligner=aligner)
    train = config.train
    assert train.batch_size * train.gradient_accumulation_step == 256
    assert (train.optimizer, train.adam.lr, train.lr_scheduler.num_warmup) == ("lamb", 0.1, 1000)
    first = load_config(FASTPITCH / "exp_config_1.0.json")
    assert (config.preprocess.aligner, config.model.variant) == ("learned", "1.1")
    assert (first.preprocess.aligner, first.model.variant) == ("pocketsphinx", "1.0")


def test_all_recipes_of_fastspeech_2_and_flowspeech_share_one_mel_with_hifigan_but_half_a_hop():
    paths = {*FASTSPEECH2.glob("*.json"), *FLOWSPEECH.glob("*.json")} - {TENSORFLOWTTS}
    (theirs,) = {load_config(path).preprocess.mel for path in paths}
    ours = load_config(VOCODER_CONFIGS / "hifigan.json", CORPUS).preprocess.mel
    assert replace(ours, padding=theirs.padding) == theirs
    assert ours.padding != theirs.padding


def test_the_tensorflowtts_recipe_has_its_network_mel_and_optimizer():
    config = load_config(TENSORFLOWTTS)
    energy = ContourStats(*torch.tensor([[40.0], [20], [0], [120]]))
    network = FastSpeech2(config.model, 149, MelConfig(), PITCH, energy)
    # by the layers of the original, without its positions and with the means of the postnet's input
    blocks = 8 * (4 * 384 * 385 + 3 * 384 * 1024 * 2 + 1024 + 384 + 4 * 384)
    predictors = 3 * (3 * 384 * 256 + 3 * 256 * 256 + 2 * 256 + 4 * 256 + 257)
    postnet = 5 * 512 * (80 * 2 + 512 * 3) + 4 * 512 + 80 + 2 * (4 * 512 + 80)
    others = 149 * 384 + 2 * (9 * 384 + 384) + 385 * 80
    expected = blocks + predictors + postnet + others
    assert sum(parameter.numel() for parameter in network.parameters()) == expected
    assert config.preprocess.mel == MelConfig(f_min=80.0, f_max=7600.0, log_floor=1e-10)
    adam = config.train.adam
    assert (config.train.optimizer, adam.lr, adam.weight_decay) == ("adamw", 1e-3, 1e-3)
    schedule = config.train.lr_scheduler
    assert (config.train.scheduler, schedule.num_warmup, schedule.end_lr) == ("linear", 4000, 5e-5)
    assert config.train.batch_size == 16


def generator_of(path):
    """Configuration and network of the vocoder."""
    # its denoiser would compute a second of sound
    overrides = ("model.denoiser_strength=0",) if path.stem == "waveglow" else ()
    config = load_config(path, (*CORPUS, *overrides))
    assets = Assets(config.preprocess.mel)
    return config, find_model(config.task, config.model_type).network.build(config.model, assets)


@pytest.mark.parametrize("path", EVERY_VOCODER, ids=lambda path: path.stem)
def test_every_vocoder_config_gives_a_network_that_speaks_its_mel(path):
    config, network = generator_of(path)
    mel = config.preprocess.mel
    wav = network.infer(torch.full((1, mel.n_mels, 3), mel.log_floor_value))
    assert wav.shape == (1, 3 * mel.hop_length)
    assert mel.padding == ("hifigan" if path in EVERY_HIFIGAN else "centre")


@pytest.mark.parametrize("path", EVERY_HIFIGAN, ids=lambda path: path.stem)
def test_every_hifigan_config_has_a_loss_over_its_whole_band(path):
    config = load_config(path, (*CORPUS, "model.adversarial=false"))
    mel, T = config.preprocess.mel, config.train.cut_mel_frame // 4
    task = find_model("vocoder", config.model_type).task.build(config, Assets(mel))
    hiss = torch.randn(1, T * mel.hop_length, generator=torch.Generator().manual_seed(0)) / 10
    silence = torch.full((1, mel.n_mels, T), mel.log_floor_value)
    batch = VocoderBatch(ids=("a",), mel=silence, mel_lengths=torch.tensor([T]), wav=hiss)
    (update,) = task.training_step(batch)
    # bands of noise are far above those of what a fresh generator makes
    assert 1 < update.losses["mel"].total.item() < 20


@pytest.mark.parametrize(
    ("name", "millions"), [("hifigan", 13.92), ("hifigan_v2", 0.92), ("hifigan_v3", 1.46)]
)
def test_the_three_generators_are_as_large_as_in_table_1_of_the_paper(name, millions):
    _, network = generator_of(VOCODER_CONFIGS / f"{name}.json")
    n_weights = sum(weight.numel() for weight in network.parameters())
    assert n_weights == pytest.approx(millions * 1e6, abs=1e4)


def test_recipes_with_the_same_features_share_them_and_stage_1_of_the_bundled_voice_does():
    folders = {path: load_config(path).preprocess.processed_dir for path in CONFIGS}
    for name in ("", "_vctk", "_libritts", "_folder", "_small"):
        file = f"exp_config{name}.json"
        assert folders[FASTSPEECH2 / file] == folders[FLOWSPEECH / file]
    learned = "exp_config_learned.json"
    assert folders[FASTSPEECH2 / learned] == folders[FASTPITCH / "exp_config.json"]
    bundled = load_config(REPOSITORY / "egs/_voices/choir/config.json")
    assert bundled.preprocess.processed_dir == folders[FLOWSPEECH / "exp_config_bundled.json"]
    explicit = load_config(FASTSPEECH2 / "exp_config.json", ("preprocess.processed_dir=data",))
    assert explicit.preprocess.processed_dir == "data"
    of_folders = load_config(FASTSPEECH2 / "exp_config_folder.json")
    assert of_folders.preprocess.corpus["folder"].format == "folder"


def test_corpora_of_vocoders_are_stored_by_rate_and_apart_from_those_of_voices():
    stores: dict[tuple[str, str], set[object]] = {}
    for path in [*CONFIGS, *EVERY_VOCODER]:
        config = load_config(path) if path in CONFIGS else load_config(path, CORPUS)
        for dataset in config.dataset:
            place = (config.preprocess.processed_dir, dataset)
            stores.setdefault(place, set()).add((config.task, config.preprocess.mel))
    assert {place: kinds for place, kinds in stores.items() if len(kinds) > 1} == {}


def test_segments_last_as_long_at_twice_the_rate():
    for name in ("hifigan", "hifigan_44k"):
        config = load_config(VOCODER_CONFIGS / f"{name}.json", CORPUS)
        samples = config.train.cut_mel_frame * config.preprocess.hop_length
        assert samples / config.preprocess.sample_rate == pytest.approx(8192 / 22050)
