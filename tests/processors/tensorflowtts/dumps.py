"""Small dumps."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from config.preprocess import SplitConfig
from config.schema import Config
from config.text import TextConfig
from processors.tensorflowtts import layout
from processors.tensorflowtts.exporting import export_dump
from tests.processors.small_corpus import config_of
from utils.arrays import write_array
from utils.files import sha256_of

IDS = ["LJ001-0002", "LJ001-0008", "LJ001-0013", "LJ002-0020", "LJ011-0202"]


def dump_config(root: Path, processed: Path, **keys: object) -> Config:
    """An experiment with the mel and the symbols of a dump."""
    text = TextConfig(phone_extractor="tensorflowtts_english", p_arpabet=0.0)
    mel = {"f_min": 80.0, "f_max": 7600.0, "log_floor": 1e-10}
    usual = {"text": text, "aligner": "learned", "split": SplitConfig()}
    return config_of(root, processed, **{**mel, **usual, **keys})


def export(corpus: Path, outdir: Path, n_cpus: int = 1, **keys: object) -> Path:
    """Writes the dump of a corpus."""
    config = dump_config(corpus, outdir, **keys)
    config = replace(config, dataset_path={"LJSpeech": "elsewhere"})
    export_dump(config, "LJSpeech", corpus, outdir, n_cpus=n_cpus, test_size=0.3, seed=42)
    return outdir


def add_durations(dump: Path, folder: Path, *, eos: bool = True) -> dict[str, np.ndarray]:
    """Writes durations of each utterance into a folder, in another split than that of the dump."""
    written = {}
    for split in layout.SPLITS:
        for id in np.load(layout.ids_file(dump, split)):
            n_tokens = len(np.load(layout.IDS.path(dump, split, id))) - (not eos)
            n_frames = len(np.load(layout.RAW_MEL.path(dump, split, id)))
            frames = np.full(n_tokens, n_frames // n_tokens, dtype=np.int32)
            frames[: n_frames % n_tokens] += 1
            other = layout.SPLITS[split == "train"]
            write_array(folder / other / "durations" / f"{id}-durations.npy", frames)
            written[str(id)] = frames
    return written


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of each file, by its place."""
    paths = filter(Path.is_file, sorted(folder.rglob("*")))
    return {str(path.relative_to(folder)): sha256_of(path) for path in paths}
