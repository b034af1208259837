"""Makes the feature store of stage 1 from a dump; the dump is only read.

The mels become natural logarithms. Utterances whose arrays do not fit together are left out, each
with its reason in `rejected.jsonl`.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from config.preprocess import PreprocessConfig
from config.schema import Config
from modules.mel import MelConfig
from preprocessors.manifest import Listing, Splits, Utterance, is_safe_id
from processors.audio.files import write_wav
from processors.dataset.store import processed_folder
from processors.extraction.features import FeatureError
from processors.extraction.fingerprint import ALIGNMENTS, Dependence
from processors.extraction.plan import Summary, plan_run
from processors.extraction.run import carry_out
from processors.extraction.shards import ShardWork, Trace
from processors.records import Features
from processors.tensorflowtts import layout
from processors.tensorflowtts.layout import DEFINITION, to_nats
from processors.text.symbols import ARPABET_PREFIX
from processors.text.voice_phones import nvidia_vocabulary
from utils.arrays import read_array
from utils.config import build_complete
from utils.errors import InputError
from utils.files import read_json, size_and_time

_READ = (layout.IDS, layout.RAW_MEL, layout.F0, layout.ENERGY, layout.WAV)


def import_dump(
    config: Config, dataset: str, dump: Path, durations_in: Path | None = None, n_cpus: int = 4
) -> Summary | None:
    """Writes the processed data of a dataset, on which stage 2 trains; None if they are up to date.

    With an aligner of stage 1, every utterance needs `U-durations.npy` in the folder `durations_in`
    (None: in `duration/` of the dump); with `learned` or `none` they are not read.
    """
    preprocess = config.preprocess
    _check(preprocess, dump)
    if durations_in is not None and not preprocess.has_aligner:
        fault = f"--durations is not read with preprocess.aligner {preprocess.aligner!r}"
        raise InputError(f"{fault}: leave it out, or set preprocess.aligner=imported")
    train, valid = (_read_ids(layout.ids_file(dump, name)) for name in layout.SPLITS)
    if both := sorted({*train} & {*valid}):
        raise InputError(f"{dump}: in train and in valid: {', '.join(both[:5])}")
    split_of = dict.fromkeys(train, "train") | dict.fromkeys(valid, "valid")
    durations = _find_durations(dump, durations_in, {*split_of}) if preprocess.has_aligner else None
    corpus = preprocess.corpus_of(dataset)
    folder = processed_folder(preprocess, dataset)
    utterances = [
        Utterance(
            id=id,
            audio=(folder / "wavs" / f"{id}.wav").resolve(),
            text=_text(layout.IDS.path(dump, split_of[id], id)),
            speaker=corpus.speaker or dataset,
            language="en-us",
            source=str(dump),
        )
        for id in sorted(split_of)
    ]
    reader = partial(DumpReader, dump, preprocess.mel, split_of, durations)

    def identity(utterance: Utterance) -> list[object]:
        files = [file.path(dump, split_of[utterance.id], utterance.id) for file in _READ]
        files += (durations or {}).get(utterance.id, [])
        stamps = (n for path in files for n in size_and_time(path))
        return [utterance.id, utterance.speaker, *stamps]

    work = ShardWork(reader, folder, preprocess.mel)
    dependence = Dependence("tts", ALIGNMENTS, identity, {"dump": str(dump)})
    run = plan_run(preprocess, dataset, Listing(utterances, [], []), dependence, work)
    return carry_out(replace(run, splits=Splits(train, valid, [], [])), n_cpus)


@dataclass(frozen=True)
class DumpReader:
    """Reads the utterances of a dump; built once per process."""

    dump: Path
    mel: MelConfig
    splits: dict[str, str]  # by id
    durations: dict[str, list[Path]] | None  # files by id; None: they are not needed

    def __call__(self, utterance: Utterance, trace: Trace) -> Features:
        """Reads the arrays of one utterance, and checks that they fit together."""
        id = utterance.id
        trace.part = "features"
        mel = self._read(layout.RAW_MEL, id)
        T, hop = len(np.atleast_1d(mel)), self.mel.hop_length
        f0, energy, wav = (self._read(file, id) for file in (layout.F0, layout.ENERGY, layout.WAV))
        arrays, expected = (mel, f0, energy, wav), [(T, self.mel.n_mels), (T,), (T,), (T * hop,)]
        shapes = [values.shape for values in arrays]
        if shapes != expected or not all(np.isfinite(values).all() for values in arrays):
            fault = f"mel, f0, energy and wave of shapes {', '.join(map(str, shapes))}"
            raise FeatureError(f"{fault}, expected {expected} without NaN")
        phones, durations = self._phones(id), None
        trace.audio_seconds = T * hop / self.mel.sample_rate
        write_wav(utterance.audio, wav.astype(np.float32), self.mel.sample_rate)
        trace.phones = trace.text_phones = phones
        if self.durations is not None:
            files = self.durations.get(id, [])
            if len(files) != 1:
                names = ", ".join(map(str, files)) or "none"
                raise FeatureError(f"files of its durations: {names}; expected one")
            durations = checked_durations(_read_numbers(files[0]), len(phones), T)
        return Features(
            id=id,
            speaker=utterance.speaker,
            phones=phones,
            durations=durations,
            mel=to_nats(mel),
            f0=f0.astype(np.float32),
            energy=energy.astype(np.float32),
        )

    def _read(self, file: layout.ArrayFile, id: str) -> np.ndarray:
        return _read_numbers(file.path(self.dump, self.splits[id], id))

    def _phones(self, id: str) -> tuple[str, ...]:
        ids = self._read(layout.IDS, id)
        if ids.ndim != 1 or ids.dtype.kind not in "iu" or not len(ids):
            raise FeatureError(f"ids of shape {ids.shape} and type {ids.dtype}, expected integers")
        symbols = nvidia_vocabulary(layout.SYMBOL_SET).symbols
        low, high = ids.min(), ids.max()
        if low < 1 or high >= len(symbols):
            raise FeatureError(f"ids from {low} to {high}, expected 1 to {len(symbols) - 1}")
        return tuple(symbols[number] for number in ids)


def _read_numbers(path: Path) -> np.ndarray:
    values = read_array(path)
    if values.dtype.kind not in "iuf":
        raise FeatureError(f"{path.name}: values of type {values.dtype}, expected numbers")
    return values


def checked_durations(values: np.ndarray, n_tokens: int, n_frames: int) -> np.ndarray:
    """Checks durations (N,), whose sum must be T; an eos without a duration gets 0 frames."""
    is_whole = values.ndim == 1 and np.isfinite(values).all() and (values == np.rint(values)).all()
    if not is_whole or values.min(initial=0) < 0:
        shape = f"durations of shape {values.shape}, at least {values.min(initial=0):g}"
        raise FeatureError(f"{shape}; expected whole numbers of frames from 0")
    frames = values.astype(np.int64)
    if len(frames) == n_tokens - 1:
        frames = np.append(frames, 0)
    if len(frames) != n_tokens or frames.sum() != n_frames:
        counts = f"{len(frames)} durations that sum to {frames.sum()} frames"
        raise FeatureError(f"{counts}, for {n_tokens} tokens and a mel of {n_frames}")
    return frames


def _check(config: PreprocessConfig, dump: Path) -> None:
    """Compares symbols and mel definition of the dump with those of the configuration."""
    if not dump.is_dir():
        raise InputError(f"{dump}: no such folder; --rootdir is the folder of a dump")
    path = dump / layout.MEL_DEFINITION
    stored = build_complete(MelConfig, read_json(path), path) if path.is_file() else DEFINITION
    layout.check_config(config, stored)
    mapper = read_json(dump / layout.MAPPER)
    ids = mapper.get("symbol_to_id") if isinstance(mapper, dict) else None
    symbols = layout.symbols()
    if ids != {symbol: id for id, symbol in enumerate(symbols)}:
        fault = f"its symbols are not the {len(symbols)} of TensorFlowTTS for LJ Speech"
        raise InputError(f"{dump / layout.MAPPER}: {fault}")


def _read_ids(path: Path) -> list[str]:
    ids = read_array(path)
    if ids.ndim != 1 or ids.dtype.kind != "U" or not all(map(is_safe_id, ids.tolist())):
        fault = f"{ids.dtype} of shape {ids.shape}"
        raise InputError(f"{path}: {fault}, expected a list of ids that are safe as file names")
    return sorted(ids.tolist())


def _find_durations(dump: Path, source: Path | None, ids: set[str]) -> dict[str, list[Path]]:
    """Returns files of durations by id, in whichever split they are."""
    roots = [source or dump / name / layout.DURATIONS.folder for name in layout.SPLITS]
    end = f"-{layout.DURATIONS.end}.npy"
    files: dict[str, list[Path]] = {}
    for path in sorted({path for root in roots for path in root.rglob(f"*{end}")}):
        files.setdefault(path.name.removesuffix(end), []).append(path)
    if not files.keys() & ids:
        remedy = "give their folder by --durations, or set preprocess.aligner to learned"
        raise InputError(f"{source or dump}: no durations of its utterances; {remedy}")
    return files


def _text(path: Path) -> str:
    """Returns text of the symbols in a file; empty if it cannot be read."""
    symbols = layout.symbols()
    try:
        names = [symbols[number] for number in read_array(path).tolist()]
    except (InputError, IndexError, TypeError):
        return ""  # the utterance is left out when its features are read
    if names[-1:] == ["eos"]:
        names.pop()
    return "".join(f"{{{name[1:]}}}" if name.startswith(ARPABET_PREFIX) else name for name in names)
