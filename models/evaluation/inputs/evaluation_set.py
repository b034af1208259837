"""The evaluation set: utterances with the files of all systems and their references."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import soundfile

from models.base.result_files import COMPARISON
from models.evaluation.inputs import input_checks
from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions
from models.evaluation.inputs.references import (
    MissingRecordingError,
    Reference,
    ReferenceFinder,
    ReferenceSources,
)
from models.evaluation.inputs.resynthesis import COPY, add_copies
from models.evaluation.inputs.systems import (
    SystemFile,
    read_system_files,
    select_files,
    sound_files,
    system_names,
    vocoder_of,
)
from modules.mel import MelConfig
from processors.scoring.utterance_scorer import TOLERANCE_FRAMES, EvaluatedUtterance, SpeechFile
from utils.errors import InputError
from utils.files import user_path

NATURAL = "natural"  # second readings, as a system


class SystemTraits(NamedTuple):
    """Properties of a system that decide which metrics apply to it."""

    copies: bool  # its files match their recordings sample by sample
    recorded: bool  # there are recordings
    is_reference: bool = False  # it was added only to compare with
    texts: bool = True  # some texts are known


class EvaluationSet(NamedTuple):
    """What is scored."""

    folders: dict[str, Path]  # of systems, and then of references
    vocoders: dict[str, str]  # of systems only
    items: list[EvaluatedUtterance]  # ordered by id; those of second readings only come last
    output: Path  # for what concerns all systems

    def traits(self) -> dict[str, SystemTraits]:
        """Properties of each system and reference, by name."""
        traits = {}
        for name in self.folders:
            own = [item for item in self.items if name in item.spoken]
            traits[name] = SystemTraits(
                copies=all(item.spoken[name].is_copy for item in own),
                recorded=all(item.recorded is not None for item in own),
                is_reference=name not in self.vocoders,
                texts=any(item.text for item in own),
            )
        return traits


def build_evaluation_set(
    inputs: EvaluationInputs,
    options: EvaluationOptions,
    check: Callable[[Mapping[str, SystemTraits]], None] = lambda _traits: None,
) -> EvaluationSet:
    """Finds the files of all systems and their references; resynthesises recordings if needed.

    Args:
        inputs: Folders, and where references are.
        options: Which files, and which references to add.
        check: Refuses systems by their properties, before the long work of resynthesis.

    Raises:
        InputError: If a file or recording is missing, systems differ in their utterances, or a
            folder is not writable.
    """
    first, sources = inputs.folders[0], inputs.references
    folders = dict(zip(system_names(inputs.folders, (COPY, NATURAL)), inputs.folders, strict=True))
    output = options.folder or (first / COMPARISON if len(folders) > 1 else first)
    processed = user_path(sources.preprocess.processed_dir)
    split = options.dataset, options.testing_set, processed
    files = {
        name: select_files(read_system_files(folder), *split) for name, folder in folders.items()
    }
    vocoders = {name: vocoder_of(folders[name], files[name]) for name in folders}
    input_checks.check_folders(inputs.folders, options.folder)
    items = pair_files(files, sources)
    check(EvaluationSet(folders, vocoders, items, output).traits())
    with_copies = add_copies(items, set(vocoders.values()), inputs, options, output / COPY)
    if with_copies is not items:
        folders[COPY] = output / COPY
    if options.natural is None:
        return EvaluationSet(folders, vocoders, with_copies, output)
    folders[NATURAL] = options.natural
    readings = sound_files(options.natural, options.dataset or "")
    named = {one.dataset for several in files.values() for one in several} - {""}
    wider = replace(sources, datasets=tuple(sorted({*sources.datasets, *named})))
    return EvaluationSet(folders, vocoders, add_natural(with_copies, readings, wider), output)


def pair_files(
    systems: Mapping[str, Sequence[SystemFile]], sources: ReferenceSources
) -> list[EvaluatedUtterance]:
    """Pairs the files of systems with each other and with their references, by id.

    Args:
        systems: Files by the name of the system.
        sources: Where references are.

    Returns:
        Items in the order of their ids. Either all have a recording, or none has.

    Raises:
        InputError: If a file or recording is missing, systems differ in their utterances, or two
            files of a system have the same id; lists them.
    """
    input_checks.check_sounds([one for files in systems.values() for one in files])
    by_id = {name: _by_id(files) for name, files in systems.items()}
    input_checks.check_same_utterances(by_id)
    input_checks.check_texts(by_id, sources.texts)
    ids = sorted(next(iter(by_id.values())))
    by_utterance = {id: {name: files[id] for name, files in by_id.items()} for id in ids}
    return _paired(by_utterance, ReferenceFinder(sources), sources.preprocess.mel)


def add_natural(
    items: Sequence[EvaluatedUtterance], readings: Sequence[SystemFile], sources: ReferenceSources
) -> list[EvaluatedUtterance]:
    """Adds second readings by the speaker as the system `natural`.

    Args:
        items: The utterances of the systems.
        readings: Files named by the id of the sentence that they repeat.
        sources: Where references are.

    Returns:
        The items, then those of sentences that no system synthesised.

    Raises:
        InputError: If a reading has no recording to compare with, or is that recording itself.
    """
    finder, own = ReferenceFinder(sources), {one.id: {NATURAL: one} for one in readings}
    paired = _paired(own, finder, sources.preprocess.mel, "files of --natural")
    alone = [item.id for item in paired if item.recorded is None]
    input_checks.refuse(alone, "second readings have no data set; use --recordings", len(own))
    added = {}
    for one, item in zip(readings, paired, strict=True):
        if (audio := finder.find(one).audio) and audio.samefile(one.file):
            raise InputError(f"{one.file} is the recording itself, not a second reading")
        added[one.id] = replace(item, spoken={NATURAL: SpeechFile(one.file)})
    both = []
    for item in items:
        reading = added.pop(item.id).spoken if item.id in added else {}
        both.append(replace(item, spoken={**item.spoken, **reading}))
    return both + list(added.values())


def _by_id(files: Sequence[SystemFile]) -> dict[str, SystemFile]:
    by_id: dict[str, SystemFile] = {}
    for one in files:
        other = by_id.setdefault(one.id, one)
        if other is not one:
            raise InputError(f"{other.file} and {one.file}: one id, {one.id}; run stage 3")
    return by_id


def _paired(
    by_utterance: Mapping[str, Mapping[str, SystemFile]],
    finder: ReferenceFinder,
    mel: MelConfig,
    what: str = "files",
) -> list[EvaluatedUtterance]:
    """Items of files by id and system; `what` names the files in an error.

    Raises:
        InputError: If some have no recording; lists them.
    """
    found: dict[str, Reference] = {}
    missing = []
    for id, files in by_utterance.items():
        # a copy matches one recording sample by sample, as stage 1 cut it
        main = min(files.values(), key=lambda one: one.kind != "copy")
        try:
            found[id] = finder.find(main)
        except MissingRecordingError as error:
            missing.append(f"{id}: {error}")
    if missing or any(one.recorded is not None for one in found.values()):
        alone = [id for id, one in found.items() if one.recorded is None]
        missing += [f"{id}: of no data set; give --recordings" for id in alone]
    n = len(by_utterance)
    input_checks.refuse(missing, f"{what} have no recording to be compared with", n)
    copying = {
        name
        for name in next(iter(by_utterance.values()))
        if all(_is_copy(files[name], found[id], mel) for id, files in by_utterance.items())
    }
    items = []
    for id, one in found.items():
        spoken = {
            name: SpeechFile(file.file, file.phones, name in copying)
            for name, file in by_utterance[id].items()
        }
        facts = one.text, one.language, one.speaker, one.phones, spoken, one.written
        items.append(EvaluatedUtterance(id, one.recorded, *facts))
    return items


def _is_copy(one: SystemFile, reference: Reference, mel: MelConfig) -> bool:
    """Whether a file was resynthesised by stage 3, or is as long as its recording."""
    if one.kind != "file" or reference.audio is None:
        return one.kind == "copy"
    try:
        sound, recording = soundfile.info(one.file), soundfile.info(reference.audio)
    except soundfile.LibsndfileError:  # reported when it is read
        return False
    # one sample less than a copy may differ by: resampling rounds
    tolerance_s = (TOLERANCE_FRAMES * mel.hop_length - 1) / mel.sample_rate
    as_long = abs(sound.duration - recording.duration) <= tolerance_s
    return bool(sound.samplerate == mel.sample_rate and as_long)
