"""A small processed corpus and small tasks, for the tests of training."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn

from config.preprocess import PreprocessConfig
from config.train import AdamConfig, DataLoaderConfig, ScheduleConfig, TrainConfig
from models.base.task import LossTerm, Update
from models.training.data import ProcessRank, data_of
from models.training.observing.tracker import Tracker
from models.training.run import Run
from models.training.trainer import Trainer
from modules.layers.basic import length_mask
from modules.variance.adaptor import regulate
from preprocessors.manifest import MANIFEST, Utterance, write_manifest
from processors.audio.files import write_wav
from processors.dataset.batch import collate
from processors.dataset.datasets import FeatureDataset
from processors.dataset.statistics import corpus_stats
from processors.dataset.store import FeatureStore, Store, write_index, write_mel_config
from processors.records import Features
from processors.text.voice_phones import Vocabulary, arpabet_vocabulary
from tests.processors.stores import write_finished, write_shard
from utils.config import to_plain
from utils.seed import seed_everything

LENGTHS = {"n_fft": 256, "win_length": 256, "hop_length": 64}  # samples
PREPROCESS = PreprocessConfig(sample_rate=8000, **LENGTHS, n_mels=8, f_max=4000)
PHONES = ("AA1", "B", "D", "IY0", "S", "T")
TEXT = "One two."  # of every recording


def make_features(number: int, speaker: str = "anna") -> Features:
    """An utterance of 4 to 11 phones; its mel follows from them, so that it can be learnt."""
    generator = np.random.default_rng(number)
    n_phones = int(generator.integers(2, 10))
    phones = ("<sil>", *generator.choice(PHONES, n_phones).tolist(), "<.>")
    durations = generator.integers(1, 5, len(phones))
    levels = np.array([hash_of(phone) for phone in phones])
    frames = np.repeat(levels, durations)  # (T,)
    mel = frames[None] + np.arange(8)[:, None] / 8  # (M, T)
    f0 = np.where(frames > 0.3, 100 + 50 * frames, 0.0)
    arrays = (values.astype(np.float32) for values in (mel, f0, 1 + frames))
    return Features(f"utt-{number:03d}", speaker, phones, durations.astype(np.int64), *arrays)


def hash_of(phone: str) -> float:
    return sum(map(ord, phone)) % 10 / 10


def make_processed(
    folder: Path, n_utterances: int = 14, speakers=("anna",), *, timed: bool = True
) -> FeatureStore:
    """Writes a dataset's folder as stage 1 does; the last four utterances do not train."""
    features = [make_features(i, speakers[i % len(speakers)]) for i in range(n_utterances)]
    if not timed:
        features = [replace(item, durations=None) for item in features]
    mel = PREPROCESS.mel
    rows = write_shard(folder / "features" / "shard-00000.safetensors", features, mel)
    write_mel_config(folder, mel)
    write_index(folder, rows)
    write_finished(folder, aligner="pocketsphinx" if timed else "learned")
    store = FeatureStore(folder)
    ids = list(store.ids)
    splits = {"train": ids[:-4], "valid": ids[-4:-2], "test": ids[-2:], "golden_test": ids[-2:]}
    phones = {phone: 1 for item in features for phone in item.phones}
    files = {
        "phones": phones,
        "speakers": [{"name": name, "language": "en-us"} for name in speakers],
        "stats": corpus_stats(store, ids[:-4], PREPROCESS).to_plain(),
    }
    for name, value in (splits | files).items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return store


def write_corpus(root: Path, store: Store, lead: int = 0, written=lambda id: True) -> None:
    """Recordings of the store's utterances, a little longer than their features."""
    hop, utterances = PREPROCESS.hop_length, []
    for number, id in enumerate(store.ids):
        path = root / "corpus" / f"{id}.wav"
        if written(id):
            noise = np.random.default_rng(number).normal(0, 0.1, lead + (len(id) + 60) * hop)
            write_wav(path, noise, PREPROCESS.sample_rate)
        utterances.append(Utterance(id, path, TEXT, "anna", "en-gb"))
    write_manifest(store.folder / MANIFEST, utterances)


def train_config(**changes: object) -> TrainConfig:
    """fp32, constant rate, no worker processes, nothing logged."""
    adam, loader = AdamConfig(lr=0.01, betas=(0.9, 0.98), eps=1e-8), DataLoaderConfig(num_worker=0)
    rates = {"adam": adam, "scheduler": "constant", "lr_scheduler": ScheduleConfig()}
    nothing = dict.fromkeys(("valid_samples", "valid_steps", "score_steps", "save_steps"), 0)
    config = TrainConfig(batch_size=3, max_steps=4, tracker="none", dataloader=loader, **rates)
    return replace(config, **(nothing | changes))


def make_data(store: FeatureStore, config: TrainConfig, place: ProcessRank = ProcessRank()):  # noqa: B008
    ids = list(store.ids)
    vocabulary: Vocabulary = arpabet_vocabulary()
    speakers = sorted(set(store.speakers))
    of_training = {"crop_phones": config.crop_phones, "seed": config.random_seed}
    training = FeatureDataset([store], [ids[:-4]], vocabulary, speakers, **of_training)
    validation = FeatureDataset([store], [ids[-4:]], vocabulary, speakers)
    collator = partial(collate, log_floor=-11.5)
    return data_of(training, validation, collator, config, place, torch.device("cpu"))


