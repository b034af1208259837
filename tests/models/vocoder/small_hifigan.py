"""Small recordings and a HiFi-GAN of a few thousand weights, for the tests of training vocoders."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from config.schema import Config
from config.train import TrainConfig
from models.base.assets import Assets
from models.base.task import Task
from models.training.data import ProcessRank, TrainingData, data_of, make_collator
from models.training.trainer import Trainer, Updater
from models.vocoder.hifigan import HiFiGANTask
from models.vocoder.hifigan.config import DiscriminatorConfig, GeneratorConfig, HiFiGANConfig
from modules.mel import MelConfig, MelSpectrogram
from processors.audio.frames import from_pcm16, to_pcm16
from processors.dataset.batch import VocoderBatch
from processors.dataset.datasets import MelWavDataset, SegmentDataset
from processors.dataset.store import MelWavStore, write_index, write_mel_config
from processors.records import MelWav
from tests.models.training.small_tasks import PREPROCESS, make_trainer, train_config
from tests.processors.stores import write_finished, write_shard
from utils.config import to_plain

MEL = PREPROCESS.mel
N_FRAMES = 20  # of a segment
# kind of block, rates and kernels of the upsampling, channels, kernels and dilations
GENERATOR = GeneratorConfig("2", (8, 8), (16, 16), 8, (3,), ((1, 3),))
# periods, their channels, scales, their channels
DISCRIMINATOR = DiscriminatorConfig((2, 3), (4,) * 5, 2, (4, *[16] * 6))


def make_recording(number: int) -> MelWav:
    """Half a second of a harmonic tone in noise."""
    generator = np.random.default_rng(number)
    n_frames = int(generator.integers(50, 70))
    times = np.arange(n_frames * MEL.hop_length) / MEL.sample_rate
    pitch = generator.uniform(100, 300)
    tone = sum(np.sin(2 * np.pi * k * pitch * times) / k for k in range(1, 5))
    wav = to_pcm16(0.2 * tone + 0.01 * generator.normal(size=len(times)))
    mel = MelSpectrogram(MEL)(torch.from_numpy(from_pcm16(wav))[None])[0]
    return MelWav(f"rec-{number:03d}", "anna", mel.numpy(), wav)


def make_recordings(folder: Path, n_recordings: int = 12) -> MelWavStore:
    """Writes a vocoder's dataset as stage 1 does; the last four recordings do not train."""
    recordings = [make_recording(number) for number in range(n_recordings)]
    rows = write_shard(folder / "features" / "shard-00000.safetensors", recordings, MEL)
    write_mel_config(folder, MEL)
    write_index(folder, rows)
    write_finished(folder)
    store = MelWavStore(folder)
    ids = list(store.ids)
    files = {"train": ids[:-4], "valid": ids[-4:-2], "test": ids[-2:], "golden_test": ids[-2:]}
    files["speakers"] = [{"name": "anna", "language": "en-us"}]
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return store


def gan_config(**changes: object) -> TrainConfig:
    """Two segments per batch."""
    return train_config(**({"batch_size": 2, "cut_mel_frame": N_FRAMES} | changes))


def make_segments(store: MelWavStore, config: TrainConfig) -> TrainingData:
    ids = list(store.ids)
    sizes = {"n_frames": config.cut_mel_frame, "log_floor": MEL.log_floor_value}
    training = SegmentDataset([store], [ids[:-4]], **sizes, seed=config.random_seed)
    validation = MelWavDataset([store], [ids[-4:]], longest_s=1.0)
    collator = make_collator("vocoder", MEL)
    return data_of(training, validation, collator, config, ProcessRank(), torch.device("cpu"))


def make_batch(*numbers: int) -> VocoderBatch:
    """The first frames of some recordings."""
    recordings = [make_recording(number) for number in numbers]
    mels = [torch.from_numpy(recording.mel[:, :N_FRAMES]) for recording in recordings]
    S = N_FRAMES * MEL.hop_length
    wavs = [torch.from_numpy(from_pcm16(recording.wav[:S])) for recording in recordings]
    ids = tuple(recording.id for recording in recordings)
    lengths = torch.full((len(ids),), N_FRAMES)
    return VocoderBatch(ids, torch.stack(mels), lengths, torch.stack(wavs))


def make_gan(mel: MelConfig = MEL, **changes: object) -> HiFiGANTask:
    """The same networks each time; `changes` are those of HiFiGANConfig."""
    model = replace(HiFiGANConfig(generator=GENERATOR, discriminator=DISCRIMINATOR), **changes)
    torch.manual_seed(0)
    config = Config("vocoder", "HiFiGAN", ("mini",), {}, "ckpts", model)
    return HiFiGANTask.build(config, Assets(mel))


def make_gan_trainer(
    store: MelWavStore, checkpoints: Path, config: TrainConfig, task: HiFiGANTask | None = None
) -> Trainer:
    segments = make_segments(store, config)
    return make_trainer(store, checkpoints, config, task or make_gan(), segments)


def write_vocoder_config(root: Path, **train: object) -> Path:
    """A configuration of the small HiFi-GAN over <root>/data/mini."""
    steps = {"max_steps": 4, "save_steps": 2, "valid_steps": 2}
    config = {
        **{"task": "vocoder", "model_type": "HiFiGAN", "log_dir": str(root / "ckpts")},
        **{"dataset": ["mini"], "dataset_path": {"mini": "corpus"}},
        "model": to_plain(HiFiGANConfig(generator=GENERATOR, discriminator=DISCRIMINATOR)),
        "preprocess": to_plain(replace(PREPROCESS, processed_dir=str(root / "data"))),
        "train": to_plain(gan_config(**(steps | train))),
    }
    path = root / "vocoder.json"
    path.write_text(json.dumps(config))
    return path


def updater_of(task: Task[Any], rate: float) -> Updater:
    """Plain gradient descent: Adam would make whole steps of rounding errors."""
    networks = task.networks.items()
    optimizers = {name: torch.optim.SGD(n.parameters(), lr=rate) for name, n in networks}
    return Updater(task, optimizers, torch.device("cpu"))


def tensors_of(task: Task[Any], kind: str = "state_dict") -> dict[str, torch.Tensor]:
    """Copies of all tensors, or of the "named_parameters" or "named_buffers"."""
    return {
        f"{name}.{key}": tensor.detach().clone()
        for name, network in task.networks.items()
        for key, tensor in dict(getattr(network, kind)()).items()
    }
