"""What stage 3 writes, without a model: for the tests of stage 4."""

from pathlib import Path

import numpy as np

from config.preprocess import PreprocessConfig
from models.synthesizer.runs.results import CopyLine, ResultFolder, TextLine
from preprocessors.manifest import Utterance, write_manifest
from processors.audio.files import write_wav
from processors.audio.frames import from_pcm16
from processors.dataset.store import MelWavStore
from processors.records import TimedPhone
from tests.processors.mel_wavs import make_mel_wav_store

RATE = 8000
TEXT = "One two, three!"


def preprocess_of(root: Path) -> PreprocessConfig:
    """Stage 1 of recordings at a low rate, in `root`/data."""
    return PreprocessConfig(
        processed_dir=str(root / "data"),
        sample_rate=RATE,
        n_fft=256,
        win_length=256,
        hop_length=64,
        n_mels=8,
        f_max=4000,
        mel_padding="hifigan",
        backend="sequential",
    )


def make_store(root: Path, dataset: str = "Anna", text: str = TEXT) -> MelWavStore:
    """A prepared dataset, whose corpus is there too."""
    folder = root / "data" / dataset
    store = make_mel_wav_store(folder)
    audio = {id: root / "corpus" / f"{id}.wav" for id in store.ids}
    for id, path in audio.items():
        write_wav(path, from_pcm16(store.read(id).wav), RATE)
    utterances = [Utterance(id, audio[id], text, "anna") for id in store.ids]
    write_manifest(folder / "manifest.jsonl", utterances)
    return store


def copy_line(id: str, source: Path, **changes: str) -> CopyLine:
    """The line about one copy."""
    texts = {"dataset": "Anna", "vocoder": "a vocoder"} | changes
    return CopyLine(
        id=id,
        file=f"{id}.wav",
        mel_source=str(source),
        seconds=1.0,
        real_time_factor=0.1,
        mel_l1=None,
        **texts,
    )


def text_line(id: str, phones: tuple[TimedPhone, ...] = (), **changes: str) -> TextLine:
    """The line about one spoken text."""
    texts = {"dataset": "Anna", "speaker": "anna", "vocoder": "Griffin-Lim", "text": TEXT} | changes
    return TextLine(
        id=id,
        file=f"{id}.wav",
        normalized="one two, three!",
        seconds=1.0,
        real_time_factor=0.1,
        words=(),
        phones=phones,
        out_of_vocabulary=[],
        **texts,
    )


def write_results(
    folder: Path, lines: list[TextLine] | list[CopyLine], wavs: list[np.ndarray]
) -> None:
    """Sound files and metadata.jsonl."""
    results: ResultFolder = ResultFolder(folder, type(lines[0]))
    line: TextLine | CopyLine
    for line, wav in zip(lines, wavs, strict=True):
        write_wav(folder / line.file, wav, RATE)
        results.add(line)
    results.save()


def write_copies(root: Path, store: MelWavStore, level: float = 0.5) -> Path:
    """Copies of the test split at another level."""
    ids = store.ids[-2:]
    wavs = [level * from_pcm16(store.read(id).wav) for id in ids]
    write_results(root / "out", [copy_line(id, store.folder) for id in ids], wavs)
    return root / "out"
