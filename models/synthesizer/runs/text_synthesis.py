"""Stage 3 of acoustic models: synthesises texts, and writes wavs, plots and metadata."""

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from models.base.results.files import SINGLE
from models.base.results.plots import plot_synthesis
from models.synthesizer.fingerprint import fingerprint
from models.synthesizer.runs.metadata import ResultFolder, TextLine, write_alignments
from models.synthesizer.runs.synthesis_run import (
    TestingSet,
    opened_results,
    synthesise_each,
    utterances_of,
)
from models.synthesizer.runs.text_files import NUMBERED, InputText, naming
from models.synthesizer.settings import PitchContour, Settings
from models.synthesizer.speech import Speech
from models.synthesizer.synthesizer import Synthesizer
from modules.alignment.attention_quality import AttentionQuality
from processors.audio.files import write_wav
from processors.extraction.fingerprint import check_prepared
from processors.text.passages import check_length
from utils.errors import InputError
from utils.files import user_path


class TextItem(NamedTuple):
    """One text to be synthesised into one file."""

    id: str
    given: InputText  # with the name of its speaker
    dataset: str = ""  # of a recorded sentence; empty for the user's own text
    recorded: str = ""  # its text, if `given` holds phones of the corpus

    def described(self) -> tuple[object, ...]:
        """Lists what its sound depends on."""
        given = self.given
        known = self.id, given.text, given.speaker, self.dataset, given.pitch_file, given.pitch
        return known if given.ssml is None else (*known, given.ssml)


class TextSynthesis(NamedTuple):
    """A voice, and where and how its speech is written."""

    synthesizer: Synthesizer
    output: Path
    alignment: str | None = None  # format of the alignments next to the wavs; None: there are none
    overwrite: bool = False  # repeat what is finished with the same model and settings


def synthesise_texts(
    synthesis: TextSynthesis, texts: Sequence[InputText], settings: Settings
) -> None:
    """Synthesises texts into `<output>/single/text-0001.wav` and so on, mode `single`."""
    texts = [_with_speaker(text, synthesis.synthesizer, settings.speaker) for text in texts]
    with opened_results(synthesis.output / SINGLE, TextLine) as results:
        for text in texts:
            _check_text(synthesis, text, settings, results)
        ids = assign_ids(results, texts, settings)
        items = [TextItem(id, text) for id, text in zip(ids, texts, strict=True)]
        _synthesise_all(synthesis, items, results, settings)


def _with_speaker(text: InputText, voice: Synthesizer, default: str | None) -> InputText:
    """Returns the text with the full name of its speaker."""
    with naming(text.place):
        speaker = voice.speakers[voice.speaker_id(text.speaker or default)]
    return text._replace(speaker=speaker.name)


def _check_text(
    synthesis: TextSynthesis, text: InputText, settings: Settings, results: ResultFolder[TextLine]
) -> None:
    """Raises InputError if the pitch of a text does not fit it, or its output is another's."""
    with naming(text.place):
        if text.pitch is not None:
            synthesis.synthesizer.checked(settings, pitch=text.pitch)
            names = synthesis.synthesizer.phone_names(
                text.text, speaker=text.speaker, duration_control=settings.duration_control
            )
            with naming(text.pitch_file):
                check_length(text.pitch, names)
        line = results.lines.get(text.output)
        wav = results.folder / f"{text.output}.wav"
        other = line is None or line.text != text.text
        if text.output and not synthesis.overwrite and wav.exists() and other:
            raise InputError(
                f"{wav} is there, and not of this text; choose another output, or repeat with"
                " --overwrite"
            )


def synthesise_dataset(
    synthesis: TextSynthesis, dataset: str, testing_set: TestingSet, settings: Settings
) -> None:
    """Synthesises the texts of a prepared dataset into `<output>/<id>.wav`, mode `batch`.

    The phones of a corpus are spoken in place of its texts.

    Each has the speaker of its recording, unless the settings name one.
    """
    speaker = settings.speaker
    if speaker is not None:
        synthesis.synthesizer.speaker_id(speaker)  # refuses an unknown one
    preprocess = synthesis.synthesizer.config.preprocess
    check_prepared(preprocess, dataset, task=None)
    processed = user_path(preprocess.processed_dir)
    items = [
        TextItem(
            utterance.id,
            InputText(utterance.spoken, speaker=speaker or utterance.speaker),
            dataset,
            utterance.text if utterance.phones else "",
        )
        for utterance in utterances_of(processed, dataset, testing_set)
    ]
    with opened_results(synthesis.output, TextLine) as results:
        results.check_dataset(dataset, [item.id for item in items])
        _synthesise_all(synthesis, items, results, settings)


