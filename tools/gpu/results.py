"""Results to copy from a GPU machine: scores, weights in 16 bits, and one file of figures."""

import platform
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from models.base.assets import ASSET_FILES
from models.checkpoint.folders import latest_checkpoint
from models.checkpoint.loading import CHECKPOINTS, CONFIG, WEIGHTS, load_model
from models.training.data import ProcessRank, load_data
from modules.mel import MelSpectrogram
from utils.files import read_json, write_json

_N_SCORED = 100  # validation utterances
_PART_BYTES = 15_000_000
_CEPSTRA = 24  # coefficients, without that of the level
_DB_PER_NEPER = 10 / np.log(10) * np.sqrt(2)


def results_folder(out: Path) -> Path:
    """Folder of the files to copy from the machine."""
    return out / "results"


def benchmarks_folder(out: Path) -> Path:
    """Figures of the benchmark, a file per model and mode."""
    return out / "benchmarks"


def score(out: Path, name: str, device: torch.device) -> dict[str, float]:
    """Scores a trained model on validation utterances and writes `<out>/<name>.scores.json`.

    A voice predicts mels from the true durations, pitch and energy; a vocoder resynthesises
    recordings, whose mels are compared. `mel_l1` is in nats. `mel_cd` is a mel-cepstral distortion
    in dB, by cosine transforms of the log-mels: not the metric `mcd` of stage 4, which takes the
    spectral envelope, a pitch extractor, and the model's own durations.

    Args:
        out: Folder of the experiment.
        name: Of the experiment.
        device: Where the network runs.
    """
    distances = np.array(list(_distances(out, name, device)))  # (n, 3)
    l1, distortion, frames = distances.T
    found = {
        "mel_l1": float(np.average(l1, weights=frames)),
        "mel_cd": float(np.average(distortion, weights=frames)),
        "utterances": len(distances),
    }
    write_json(out / f"{name}.scores.json", found)
    return found


def _distances(out: Path, name: str, device: torch.device) -> Iterator[tuple[float, float, int]]:
    """Of each utterance: L1 distance, cepstral distortion, and number of frames."""
    model = load_model(out / name, str(device))
    data = load_data(model.config, model.assets, ProcessRank(), device)
    spectrogram = MelSpectrogram(model.mel).to(device)
    for item in range(min(_N_SCORED, len(data.validation))):
        batch = data.validation_batch(item)
        batch = type(batch)(*(v.to(device) if torch.is_tensor(v) else v for v in batch))
        with torch.inference_mode():
            if model.config.task == "vocoder":
                mel_hat = spectrogram(model.network.infer(batch.mel).reshape(1, -1))
                mel = spectrogram(batch.wav)
            else:
                mel_hat, mel = model.network.teacher_forced_mel(batch), batch.mel
        yield *mel_distances(mel[0].cpu().numpy(), mel_hat[0].cpu().numpy()), mel.shape[-1]


def mel_distances(mel: np.ndarray, mel_hat: np.ndarray) -> tuple[float, float]:
    """L1 distance in nats, and mel-cepstral distortion in dB, of two log-mels (M, T)."""
    difference = mel_hat - mel
    angles = np.arange(1, _CEPSTRA + 1)[:, None] * (np.arange(len(mel)) + 0.5) * np.pi / len(mel)
    cepstra = np.cos(angles) @ difference / len(mel)  # (24, T): ln mel = c_0 + 2 sum c_m cos(m w)
    distortion = _DB_PER_NEPER * np.sqrt((cepstra**2).sum(axis=0)).mean()
    return float(np.abs(difference).mean()), float(distortion)


def save_weights(out: Path, name: str) -> None:
    """Writes the weights of the newest checkpoint in 16 bits, in parts of at most 15 MB.

    Args:
        out: Folder of the experiment.
        name: Of the experiment.
    """
    tensors = load_file(latest_checkpoint(out / name / CHECKPOINTS) / WEIGHTS)
    parts: list[dict[str, torch.Tensor]] = [{}]
    size = 0
    for key, tensor in tensors.items():
        half = tensor.half() if tensor.is_floating_point() else tensor
        if size + half.nbytes > _PART_BYTES:
            parts.append({})
            size = 0
        parts[-1][key] = half
        size += half.nbytes
    for number, part in enumerate(parts, 1):
        save_file(part, results_folder(out) / f"{name}-{number}.safetensors")


def write_results(out: Path, state: dict[str, object]) -> None:
    """Writes `results.json`: pieces, scores, versions, and the small files of each experiment.

    And `benchmarks.json`, with the figures of all models.

    Args:
        out: Folder of the plan.
        state: Of the pieces.
    """
    figures = sorted(benchmarks_folder(out).glob("*.json"))
    write_json(
        results_folder(out) / "benchmarks.json", {path.stem: read_json(path) for path in figures}
    )
    names = [path.name.removesuffix(".scores.json") for path in sorted(out.glob("*.scores.json"))]
    kept = (CONFIG, *ASSET_FILES, "history.json")
    write_json(
        results_folder(out) / "results.json",
        {
            "pieces": state,
            "scores": {name: read_json(out / f"{name}.scores.json") for name in names},
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
            "experiments": {
                name: {file: _json(out / name / file) for file in kept} for name in names
            },
        },
    )


def _json(path: Path) -> object:
    return read_json(path) if path.suffix == ".json" and path.exists() else None
