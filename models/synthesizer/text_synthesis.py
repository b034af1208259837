"""Stage 3 of acoustic models: synthesises texts, and writes wavs, plots and metadata."""

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from models.base.plots import plot_synthesis
from models.base.result_files import SINGLE
from models.synthesizer.alignments import write_alignments
from models.synthesizer.fingerprint import fingerprint
from models.synthesizer.metadata import ResultFolder, TextLine
from models.synthesizer.speech import Speech
from models.synthesizer.synthesis_run import (
    SynthesisResult,
    TestingSet,
    default_output,
    synthesise_each,
    utterances_of,
)
from models.synthesizer.synthesizer import Controls, Synthesizer, choose_speaker
from processors.audio.files import write_wav
from utils.errors import InputError
from utils.files import read_text, user_path

_NUMBERED = re.compile(r"text-(\d+)")


@dataclass(frozen=True)
class Settings:
    """How texts are synthesised."""

    speaker: str | None = None  # None: the model's only one; in batch mode, as recorded
    pitch_control: float = 1.0
    energy_control: float = 1.0
    duration_control: float = 1.0
    seed: int = 0


class TextItem(NamedTuple):
    """One text to be synthesised into one file."""

    id: str
    text: str
    speaker: str
    dataset: str = ""  # of a recorded sentence; empty for the user's own text
    fingerprint: str = ""
    place: str = ""  # of the text in the user's file, for messages


class TextSynthesis(NamedTuple):
    """A loaded model, its output folder and settings."""

    synthesizer: Synthesizer
    vocoder: str  # name, for the records
    output: Path
    alignment: str | None = None  # format of the alignments next to the wavs; None: there are none
    overwrite: bool = False  # repeat what is finished with the same model and settings


