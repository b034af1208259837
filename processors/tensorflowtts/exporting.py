"""Writes a dump from a corpus: the same bytes with any number of processes.

The mel is that of `DEFINITION` in log10, with one frame more, on the end of the audio or the hop
before it: T is 1 + S // hop, as librosa counts. F0 and energy beyond 1.5 interquartile ranges
of the quartiles take the largest of the other values.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Literal, cast

import numpy as np
import torch

from config.preprocess import PreprocessConfig
from config.schema import Config
from modules.mel import MelSpectrogram
from preprocessors.manifest import Rejection, Utterance
from processors.audio.pitch import extract_f0
from processors.extraction import shards
from processors.extraction.plan import check_faults, list_corpus
from processors.tensorflowtts import layout
from processors.tensorflowtts.layout import DEFINITION, ArrayFile, to_log10
from processors.text.voice_phones import nvidia_vocabulary
from utils.arrays import write_array
from utils.errors import InputError
from utils.files import new_folder, write_json
from utils.logging import get_logger, progress
from utils.parallel import run_chunks

_log = get_logger(__name__)

_CHUNK = 50  # utterances that a process works on at a time
SplitOfId = dict[str, str]  # "train" or "valid", by id


def trim(wav: np.ndarray) -> np.ndarray:
    """Removes the edges that are 60 dB below the loudest part, (S,) -> (<= S,)."""
    import librosa  # takes a second

    # TensorFlowTTS's values
    trimmed, _ = librosa.effects.trim(wav, top_db=60.0, frame_length=2048, hop_length=512)
    return np.asarray(trimmed)


def analyse(
    wav: np.ndarray, spectrogram: MelSpectrogram, config: PreprocessConfig
) -> dict[ArrayFile, np.ndarray]:
    """Extracts the features of trimmed audio, (S,) float32, of at least one analysis window."""
    mel = spectrogram.config
    n_frames = 1 + len(wav) // mel.hop_length
    # the reflection at the end is that of the audio, so that the frame beyond it is librosa's
    reflected = np.pad(wav, (0, mel.n_fft // 2), mode="reflect")
    with torch.inference_mode():
        log_mel, energy = spectrogram.mel_and_energy(torch.from_numpy(reflected)[None])
    method = cast("Literal['parselmouth', 'pyworld']", config.pitch_extractor)
    f0 = extract_f0(wav, mel, n_frames, method=method, f0_min=config.f0_min, f0_max=config.f0_max)
    return {
        layout.RAW_MEL: to_log10(log_mel[0, :, :n_frames].numpy()),
        layout.F0: capped(f0),
        layout.ENERGY: capped(energy[0, :n_frames].numpy()),
        layout.WAV: np.pad(wav, (0, mel.n_fft), mode="edge")[: n_frames * mel.hop_length],
    }


def capped(values: np.ndarray) -> np.ndarray:
    """Replaces values beyond Tukey's fences, (T,), by the largest of the others."""
    low, high = np.percentile(values, [25, 75])
    margin = 1.5 * (high - low)
    outliers = (values <= low - margin) | (values >= high + margin)
    return np.where(outliers, values[~outliers].max(initial=0.0), values).astype(np.float32)


def export_dump(
    config: Config,
    dataset: str,
    rootdir: Path,
    outdir: Path,
    *,
    n_cpus: int = 4,
    test_size: float = 0.05,
    seed: int = 1234,
) -> None:
    """Writes the dump of a corpus, complete or not at all; `test_size` is the share of `valid`."""
    preprocess = config.preprocess
    layout.check_config(preprocess, DEFINITION)
    if preprocess.pitch_extractor == "imported":
        fault = "preprocess.pitch_extractor is imported"
        raise InputError(f"{fault}; a dump has that of the recordings: set parselmouth or pyworld")
    complete_config = replace(config, dataset_path={**config.dataset_path, dataset: str(rootdir)})
    _, listing = list_corpus(complete_config, dataset)
    utterances = listing.utterances
    split = split_of([utterance.id for utterance in utterances], test_size, seed)
    with new_folder(outdir) as folder:
        rejected = list(listing.rejected)
        chunks = {f"{n}": utterances[n : n + _CHUNK] for n in range(0, len(utterances), _CHUNK)}
        extract = partial(_extract, preprocess, folder, split)
        with progress(len(utterances), "features") as bar:
            for done in run_chunks(extract, chunks, n_cpus, preprocess.backend):
                rejected += [*done.result, *shards.crash_rejections(done.lost, "features")]
                bar.advance(len(chunks[done.key]))
        reasons = [f"{item.id}: {item.reason}" for item in sorted(rejected)]
        what = f"{len(reasons)} of {len(utterances)} utterances cannot be used"
        check_faults(what, reasons, len(utterances), preprocess.max_bad_ratio)
        for rejection in rejected:
            split.pop(rejection.id, None)
        _finish(folder, split, preprocess)
    counts = [list(split.values()).count(name) for name in layout.SPLITS]
    _log.info("%d train, %d valid: %s", *counts, outdir)