def make_trainer(
    store, checkpoints: Path, config: TrainConfig, task=None, data=None, scoring=None
) -> Trainer:
    accelerator = Accelerator(cpu=True)
    tracker = Tracker(checkpoints.parent)
    task = TinyTask() if task is None else task
    seed_everything(config.random_seed)
    data = make_data(store, config) if data is None else data
    run = Run(task, data, config, accelerator, checkpoints, tracker, scoring=scoring)
    return Trainer(run)


VOICES = {  # the `model` section of very small ones, whose common parts have the same sizes
    "FastSpeech2": {
        "transformer": {
            "n_encoder_layers": 1,
            "encoder_hidden": 8,
            "n_decoder_layers": 1,
            "decoder_hidden": 8,
            "conv_filter_size": 8,
            "conv_kernel_size": [3, 1],
        },
        "variance_predictor": {"filter_size": 8},
        "variance_embedding": {"n_bins": 8},
        "use_postnet": False,
    },
    "FlowSpeech": {
        "hidden": 8,
        "encoder": {"n_layers": 1, "filter_size": 8, "kernel_size": 3},
        "prosody": {"channels": 8, "kernel_size": 3, "n_bins": 8},
        "estimator": {"channels": 8, "n_blocks": 2, "kernel_size": 3},
    },
    "Matcha": {
        "encoder": {"hidden": 8, "n_layers": 1, "filter_size": 8, "duration_filter_size": 8},
        "decoder": {"channels": [8, 8], "n_middle_stages": 1, "head_size": 4},
    },
}


def write_voice_config(
    root: Path, dataset: str = "mini", model: str = "FastSpeech2", **train: object
) -> Path:
    """A configuration of a very small voice over <root>/data/<dataset>."""
    config = {
        "task": "tts",
        "model_type": model,
        "dataset": [dataset],
        "dataset_path": {dataset: "corpus"},
        "log_dir": str(root / "ckpts"),
        "model": VOICES[model],
        "preprocess": to_plain(replace(PREPROCESS, processed_dir=str(root / "data"))),
        "train": to_plain(train_config(**({"save_steps": 2, "valid_steps": 2} | train))),
    }
    path = root / "exp_config.json"
    path.write_text(json.dumps(config))
    return path


class TinyNetwork(nn.Module):
    """Phones to mel and log durations."""

    def __init__(self, dropout: float = 0.0, hidden: int = 6) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(arpabet_vocabulary()), hidden)
        self.dropout = nn.Dropout(dropout)
        self.mel = nn.Linear(hidden, 8)
        self.duration = nn.Linear(hidden, 1)

    def forward(self, phone_ids, durations, n_frames):
        phones = self.dropout(self.embedding(phone_ids))  # (B, N, H)
        frames = regulate(phones, durations, n_frames)  # (B, T, H)
        return self.mel(frames), self.duration(phones).squeeze(-1)  # (B, T, M), (B, N)


class Silent:
    """A task without samples."""

    def samples(self, batch):
        yield from ()


class TinyTask(Silent):
    """One network, two losses with different counts."""

    exported = "model"

    def __init__(self, dropout: float = 0.0, dtype: torch.dtype = torch.float32) -> None:
        torch.manual_seed(0)
        self.networks: dict[str, nn.Module] = {"model": TinyNetwork(dropout).to(dtype)}

    def counts(self, batch):
        return {
            "frames": int(batch.mel_lengths.sum()),
            "phones": int(batch.phone_lengths.sum()),
            "items": len(batch.ids),
        }

    def training_step(self, batch):
        yield Update("model", self.losses(batch))

    def validation_step(self, batch):
        return self.losses(batch)

    def losses(self, batch):
        T = batch.mel.shape[2]
        mel_hat, durations_hat = self.networks["model"](batch.phone_ids, batch.durations, T)
        frames = length_mask(batch.mel_lengths, T)
        phones = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
        mel_error = (mel_hat - batch.mel.mT).square().mean(-1)
        duration_error = (durations_hat - batch.durations).square()
        return {
            "mel": LossTerm((mel_error * frames).sum(), "frames"),
            "duration": LossTerm((duration_error * phones).sum(), "phones", weight=0.1),
        }


class TinyGan(Silent):
    """A generator of mels and a discriminator of frames: two updates per step."""

    exported = "generator"

    def __init__(self, dtype: torch.dtype = torch.float64) -> None:
        torch.manual_seed(0)
        self.networks: dict[str, nn.Module] = {
            "generator": TinyNetwork().to(dtype),
            "discriminator": nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 1)).to(dtype),
        }

    def counts(self, batch):
        return {"frames": int(batch.mel_lengths.sum())}

    def training_step(self, batch):
        T = batch.mel.shape[2]
        mask = length_mask(batch.mel_lengths, T)
        discriminate = self.networks["discriminator"]
        mel_hat, _ = self.networks["generator"](batch.phone_ids, batch.durations, T)
        real = discriminate(batch.mel.mT.to(mel_hat)).squeeze(-1)
        fake = discriminate(mel_hat.detach()).squeeze(-1)
        error = (1 - real).square() + fake.square()
        yield Update("discriminator", {"disc": LossTerm((error * mask).sum(), "frames")})
        adversarial = (1 - discriminate(mel_hat).squeeze(-1)).square()
        yield Update("generator", {"gen_adv": LossTerm((adversarial * mask).sum(), "frames")})

    def validation_step(self, batch):
        T = batch.mel.shape[2]
        mask = length_mask(batch.mel_lengths, T)
        mel_hat, _ = self.networks["generator"](batch.phone_ids, batch.durations, T)
        error = (mel_hat - batch.mel.mT).abs().mean(-1)
        return {"mel": LossTerm((error * mask).sum(), "frames")}
