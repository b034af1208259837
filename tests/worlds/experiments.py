"""Very small experiments: each is trained once by the process of the tests, and copied."""

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file, save
from torch import Tensor

from models.base.registry import load_config
from models.checkpoint.folders import step_of, write_checkpoint
from models.checkpoint.loading import RAW_WEIGHTS, WEIGHTS, TrainedModel
from models.training.trainer import train
from tests.models.training.small_tasks import make_processed, write_voice_config
from tests.models.vocoder.small_hifigan import make_recordings, write_vocoder_config

_FOLDER = tempfile.TemporaryDirectory(prefix="experiments-")


def train_anew(config: Path, *overrides: str, name: str = "voice", **flags: object) -> int | None:
    """Trains an experiment in this process, whatever was trained before."""
    AcceleratorState._reset_state(reset_partial_state=True)
    return train(load_config(config, overrides), name, **flags)


@cache
def _voice(model: str, speakers: tuple[str, ...], max_steps: int, overrides: tuple[str, ...]):
    root = Path(tempfile.mkdtemp(dir=_FOLDER.name))
    make_processed(root / "data" / "mini", speakers=speakers)
    train_anew(write_voice_config(root, model=model, max_steps=max_steps), *overrides)
    return root


@cache
def _vocoder() -> Path:
    root = Path(tempfile.mkdtemp(dir=_FOLDER.name))
    make_recordings(root / "data" / "mini")
    train_anew(write_vocoder_config(root, max_steps=2))
    return root


def trained_voice(
    root: Path,
    *overrides: str,
    model: str = "FastSpeech2",
    speakers: tuple[str, ...] = ("anna",),
    max_steps: int = 4,
) -> Path:
    """Gives a folder the data of some speakers and their voice, `ckpts/voice`; returns that."""
    shutil.copytree(_voice(model, speakers, max_steps, overrides), root, dirs_exist_ok=True)
    write_voice_config(root, model=model, max_steps=max_steps)
    return root / "ckpts" / "voice"


def trained_vocoder(root: Path) -> Path:
    """Gives a folder recordings and a vocoder after two updates, `ckpts/voice`; returns that."""
    shutil.copytree(_vocoder(), root, dirs_exist_ok=True)
    return root / "ckpts" / "voice"


def edit_config(experiment: Path, **sections: object) -> None:
    """Changes values of sections of the configuration of an experiment."""
    plain = json.loads((experiment / "config.json").read_text())
    for name, changes in sections.items():
        plain[name] = {**plain[name], **changes}
    (experiment / "config.json").write_text(json.dumps(plain))


def average_weights(experiment: Path) -> Path:
    """Makes the weights of each checkpoint the average of raw weights, which are twice as large."""
    for checkpoint in (experiment / "checkpoints").iterdir():
        weights = load_file(checkpoint / WEIGHTS)
        files = {p.name: p.read_bytes() for p in checkpoint.iterdir() if p.name != "manifest.json"}
        files[RAW_WEIGHTS] = save({name: 2 * tensor for name, tensor in weights.items()})
        write_checkpoint(checkpoint.parent, step_of(checkpoint), files)
    edit_config(experiment, train={"ema_decay": 0.9})
    return experiment


def mel_of(model: TrainedModel) -> Tensor:
    """Synthesises four phones with given durations."""
    phones = torch.tensor([model.vocabulary.ids(["<sil>", "AA1", "S", "<.>"])])
    durations = torch.tensor([[2, 3, 1, 2]])
    return model.network.infer(phones, torch.tensor([4]), durations=durations).mel
