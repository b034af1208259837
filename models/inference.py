"""Stage 3: which texts are spoken, by whom, and what is written where."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import torch

from config.schema import Config
from models.registry import load_config
from models.results import Results, Settings, line_of
from models.speech import Speech
from models.synthesizer import Controls, Synthesizer, choose_speaker
from preprocessors.manifest import Utterance, read_manifest
from preprocessors.split import read_splits
from processors.audio import write_wav
from utils.errors import InputError
from utils.files import read_text
from utils.logging import get_logger, progress
from utils.plots import plot_synthesis

TestingSet = Literal["train", "test", "golden_test"]
SHOWN_FAILURES = 20


class Sentence(NamedTuple):
    """One text to be spoken into one file."""

    id: str
    text: str
    speaker: str
    dataset: str = ""


class Failure(NamedTuple):
    """A text that could not be spoken, and why."""

    id: str
    reason: str


class Voice(NamedTuple):
    """A model that is ready to speak, and where its speech goes."""

    synthesizer: Synthesizer
    config: Config
    vocoder: str  # name, for the records
    output: Path


def load_voice(
    reference: str | Path, vocoder: str | None, output: Path | None, overrides: Sequence[str]
) -> Voice:
    """Loads a model on the GPU, where there is one.

    Args:
        reference: Experiment folder, a checkpoint in it, or a name on the Hub.
        vocoder: The same for a vocoder; None: Griffin-Lim.
        output: Where the sound goes; None: `result` in the experiment's folder.
        overrides: `key.path=value` for the experiment's own configuration.

    Raises:
        InputError: If anything cannot be loaded, or the output must be named and is not.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    synthesizer = Synthesizer(reference, vocoder, device, overrides=overrides)
    return Voice(
        synthesizer,
        synthesizer.config,
        vocoder or "Griffin-Lim",
        output or default_output(reference, synthesizer.model.home),
    )


def default_output(reference: str | Path, folder: Path) -> Path:
    """`result` in the folder of a local experiment.

    Raises:
        InputError: If the model is from the Hub: its folder is a cache.
    """
    if not Path(reference).expanduser().exists():
        raise InputError(f"{reference} is on the Hub: say where the wavs go by --infer_output_dir")
    return folder / "result"


def experiment_of(config_path: Path, name: str, overrides: Sequence[str]) -> Path:
    """The folder of the experiment that a configuration and a name stand for.

    Raises:
        InputError: If the configuration is wrong, or nothing was trained under that name.
    """
    folder = Path(load_config(config_path, overrides).log_dir).expanduser() / name
    if not folder.is_dir():
        raise InputError(f"{folder}: no such experiment; run stage 2, or give --infer_expt_dir")
    return folder


def speak_texts(voice: Voice, texts: Sequence[str], settings: Settings) -> None:
    """Mode `single`: speaks texts into `<output>/single/text-0001.wav` and so on.

    Raises:
        InputError: If the speaker is unknown, or a text could not be spoken (the others are made).
    """
    speakers = voice.synthesizer.speakers
    speaker = speakers[choose_speaker(speakers, settings.speaker)].name
    results = Results(voice.output / "single")
    sentences = [Sentence(results.id_for(text, speaker, settings), text, speaker) for text in texts]
    speak_all(voice, sentences, results, settings)


def speak_dataset(voice: Voice, dataset: str, testing_set: TestingSet, settings: Settings) -> None:
    """Mode `batch`: speaks the texts of a prepared data set into `<output>/<id>.wav`.

    Each is spoken by the speaker of its recording, unless the settings name one.

    Raises:
        InputError: If stage 1 did not prepare the data set, the speaker is unknown, or a text
            could not be spoken (the others are made).
    """
    if settings.speaker is not None:
        choose_speaker(voice.synthesizer.speakers, settings.speaker)
    processed = Path(voice.config.preprocess.processed_dir)
    sentences = [
        Sentence(utterance.id, utterance.text, settings.speaker or utterance.speaker, dataset)
        for utterance in utterances_of(processed, dataset, testing_set)
    ]
    results = Results(voice.output)
    results.check_dataset(dataset, [sentence.id for sentence in sentences])
    speak_all(voice, sentences, results, settings)