def split_of(ids: Sequence[str], test_size: float, seed: int) -> SplitOfId:
    """Returns splits as scikit-learn's `train_test_split`, which TensorFlowTTS uses.

    The number of `valid` is rounded up. Returns `train` or `valid` by id, in the shuffled order.
    """
    n_valid = math.ceil(test_size * len(ids))
    if not 0 < n_valid < len(ids):
        fault = f"--test_size {test_size:g} puts {n_valid} of {len(ids)} utterances into valid"
        raise InputError(f"{fault}; at least one must be there, and one in train")
    order = np.random.RandomState(seed).permutation(len(ids))  # as the original
    return {ids[index]: "valid" if n < n_valid else "train" for n, index in enumerate(order)}


def _extract(
    config: PreprocessConfig, folder: Path, split: SplitOfId, _key: str, utterances: list[Utterance]
) -> list[Rejection]:
    """Writes the arrays of some utterances, and returns those that cannot be used."""
    extractor = shards.once_per_process(partial(_Extractor, config), repr(config))
    extractor.reader.prepare(utterances)
    rejected: list[Rejection] = []
    for utterance in utterances:
        arrays = shards.extract_or_reject(extractor, utterance, shards.Trace(), rejected) or {}
        for file, values in arrays.items():
            write_array(file.path(folder, split[utterance.id], utterance.id), values)
    return rejected


class _Extractor:
    """Built once per process."""

    def __init__(self, config: PreprocessConfig) -> None:
        self.config = config
        self.reader = shards.UtteranceReader(config)
        self.spectrogram = MelSpectrogram(config.mel)
        self.vocabulary = nvidia_vocabulary(layout.SYMBOL_SET)

    def __call__(self, utterance: Utterance, trace: shards.Trace) -> dict[ArrayFile, np.ndarray]:
        """Reads an utterance, and computes its features."""
        wav, spoken = self.reader.read(utterance, trace)
        trace.part = "features"
        trimmed = trim(wav)
        if len(trimmed) < self.config.n_fft:
            fault = f"{len(trimmed)} samples of speech are fewer than one analysis window"
            raise InputError(f"{fault} of {self.config.n_fft}")
        ids = np.array(self.vocabulary.ids(spoken.phones), dtype=np.int32)
        return {layout.IDS: ids, **analyse(trimmed, self.spectrogram, self.config)}


def _finish(folder: Path, split: SplitOfId, config: PreprocessConfig) -> None:
    """Writes statistics, normalised mels, and the files of the whole dump."""
    train = sorted(id for id, name in split.items() if name == "train")
    if not train:
        raise InputError("no usable utterance is left in train")

    def arrays(file: ArrayFile) -> Iterator[np.ndarray]:
        for id in train:
            values = np.load(file.path(folder, "train", id)).astype(np.float64)
            yield values if file == layout.RAW_MEL else values[values != 0][:, None]

    mel_stats = mean_and_scale(partial(arrays, layout.RAW_MEL))
    write_array(folder / layout.STATS, mel_stats)
    for name, file in ((layout.STATS_F0, layout.F0), (layout.STATS_ENERGY, layout.ENERGY)):
        write_array(folder / name, mean_and_scale(partial(arrays, file)))
    mean, scale = mel_stats
    symbols = layout.symbols()
    lengths = {"max_seq_length": 0, "max_mel_length": 0, "vocab_size": len(symbols)}
    for id, name in split.items():
        mel = np.load(layout.RAW_MEL.path(folder, name, id))
        write_array(layout.NORM_MEL.path(folder, name, id), (mel - mean) / scale)
        ids = np.load(layout.IDS.path(folder, name, id))
        for key, values in (("max_seq_length", ids), ("max_mel_length", mel)):
            lengths[key] = max(lengths[key], len(values))
    for name in layout.SPLITS:
        ids = np.array([id for id, split_of_id in split.items() if split_of_id == name])
        write_array(layout.ids_file(folder, name), ids)
    write_json(folder / layout.LENGTHS, lengths)
    write_json(folder / layout.MEL_DEFINITION, asdict(config.mel))
    (folder / layout.VOCABULARY).write_text("".join(f"{s}\n" for s in symbols), encoding="utf-8")
    mapper = {
        "symbol_to_id": {symbol: id for id, symbol in enumerate(symbols)},
        "id_to_symbol": {str(id): symbol for id, symbol in enumerate(symbols)},
        "speakers_map": {"ljspeech": 0},
        "processor_name": "LJSpeechProcessor",
    }
    write_json(folder / layout.MAPPER, mapper)


def mean_and_scale(arrays: Callable[[], Iterable[np.ndarray]]) -> np.ndarray:
    """Returns means and standard deviations over all rows, in two passes, (2, K) float32.

    `arrays` gives the same arrays, (rows, K), at each call. A deviation of 0 becomes 1.
    """
    count, total = 0, np.zeros(1)
    for values in arrays():
        count, total = count + len(values), total + values.sum(axis=0)
    mean = total / max(count, 1)
    deviation = np.zeros(1)
    for values in arrays():
        deviation = deviation + np.square(values - mean).sum(axis=0)
    scale = np.sqrt(deviation / max(count, 1))
    return np.stack([mean, np.where(scale > 0, scale, 1.0)]).astype(np.float32)
