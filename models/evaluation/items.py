"""Utterances as they are scored: the files of several systems beside their recordings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import soundfile

from models.evaluation.inputs import SHOWN, Result, refuse
from models.evaluation.references import Finder, Found, MissingError, References
from modules.mel import MelConfig
from processors.scoring.utterance_scorer import TOLERANCE_FRAMES, EvaluatedUtterance, SpeechFile
from utils.errors import InputError

NATURAL = "natural"  # second readings, as a system


def items_of(
    systems: Mapping[str, Sequence[Result]], references: References
) -> list[EvaluatedUtterance]:
    """Pairs the files of systems with each other and with recordings, by their ids.

    Args:
        systems: Their files, by the name of the system.
        references: Where the recordings are.

    Returns:
        Items in the order of their ids. All have a recording, or none has.

    Raises:
        InputError: If a file or a recording is missing, systems have not spoken the same, or two
            files of a system have one id; lists them.
    """
    results = [result for files in systems.values() for result in files]
    missing = [str(result.file) for result in results if not result.file.is_file()]
    refuse(
        missing,
        f"{len(missing)} of {len(results)} files that stage 3 wrote are missing; run it again",
    )
    broken = [f"{result.file}: {fault}" for result in results if (fault := _fault(result.file))]
    refuse(broken, f"{len(broken)} of {len(results)} files are no sound; make them again")
    by_id = {name: _by_id(files) for name, files in systems.items()}
    _check_same(by_id)
    _check_texts(by_id, references.texts)
    ids = sorted(next(iter(by_id.values())))
    together = {id: {name: files[id] for name, files in by_id.items()} for id in ids}
    return _paired(together, Finder(references), references.preprocess.mel)


def with_natural(
    items: Sequence[EvaluatedUtterance], readings: Sequence[Result], references: References
) -> list[EvaluatedUtterance]:
    """Adds second readings by the speaker, each beside the recording of the same sentence.

    Args:
        items: What the systems spoke.
        readings: Files named by the id of the utterance that they repeat.
        references: Where the recordings are.

    Returns:
        The items, and others for readings of what no system spoke.

    Raises:
        InputError: If a reading has no recording, or is that.
    """
    own, finder = {result.id: result for result in readings}, Finder(references)
    mel = references.preprocess.mel
    alone_as = {id: {NATURAL: result} for id, result in own.items()}
    added = _paired(alone_as, finder, mel, "files of --natural")
    alone = [item.id for item in added if item.recorded is None]
    refuse(
        alone,
        f"{len(alone)} of {len(own)} second readings are of no data set; give --recordings",
    )
    for result in own.values():
        if (audio := finder.find(result).audio) and audio.samefile(result.file):
            raise InputError(f"{result.file} is the recording itself, and no second reading")
    spoken = {id: SpeechFile(result.file) for id, result in own.items()}
    known = {item.id for item in items}
    both = [
        replace(item, spoken={**item.spoken, NATURAL: spoken[item.id]}) if item.id in own else item
        for item in items
    ]
    others = [
        replace(item, spoken={NATURAL: spoken[item.id]}) for item in added if item.id not in known
    ]
    return both + others


def _paired(
    together: Mapping[str, Mapping[str, Result]],
    finder: Finder,
    mel: MelConfig,
    what: str = "files",
) -> list[EvaluatedUtterance]:
    """Items of files that are there, by id and system; `what` they are called in an error.

    Raises:
        InputError: If some have no recording; lists them.
    """
    found: dict[str, Found] = {}
    missing = []
    for id, files in together.items():
        # a copy stands for one recording sample by sample, as stage 1 cut it
        main = min(files.values(), key=lambda result: result.kind != "copy")
        try:
            found[id] = finder.find(main)
        except MissingError as error:
            missing.append(f"{id}: {error}")
    if missing or any(one.recorded is not None for one in found.values()):
        alone = [id for id, one in found.items() if one.recorded is None]
        missing += [f"{id}: of no data set; give --recordings" for id in alone]
    refuse(
        missing, f"{len(missing)} of {len(together)} {what} have no recording to be compared with"
    )
    copying = _copying(together, found, mel)
    return [
        EvaluatedUtterance(
            id,
            one.recorded,
            one.text,
            one.language,
            one.speaker,
            one.phones,
            {
                name: SpeechFile(result.file, result.phones, name in copying)
                for name, result in together[id].items()
            },
            one.written,
        )
        for id, one in found.items()
    ]


def _fault(file: Path) -> str:
    """What is wrong with a sound file, by its header; empty if nothing is."""
    try:
        return "" if soundfile.info(file).frames else "holds no sample"
    except soundfile.LibsndfileError as error:
        return str(error.error_string)
    except UnicodeEncodeError:
        return "its name is not UTF-8, so that libsndfile cannot open it; rename it"


def _by_id(files: Sequence[Result]) -> dict[str, Result]:
    by_id: dict[str, Result] = {}
    for result in files:
        other = by_id.setdefault(result.id, result)
        if other is not result:
            raise InputError(f"{other.file} and {result.file}: one id, {result.id}; run stage 3")
    return by_id


def _check_same(systems: Mapping[str, Mapping[str, Result]]) -> None:
    """Makes sure that systems have spoken the same.

    Raises:
        InputError: If not; lists what is missing where, or is another text.
    """
    first, *others = systems
    every = sorted({id for files in systems.values() for id in files})
    lines = []
    for name, files in systems.items():
        if lacking := [id for id in every if id not in files]:
            more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
            lines.append(f"{name}: {', '.join(lacking[:SHOWN])}{more}")
    refuse(
        lines,
        "only the same utterances can be compared; speak them, or choose some by --infer_dataset "
        "and --infer_testing_set; missing are, of",
    )
    for name in others:
        for id, result in systems[name].items():
            text = systems[first][id].text
            if text and result.text and text != result.text:
                lines.append(f"{id}: {first} {text!r}, {name} {result.text!r}")
    refuse(lines, "systems that spoke other texts under the same name cannot be compared")


def _check_texts(
    systems: Mapping[str, Mapping[str, Result]], texts: Mapping[str, str] | None
) -> None:
    if texts is None:
        return
    ids = {one.id for files in systems.values() for one in files.values() if one.kind == "file"}
    lacking = sorted(ids - texts.keys())
    refuse(lacking, f"{len(lacking)} of {len(ids)} files have no text in the table of --texts")


def _copying(
    together: Mapping[str, Mapping[str, Result]], found: Mapping[str, Found], mel: MelConfig
) -> set[str]:
    """Systems all of whose files stand for the recordings sample by sample.

    Those are copies that stage 3 wrote, and files from anywhere that are all as long as their
    recordings.
    """
    names = next(iter(together.values()))
    return {
        name
        for name in names
        if all(_is_copy(files[name], found[id], mel) for id, files in together.items())
    }


def _is_copy(result: Result, found: Found, mel: MelConfig) -> bool:
    if result.kind != "file" or found.audio is None:
        return result.kind == "copy"
    try:
        sound, recording = soundfile.info(result.file), soundfile.info(found.audio)
    except soundfile.LibsndfileError:  # whoever reads it says what is wrong
        return False
    # one sample less than a copy may differ by: resampling rounds
    tolerance_s = (TOLERANCE_FRAMES * mel.hop_length - 1) / mel.sample_rate
    in_step = abs(sound.duration - recording.duration) <= tolerance_s
    return bool(sound.samplerate == mel.sample_rate and in_step)
