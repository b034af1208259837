"""The evaluation set: utterances with the files of all systems and their references."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import soundfile

from models.base.results import COMPARISON
from models.evaluation.inputs import references, systems
from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions
from models.evaluation.inputs.references import COPY, MissingRecordingError, ReferenceFinder
from models.evaluation.inputs.systems import SystemFile
from modules.mel import MelConfig
from processors.extraction.fingerprint import check_prepared
from processors.metrics.utterance_scorer import (
    RECORDED,
    TOLERANCE_FRAMES,
    EvaluatedUtterance,
    SpeechFile,
)
from utils.errors import InputError, refuse
from utils.files import user_path

NATURAL = "natural"  # second readings, as a system


class EvaluationSet(NamedTuple):
    """What is scored."""

    folders: dict[str, Path]  # of systems, and then of references
    vocoders: dict[str, str]  # of systems only
    items: list[EvaluatedUtterance]  # ordered by id; those of second readings only come last
    output: Path  # for what concerns all systems
    datasets: frozenset[str] = frozenset()  # of the files


def pair_systems(inputs: EvaluationInputs, options: EvaluationOptions) -> EvaluationSet:
    """Finds the files of all systems and their recordings, without added references."""
    names = systems.system_names(inputs.folders, (COPY, NATURAL, RECORDED))
    folders = dict(zip(names, inputs.folders, strict=True))
    output = options.folder or inputs.folders[0] / (COMPARISON if len(folders) > 1 else "")
    if options.dataset is not None and options.testing_set is not None:
        check_prepared(inputs.preprocess, options.dataset, task=None)
    processed = user_path(inputs.preprocess.processed_dir)
    files: dict[str, Sequence[SystemFile]] = {}
    for name, folder in folders.items():
        written = systems.read_system_files(folder)
        files[name] = systems.select_files(written, options.dataset, options.testing_set, processed)
    vocoders = {name: systems.vocoder_of(folders[name], files[name]) for name in folders}
    systems.make_folders((*inputs.folders, output))
    datasets = frozenset(file.dataset for rows in files.values() for file in rows) - {""}
    return EvaluationSet(folders, vocoders, pair_files(files, inputs), output, datasets)


def add_references(
    data: EvaluationSet, inputs: EvaluationInputs, options: EvaluationOptions
) -> EvaluationSet:
    """Adds resynthesised recordings and second readings, as far as they are wanted."""
    folders, folder = data.folders, data.output / COPY
    items = references.add_copies(data.items, set(data.vocoders.values()), inputs, options, folder)
    if items is not data.items:
        folders = folders | {COPY: folder}
    if options.natural is not None:
        folders = folders | {NATURAL: options.natural}
        datasets = tuple(sorted({*inputs.datasets, *data.datasets}))
        readings = systems.sound_files(options.natural, options.dataset or "")
        items = add_natural(items, readings, replace(inputs, datasets=datasets))
    return data._replace(folders=folders, items=items)


def pair_files(
    files_by_system: Mapping[str, Sequence[SystemFile]], inputs: EvaluationInputs
) -> list[EvaluatedUtterance]:
    """Pairs files of systems and references, ordered by id; all have a recording, or none has."""
    paths = [file.file for files in files_by_system.values() for file in files]
    broken = [f"{path}: {fault}" for path in paths if (fault := systems.fault_of(path))]
    refuse(broken, "files cannot be read as audio; make them again", len(paths))
    by_id = {name: {file.id: file for file in files} for name, files in files_by_system.items()}
    systems.check_same_utterances(by_id)
    ids = sorted(next(iter(by_id.values())))
    return _paired({id: {s: files[id] for s, files in by_id.items()} for id in ids}, inputs)


def add_natural(
    items: Sequence[EvaluatedUtterance], readings: Sequence[SystemFile], inputs: EvaluationInputs
) -> list[EvaluatedUtterance]:
    """Adds second readings as the system `natural`; sentences that only they have come last."""
    reading_of = {file.id: file for file in readings}
    item_ids = {item.id for item in items}
    others = {id: {NATURAL: file} for id, file in reading_of.items() if id not in item_ids}
    both = [*items, *(_paired(others, inputs, "files of --natural") if others else ())]
    alone = [item.id for item in both if item.id in reading_of and item.recorded is None]
    refuse(alone, "second readings have no dataset; use --recordings", len(reading_of))
    for n, item in enumerate(both):
        if file := reading_of.get(item.id):
            if item.audio and item.audio.samefile(file.file):
                raise InputError(f"{file.file} is the recording itself, not a second reading")
            # of its own timing, however long it is
            both[n] = replace(item, spoken={**item.spoken, NATURAL: SpeechFile(file.file)})
    return both


def _paired(
    by_utterance: Mapping[str, Mapping[str, SystemFile]],
    inputs: EvaluationInputs,
    what: str = "files",
) -> list[EvaluatedUtterance]:
    """Returns items of files by id and system; `what` names the files in an error."""
    finder, items, missing = ReferenceFinder(inputs), list[EvaluatedUtterance](), []
    for id, files in by_utterance.items():
        # a copy matches one recording sample by sample, as stage 1 cut it
        main = min(files.values(), key=lambda file: file.kind != "copy")
        try:
            items.append(finder.find(main))
        except MissingRecordingError as error:
            missing.append(f"{id}: {error}")
    alone = [f"{i.id}: of no dataset; give --recordings" for i in items if i.recorded is None]
    if missing or len(alone) < len(items):
        missing += alone
    refuse(missing, f"{what} have no recording to be compared with", len(by_utterance))
    mel = inputs.preprocess.mel
    spoken: dict[str, dict[str, SpeechFile]] = {item.id: {} for item in items}
    for name in next(iter(by_utterance.values())):
        files = {item.id: by_utterance[item.id][name] for item in items}
        is_copy = all(_is_copy(files[item.id], item.audio, mel) for item in items)
        for id, file in files.items():
            spoken[id][name] = SpeechFile(file.file, file.phones, is_copy)
    return [replace(item, spoken=spoken[item.id]) for item in items]


def _is_copy(file: SystemFile, audio: Path | None, mel: MelConfig) -> bool:
    """Returns whether a file was resynthesised by stage 3, or is as long as its recording."""
    if file.kind != "file" or audio is None:
        return file.kind == "copy"
    try:
        sound, recording = soundfile.info(file.file), soundfile.info(audio)
    except soundfile.LibsndfileError:  # reported when it is read
        return False
    # one sample less than a copy may differ by: resampling rounds
    tolerance_s = (TOLERANCE_FRAMES * mel.hop_length - 1) / mel.sample_rate
    as_long = abs(sound.duration - recording.duration) <= tolerance_s
    return bool(sound.samplerate == mel.sample_rate and as_long)


def transcripts_by_system(data: EvaluationSet, folder: Path | None) -> dict[str, Path]:
    """Returns folders of transcripts by system; recordings and references may have none."""
    if folder is None:
        return {}
    folders = {name: folder / name for name in (*data.folders, RECORDED)}
    if len(data.vocoders) == 1:
        folders |= dict.fromkeys(data.vocoders, folder)
    for name in data.vocoders:
        if not folders[name].is_dir():
            raise InputError(f"--transcripts: {folders[name]} is missing, for the system {name}")
    return folders
