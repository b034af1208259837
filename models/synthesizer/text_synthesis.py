"""Stage 3: which texts are spoken, by whom, and what is written where."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from config.schema import Config
from models.synthesizer.alignments import write_alignments
from models.synthesizer.results import Results, Settings, TextLine, line_of
from models.synthesizer.speak_each import (
    Made,
    TestingSet,
    default_output,
    speak_each,
    utterances_of,
)
from models.synthesizer.speech import Speech
from models.synthesizer.synthesizer import Controls, Synthesizer, choose_speaker
from models.synthesizer.vocoders import GRIFFIN_LIM
from processors.audio.files import write_wav
from utils.errors import InputError
from utils.files import read_text, user_path
from utils.hub import recorded_as
from utils.plots import plot_synthesis


class TextItem(NamedTuple):
    """One text to be spoken into one file."""

    id: str
    text: str
    speaker: str
    dataset: str = ""


class TextSynthesis(NamedTuple):
    """A model that is ready to speak, and where its speech goes."""

    synthesizer: Synthesizer
    config: Config
    vocoder: str  # name, for the records
    output: Path
    alignment: str | None = None  # format of the alignments beside it; None: there are none


def load_text_synthesis(
    reference: str | Path,
    vocoder: str | None,
    output: Path | None,
    overrides: Sequence[str],
    *,
    resample: bool = False,
    alignment: str | None = None,
) -> TextSynthesis:
    """Loads a model on the GPU, where there is one.

    Args:
        reference: Experiment folder, a checkpoint in it, or a name on the Hub.
        vocoder: The same for a vocoder; None: Griffin-Lim.
        output: Where the sound goes; None: `result` in the experiment's folder.
        overrides: `key.path=value` for the experiment's own configuration.
        resample: Use the vocoder also if it was made for another mel or sample rate.
        alignment: Format in which alignments are written beside the sound; None: not.

    Raises:
        InputError: If anything cannot be loaded, or the output must be named and is not.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    synthesizer = Synthesizer(reference, vocoder, device, resample=resample, overrides=overrides)
    return TextSynthesis(
        synthesizer,
        synthesizer.config,
        recorded_as(vocoder) if vocoder else GRIFFIN_LIM,
        output or default_output(reference, synthesizer.model.home),
        alignment,
    )


def speak_texts(synthesis: TextSynthesis, texts: Sequence[str], settings: Settings) -> None:
    """Mode `single`: speaks texts into `<output>/single/text-0001.wav` and so on.

    Raises:
        InputError: If the speaker is unknown, or a text could not be spoken (the others are made).
    """
    speakers = synthesis.synthesizer.speakers
    speaker = speakers[choose_speaker(speakers, settings.speaker)].name
    results = Results(synthesis.output / "single")
    items = [TextItem(results.id_for(text, speaker, settings), text, speaker) for text in texts]
    speak_all(synthesis, items, results, settings)


def speak_dataset(
    synthesis: TextSynthesis, dataset: str, testing_set: TestingSet, settings: Settings
) -> None:
    """Mode `batch`: speaks the texts of a prepared data set into `<output>/<id>.wav`.

    Each is spoken by the speaker of its recording, unless the settings name one.

    Raises:
        InputError: If stage 1 did not prepare the data set, the speaker is unknown, or a text
            could not be spoken (the others are made).
    """
    if settings.speaker is not None:
        choose_speaker(synthesis.synthesizer.speakers, settings.speaker)
    processed = user_path(synthesis.config.preprocess.processed_dir)
    items = [
        TextItem(utterance.id, utterance.text, settings.speaker or utterance.speaker, dataset)
        for utterance in utterances_of(processed, dataset, testing_set)
    ]
    results = Results(synthesis.output)
    results.check_dataset(dataset, [item.id for item in items])
    speak_all(synthesis, items, results, settings)


def read_texts(path: Path) -> list[str]:
    """The texts of a file, one a line; empty lines are left out.

    Raises:
        InputError: If the file cannot be read, is not UTF-8, or holds no text.
    """
    texts = [line.strip() for line in read_text(path).split("\n")]
    texts = [text for text in texts if text]
    if not texts:
        raise InputError(f"{path}: no text in it; expected one a line")
    return texts


def speak_all(
    synthesis: TextSynthesis, items: Sequence[TextItem], results: Results, settings: Settings
) -> None:
    """Speaks texts one after another and writes wavs, pictures, alignments and `metadata.jsonl`.

    Raises:
        InputError: If a control is out of range; at the end, if some texts could not be spoken:
            lists them with their reasons.
    """
    Controls(settings.pitch_control, settings.energy_control, settings.duration_control).checked()

    def make(item: TextItem) -> Made[TextLine]:
        start = time.perf_counter()
        speech = speak(synthesis.synthesizer, item, settings)
        work_s = time.perf_counter() - start
        write_speech(synthesis, item, speech, results.folder)
        dataset, vocoder = item.dataset, synthesis.vocoder
        line = line_of(item.id, speech, settings, dataset=dataset, vocoder=vocoder, work_s=work_s)
        return Made(line, speech.seconds, work_s)

    try:
        speak_each(items, make, results, "texts")
    finally:
        if synthesis.alignment:
            write_alignments(results.folder, results.folder, synthesis.alignment)


def speak(synthesizer: Synthesizer, item: TextItem, settings: Settings) -> Speech:
    """One text as speech."""
    return synthesizer(
        item.text,
        speaker=item.speaker,
        pitch_control=settings.pitch_control,
        energy_control=settings.energy_control,
        duration_control=settings.duration_control,
        seed=settings.seed,
    )


def write_speech(synthesis: TextSynthesis, item: TextItem, speech: Speech, folder: Path) -> None:
    """Writes `<id>.wav` and, if the configuration says so, `<id>.png`."""
    write_wav(folder / f"{item.id}.wav", speech.wav, speech.sample_rate)
    if synthesis.config.inference.save_plots:
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