def load_text_synthesis(
    reference: str | Path,
    vocoder: str | None,
    output: Path | None,
    overrides: Sequence[str],
    *,
    resample: bool = False,
) -> TextSynthesis:
    """Loads a model on the GPU, where there is one.

    Args:
        reference: Experiment folder, a checkpoint in it, or a name on the Hub.
        vocoder: The same for a vocoder, or "griffin_lim"; None: the bundled one where it fits.
        output: Folder of the wavs; None: `result` in the experiment's folder.
        overrides: `key.path=value` for the experiment's own configuration.
        resample: Use the vocoder also if it was made for another mel or sample rate.

    Raises:
        InputError: If anything cannot be loaded, or the output must be named and is not.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    synthesizer = Synthesizer(reference, vocoder, device, resample=resample, overrides=overrides)
    return TextSynthesis(
        synthesizer,
        synthesizer.vocoder_name,
        output or default_output(reference, synthesizer.model.home),
    )


def synthesise_texts(
    synthesis: TextSynthesis,
    texts: Sequence[str],
    settings: Settings,
    places: Sequence[str] | None = None,
) -> None:
    """Mode `single`: synthesises texts into `<output>/single/text-0001.wav` and so on.

    Args:
        synthesis: Model and output.
        texts: Of the user.
        settings: Speaker, controls and seed.
        places: Where each text is in the user's file, for messages.

    Raises:
        InputError: If the speaker is unknown, or a text could not be synthesised (the others
            are made).
    """
    speakers = synthesis.synthesizer.speakers
    speaker = speakers[choose_speaker(speakers, settings.speaker)].name
    results = ResultFolder(synthesis.output / SINGLE, TextLine)
    ids = assign_ids(results, texts, speaker, settings)
    items = [
        TextItem(id, text, speaker, place=place)
        for id, text, place in zip(ids, texts, places or [""] * len(texts), strict=True)
    ]
    _synthesise_all(synthesis, items, results, settings)


def synthesise_dataset(
    synthesis: TextSynthesis, dataset: str, testing_set: TestingSet, settings: Settings
) -> None:
    """Mode `batch`: synthesises the texts of a prepared data set into `<output>/<id>.wav`.

    Each has the speaker of its recording, unless the settings name one.

    Args:
        synthesis: Model and output.
        dataset: Name.
        testing_set: Its split.
        settings: Speaker, controls and seed.

    Raises:
        InputError: If stage 1 did not prepare the data set, the speaker is unknown, or a text
            could not be synthesised (the others are made).
    """
    speaker = settings.speaker
    if speaker is not None:
        speakers = synthesis.synthesizer.speakers
        speaker = speakers[choose_speaker(speakers, speaker)].name
    processed = user_path(synthesis.synthesizer.config.preprocess.processed_dir)
    items = [
        TextItem(utterance.id, utterance.text, speaker or utterance.speaker, dataset)
        for utterance in utterances_of(processed, dataset, testing_set)
    ]
    results = ResultFolder(synthesis.output, TextLine)
    results.check_dataset(dataset, [item.id for item in items])
    _synthesise_all(synthesis, items, results, settings)


def read_texts(path: Path) -> dict[str, str]:
    """Reads the texts of a file, one a line, by their places; empty lines are left out.

    Raises:
        InputError: If the file cannot be read, is not UTF-8, or holds no text.
    """
    lines = enumerate(read_text(path).split("\n"), start=1)
    texts = {f"{path.name}, line {n}": text for n, line in lines if (text := line.strip())}
    if not texts:
        raise InputError(f"{path}: no text in it; expected one a line")
    return texts


def assign_ids(
    results: ResultFolder[TextLine], texts: Sequence[str], speaker: str, settings: Settings
) -> Iterator[str]:
    """Yields ids for the user's texts: `text-0001` and so on.

    A text that was synthesised by the same speaker with the same controls and seed keeps its id.
    Any other text gets a new number: no run overwrites another text, and no file is named after a
    text.

    Args:
        results: What was synthesised before.
        texts: The user's texts; one that is given twice gets two ids.
        speaker: Name of the speaker.
        settings: Controls and seed.
    """
    known: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for line in results.lines.values():
        spoken = (line.text, line.speaker, *_controls(line))
        known[spoken].append(line.id)
    names = {path.stem for path in results.folder.glob("text-*")} | results.lines.keys()
    matches = (_NUMBERED.fullmatch(name) for name in names)
    highest = max((int(match[1]) for match in matches if match), default=0)
    for text in texts:
        wanted = (text, speaker, *_controls(settings))
        if same := known[wanted]:
            yield same.pop(0)
        else:
            highest += 1
            yield f"text-{highest:04d}"


def _controls(source: Settings | TextLine) -> tuple[float, ...]:
    return source.pitch_control, source.energy_control, source.duration_control, source.seed


def _synthesise_all(
    synthesis: TextSynthesis,
    items: Sequence[TextItem],
    results: ResultFolder[TextLine],
    settings: Settings,
) -> None:
    """Synthesises texts; writes wavs, plots, alignments and `metadata.jsonl`."""
    Controls(settings.pitch_control, settings.energy_control, settings.duration_control).checked()
    facts = [synthesis.synthesizer.fingerprint(), synthesis.vocoder, *_controls(settings)]

    def make(item: TextItem) -> SynthesisResult[TextLine]:
        start = time.perf_counter()
        try:
            speech = synthesis.synthesizer(
                item.text,
                speaker=item.speaker,
                pitch_control=settings.pitch_control,
                energy_control=settings.energy_control,
                duration_control=settings.duration_control,
                seed=settings.seed,
            )
        except InputError as error:
            raise InputError(f"{item.place}: {error}" if item.place else str(error)) from error
        work_s = time.perf_counter() - start
        _write_speech(synthesis, item, speech, results.folder)
        line = line_of(item, speech, settings, vocoder=synthesis.vocoder, work_s=work_s)
        return SynthesisResult(line, speech.seconds, work_s)

    try:
        synthesise_each(
            [item._replace(fingerprint=fingerprint(*facts, *item[:4])) for item in items],
            make,
            results,
            "texts",
            overwrite=synthesis.overwrite,
        )
    finally:
        if synthesis.alignment:
            write_alignments(results.folder, results.folder, synthesis.alignment)


def _write_speech(synthesis: TextSynthesis, item: TextItem, speech: Speech, folder: Path) -> None:
    """Writes `<id>.wav` and, if the configuration says so, `<id>.png`."""
    write_wav(folder / f"{item.id}.wav", speech.wav, speech.sample_rate)
    if synthesis.synthesizer.config.inference.save_plots:
        plot_synthesis(
            folder / f"{item.id}.png",
            speech.mel,
            speech.phone_names,
            speech.durations,
            speech.f0,
            speech.energy,
            title=f"{item.id}: {speech.text}",
            frame_s=speech.frame_s,
        )


def line_of(
    item: TextItem, speech: Speech, settings: Settings, *, vocoder: str, work_s: float
) -> TextLine:
    """Builds the line about one synthesised text.

    Args:
        item: The text.
        speech: Its synthesis.
        settings: Controls and seed.
        vocoder: Name.
        work_s: Seconds that the model worked.
    """
    return TextLine(
        id=item.id,
        file=f"{item.id}.wav",
        text=speech.text,
        normalized=speech.normalized,
        speaker=speech.speaker,
        dataset=item.dataset,
        pitch_control=settings.pitch_control,
        energy_control=settings.energy_control,
        duration_control=settings.duration_control,
        seed=settings.seed,
        vocoder=vocoder,
        seconds=round(speech.seconds, 4),
        real_time_factor=round(work_s / speech.seconds, 4),
        words=[
            {"word": word.text, "start_s": round(word.start_s, 4), "end_s": round(word.end_s, 4)}
            for word in speech.words
        ],
        phones=[
            {
                "phone": phone.name,
                "start_s": round(phone.start_s, 4),
                "duration_s": round(phone.end_s - phone.start_s, 4),
            }
            for phone in speech.phones
        ],
        out_of_vocabulary=list(speech.out_of_vocabulary),
        hop_length=round(speech.frame_s * speech.sample_rate),
        sample_rate=speech.sample_rate,
        fingerprint=item.fingerprint,
    )
