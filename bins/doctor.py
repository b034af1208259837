"""Shows what is installed and whether it works: arion doctor."""

import platform
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from bins._flags.parsers import program_arguments
from models.voices import BUNDLED, InstalledVoice, installed_voices
from utils.cli import print_text, run
from utils.errors import described
from utils.logging import setup_logging
from utils.parallel import n_cores

_PACKAGES = ("torch", "numpy", "accelerate", "librosa", "soundfile", "phonemizer", "pocketsphinx")
_OPTIONAL = {  # extra of setup.py: a module of each of its packages, and what they add
    "serve": (("fastapi", "uvicorn"), "arion serve"),
    "onnx": (("onnx", "onnxscript", "onnxruntime"), "arion export"),
    "eval": (("pesq", "pystoi", "speechmos", "distillmos", "resemblyzer", "jiwer"), "all metrics"),
    "pyworld": (("pyworld",), "a second pitch extractor"),
    "tensorflowtts": (("h5py",), "checkpoints of TensorFlowTTS"),
    "datasets": (("pyarrow",), "tables in Parquet"),
    "cluster": (("distributed",), "stage 1 on several machines, by Dask"),
    "ray": (("ray",), "stage 1 on several machines, by Ray"),
    "wandb": (("wandb",), "tracking by Weights & Biases"),
}


def main() -> None:
    """Prints one line for each finding; the exit code is 1 if the bundled voice does not speak."""
    program_arguments("doctor")
    setup_logging(quiet=True)
    for line in _environment():
        print_text(f"{line}\n")
    faults = {}
    for voice in installed_voices():
        line, faults[voice.name] = _spoken(voice)
        print_text(f"{line}\n")
    if faults.get(BUNDLED, True):
        raise SystemExit(1)


def _environment() -> Iterator[str]:
    yield f"Python {platform.python_version()} on {platform.platform()}, {n_cores()} cores"
    yield ", ".join(f"{name} {_version_of(name)}" for name in _PACKAGES)
    for extra, (modules, adds) in _OPTIONAL.items():
        missing = [name for name in modules if find_spec(name) is None]
        lacking = f"missing {', '.join(missing)} (pip install -e '.[{extra}]')"
        yield f"{adds}: {lacking if missing else 'yes'}"
    try:
        import torch

        from processors.audio.streams import can_play
    except (ImportError, OSError) as error:
        yield f"a package that is needed cannot be imported: {described(error)}"
        return
    yield f"sound device: {'yes' if can_play() else 'none; arion say writes files'}"
    gpus = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    yield f"GPU: {', '.join(gpus) or 'none; networks run on the CPU'}"


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _spoken(voice: InstalledVoice) -> tuple[str, bool]:
    """Speaks a word by each voice; gives a line and whether that failed."""
    start = time.monotonic()
    try:
        from models.synthesizer.synthesizer import Synthesizer

        Synthesizer(voice.folder)("Yes.", speaker=voice.speakers[0])
    except Exception as error:  # noqa: BLE001  (whatever is wrong is what is asked for)
        return f"voice {voice.name}: does not speak: {described(error)}", True
    return f"voice {voice.name}: speaks, after {time.monotonic() - start:.1f} s", False


if __name__ == "__main__":
    run(main)
