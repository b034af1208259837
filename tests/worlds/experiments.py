"""Very small experiments: each is trained once by the process of the tests, and copied."""

import shutil
import tempfile
from functools import cache
from pathlib import Path

from accelerate.state import AcceleratorState

from models.base.registry import load_config
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
