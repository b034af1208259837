"""Acoustic models with random weights, as experiments on disk."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from models.base.registry import find_model, load_config
from models.training.data import collect_assets
from tests.processors.small_corpus import prepare_dataset
from utils.config import to_plain

SPLIT = {"valid_ids": ["LJ002-0020"], "test_ids": ["LJ002-0035"]}
VOICE = {
    "transformer": {
        **{"n_encoder_layers": 1, "encoder_hidden": 16, "n_decoder_layers": 1},
        **{"decoder_hidden": 16, "conv_filter_size": 16, "conv_kernel_size": [3, 1]},
    },
    "variance_predictor": {"filter_size": 8},
    "variance_embedding": {"n_bins": 8},
}
FLOW = {
    "hidden": 16,
    "encoder": {"n_layers": 1, "filter_size": 16, "kernel_size": 3},
    "prosody": {"channels": 8, "kernel_size": 3, "n_bins": 8},
    "estimator": {"channels": 8, "n_blocks": 2, "kernel_size": 3},
}
TACOTRON = {
    "encoder": {"hidden": 8},
    "decoder": {"prenet_size": 8, "attention_lstm_size": 8, "decoder_lstm_size": 8},
    "postnet": {"channels": 8},
}


def write_config(path: Path, task: str, model_type: str, model: dict, **preprocess: object) -> Path:
    usual = {"aligner": "textgrid", "shard_size": 3, "backend": "sequential", "split": SPLIT}
    config = {
        **{"task": task, "model_type": model_type, "dataset": ["LJSpeech"], "model": model},
        "dataset_path": {"LJSpeech": str(path.parent / "corpus")},
        "log_dir": str(path.parent / "ckpts"),
        "preprocess": usual | preprocess,
        "train": {"max_steps": 1},
    }
    path.write_text(json.dumps(config))
    return path


def make_voice(root: Path, model_type: str, model: dict, aligner: str) -> Path:
    """A voice with random weights, and features in `data` without durations, of a corpus there."""
    keys = {"processed_dir": str(root / "data"), "aligner": aligner, "split": {}}
    write_config(root / "voice.json", "tts", model_type, model, **keys)
    prepare_dataset(load_config(root / "voice.json"), "LJSpeech", 1)
    return write_voice(root, "voice", seed=0)


def write_voice(root: Path, name: str, seed: int) -> Path:
    """An experiment of an acoustic model with random weights."""
    config, folder = load_config(root / "voice.json"), root / "ckpts" / name
    assets = collect_assets(config)
    torch.manual_seed(seed)
    network = find_model("tts", config.model_type).network.build(config.model, assets)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(to_plain(config)))
    assets.save(folder)
    save_file(network.state_dict(), folder / "model.safetensors")
    return folder