def assign_ids(
    results: ResultFolder[TextLine], texts: Sequence[InputText], settings: Settings
) -> Iterator[str]:
    """Yields ids for the user's texts: their outputs, or `text-0001` and so on.

    A text without output that was synthesised by the same speaker with the same controls, pitch
    file and seed keeps its id. Any other text gets the lowest free number: no run overwrites
    another text, no file is named after a text, and a text that failed leaves its number free.
    """
    ids: dict[str, list[str]] = defaultdict(list)  # of texts that were synthesised before
    for line in results.lines.values():
        if NUMBERED.fullmatch(line.id):
            spoken = _spoken(line.ssml or line.text, line.speaker, line.pitch_file, line.settings)
            ids[spoken].append(line.id)
    unknown = {path.stem for path in results.folder.glob("text-*")} - results.lines.keys()
    names = unknown | results.lines.keys()
    free = (id for n in count(1) if (id := f"text-{n:04d}") not in names)
    for text in texts:
        wanted = _spoken(text.text, text.speaker, text.pitch_file, settings.record())
        if text.output:
            yield text.output
        elif same := ids[wanted]:
            yield same.pop(0)
        else:
            yield next(free)


def _spoken(*facts: object) -> str:
    """Builds the key by which a text counts as already synthesised."""
    return json.dumps(facts, sort_keys=True)


def _synthesise_all(
    synthesis: TextSynthesis,
    items: Sequence[TextItem],
    results: ResultFolder[TextLine],
    settings: Settings,
) -> None:
    """Synthesises texts; writes wavs, plots, alignments and `metadata.jsonl`."""
    voice = synthesis.synthesizer
    voice.checked(settings)
    transform = settings.transform
    contour = transform.factors if isinstance(transform, PitchContour) else None
    made_by = voice.fingerprint(), voice.vocoder_name, settings.record(), contour, bool(voice.tag)
    by_id = {item.id: item for item in items}
    fingerprints = {id: fingerprint(*made_by, *item.described()) for id, item in by_id.items()}

    def make(id: str) -> tuple[TextLine, float]:
        """Synthesises and writes one text; returns its line, and the seconds of the synthesis."""
        item, start = by_id[id], time.perf_counter()
        given = item.given
        with naming(given.place):
            text = given.ssml or given.text
            speech = voice(text, settings, speaker=given.speaker, pitch=given.pitch)
        work_s = time.perf_counter() - start
        line = line_of(item, speech, settings, vocoder=voice.vocoder_name, work_s=work_s)
        results.announce(line)
        _write_speech(synthesis, item, speech, results.folder)
        return line, work_s

    try:
        synthesise_each(fingerprints, results, "texts", make, overwrite=synthesis.overwrite)
    finally:
        if synthesis.alignment:
            write_alignments(results.folder, results.folder, synthesis.alignment)


def _write_speech(synthesis: TextSynthesis, item: TextItem, speech: Speech, folder: Path) -> None:
    write_wav(folder / f"{item.id}.wav", speech.wav, speech.sample_rate, speech.tag)
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
    """Builds the line about one synthesised text."""
    return TextLine(
        id=item.id,
        file=f"{item.id}.wav",
        text=item.recorded or speech.text,
        normalized="" if item.recorded else speech.normalized,  # of phones
        speaker=speech.speaker,
        dataset=item.dataset,
        vocoder=vocoder,
        seconds=round(speech.seconds, 4),
        real_time_factor=round(work_s / speech.seconds, 4),
        words=speech.words,
        phones=speech.phones,
        out_of_vocabulary=list(speech.out_of_vocabulary),
        hop_length=round(speech.frame_s * speech.sample_rate),
        sample_rate=speech.sample_rate,
        settings=settings.record(),
        pitch_file=item.given.pitch_file,
        attention=_worst(speech.attention),
        sentences=speech.sentences,
        marks=speech.marks,
        ssml="" if item.given.ssml is None else item.given.ssml.source,
    )


def _worst(attention: Sequence[AttentionQuality]) -> dict[str, float | bool]:
    """Returns the worst value of each measure over the sentences; empty without any."""
    if not attention:
        return {}
    return {
        "focus": round(min(quality.focus for quality in attention), 3),
        "skipped": max(quality.skipped for quality in attention),
        "repeated": max(quality.repeated for quality in attention),
        "stopped": all(quality.stopped for quality in attention),
    }