def utterances_of(processed: Path, dataset: str, testing_set: TestingSet) -> list[Utterance]:
    """The utterances of one split of a prepared data set, sorted by id.

    Raises:
        InputError: If stage 1 did not prepare the data set (lists those it did), its files do not
            belong together, or the split is empty.
    """
    prepared = sorted(path.parent.name for path in processed.glob("*/manifest.jsonl"))
    if dataset not in prepared:
        known = ", ".join(prepared) or "none"
        raise InputError(
            f"{processed} holds no data set {dataset!r} (prepared: {known});"
            " correct --infer_dataset or preprocess.processed_dir, or run stage 1"
        )
    folder = processed / dataset
    utterances = {u.id: u for u in read_manifest(folder / "manifest.jsonl")}
    ids = getattr(read_splits(folder), testing_set)
    if not ids:
        raise InputError(f"{folder}: the split {testing_set} is empty; see preprocess.split")
    if unknown := [id for id in ids if id not in utterances]:
        raise InputError(f"{folder}: {unknown[0]} is not in manifest.jsonl; run stage 1 again")
    return [utterances[id] for id in ids]


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
    voice: Voice, sentences: Sequence[Sentence], results: Results, settings: Settings
) -> None:
    """Speaks texts one after another and writes wavs, pictures and `metadata.jsonl`.

    Raises:
        InputError: If a control is out of range; at the end, if some texts could not be spoken:
            lists them with their reasons.
    """
    Controls(settings.pitch_control, settings.energy_control, settings.duration_control).checked()
    failures: list[Failure] = []
    spoken_s, work_s = 0.0, 0.0
    try:
        with progress(len(sentences), "stage 3: texts") as bar:
            for sentence in sentences:
                start = time.perf_counter()
                try:
                    speech = speak(voice.synthesizer, sentence, settings)
                except InputError as error:
                    failures.append(Failure(sentence.id, str(error)))
                else:
                    seconds = time.perf_counter() - start
                    write_speech(voice, sentence, speech, results.folder)
                    results.add(
                        line_of(
                            sentence.id,
                            speech,
                            settings,
                            dataset=sentence.dataset,
                            vocoder=voice.vocoder,
                            work_s=seconds,
                        )
                    )
                    spoken_s, work_s = spoken_s + speech.seconds, work_s + seconds
                bar.advance()
    finally:
        results.save()  # also when interrupted: what was written is on record
    report(results.folder, len(sentences), spoken_s, work_s, failures)


def speak(synthesizer: Synthesizer, sentence: Sentence, settings: Settings) -> Speech:
    """One text as speech."""
    return synthesizer(
        sentence.text,
        speaker=sentence.speaker,
        pitch_control=settings.pitch_control,
        energy_control=settings.energy_control,
        duration_control=settings.duration_control,
        seed=settings.seed,
    )


def write_speech(voice: Voice, sentence: Sentence, speech: Speech, folder: Path) -> None:
    """Writes `<id>.wav` and, if the configuration says so, `<id>.png`."""
    write_wav(folder / f"{sentence.id}.wav", speech.wav, speech.sample_rate)
    if voice.config.inference.save_plots:
        plot_synthesis(
            folder / f"{sentence.id}.png",
            speech.mel,
            speech.phone_names,
            speech.durations,
            speech.f0,
            speech.energy,
            title=f"{sentence.id}: {speech.text}",
            frame_s=speech.frame_s,
        )


def report(
    folder: Path, n_texts: int, spoken_s: float, work_s: float, failures: Sequence[Failure]
) -> None:
    """Says what was made and where.

    Raises:
        InputError: If there are failures.
    """
    n_spoken = n_texts - len(failures)
    if n_spoken:
        get_logger(__name__).info(
            "%d texts, %.1f s of speech in %.1f s (real-time factor %.3f): %s",
            n_spoken,
            spoken_s,
            work_s,
            work_s / spoken_s,
            folder,
        )
    if failures:
        lines = [f"  {failure.id}: {failure.reason}" for failure in failures[:SHOWN_FAILURES]]
        if len(failures) > SHOWN_FAILURES:
            lines.append(f"  and {len(failures) - SHOWN_FAILURES} more")
        raise InputError(
            f"{len(failures)} of {n_texts} texts could not be spoken:\n" + "\n".join(lines)
        )
