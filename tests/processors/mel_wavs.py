"""A small store of recordings, for the tests of vocoders' data and training."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from modules.mel import MelConfig, MelSpectrogram
from processors.audio.frames import from_pcm16, to_pcm16
from processors.dataset.store import MelWavStore
from processors.records import MelWav
from tests.processors.stores import write_finished, write_store

SIZES = {"n_fft": 256, "win_length": 256, "hop_length": 64, "n_mels": 8}
MEL = MelConfig(sample_rate=8000, f_max=4000, padding="hifigan", **SIZES)
FRAMES = (5, 16, 17, 40, 60, 33, 90, 25, 48, 70)  # of the recordings, in the order of their ids


def make_mel_wav(number: int, n_frames: int, speaker: str = "anna") -> MelWav:
    """A tone in noise, and its mel."""
    generator = np.random.default_rng(number)
    times = np.arange(n_frames * MEL.hop_length) / MEL.sample_rate
    tone = 0.3 * np.sin(2 * np.pi * (200 + 150 * number) * times)
    wav = to_pcm16(tone + generator.uniform(-0.05, 0.05, len(times)))
    with torch.inference_mode():
        mel = MelSpectrogram(MEL)(torch.from_numpy(from_pcm16(wav))[None])[0].numpy()
    return MelWav(f"rec-{number:03d}", speaker, mel, wav)


def make_mel_wav_store(folder: Path, n_frames: Sequence[int] = FRAMES) -> MelWavStore:
    """Writes a dataset's folder as stage 1 does; the last four recordings do not train."""
    recordings = [make_mel_wav(number, frames) for number, frames in enumerate(n_frames)]
    write_finished(write_store(folder, MEL, recordings))
    ids = [recording.id for recording in recordings]
    files = {"train": ids[:-4], "valid": ids[-4:-2], "test": ids[-2:], "golden_test": ids[-2:]}
    files |= {"speakers": [{"name": "anna", "language": "en-us"}]}
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return MelWavStore(folder)
