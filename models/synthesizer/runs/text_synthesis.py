"""Stage 3 of acoustic models: reads texts, synthesises them, and writes wavs, plots, metadata."""

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count, zip_longest
from pathlib import Path
from typing import NamedTuple

from models.base.results import SCORES, SINGLE, plot_synthesis
from models.synthesizer.fingerprint import fingerprint
from models.synthesizer.runs.results import (
    ResultFolder,
    TestingSet,
    TextLine,
    opened_results,
    synthesise_each,
    utterances_of,
    write_alignments,
)
from models.synthesizer.settings import PitchContour, Settings, read_pitch
from models.synthesizer.speech import Speech
from models.synthesizer.synthesizer import Synthesizer
from processors.audio.files import write_wav
from processors.extraction.fingerprint import check_prepared
from processors.text.markup.ssml import Ssml
from processors.text.passages import check_length
from utils.errors import InputError, nearest
from utils.files import read_text, replacing, user_path

COLUMNS = ("text", "pitch", "output", "speaker")
NUMBERED = re.compile(r"text-(\d+)")  # names of wavs whose text names no output
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class InputText(NamedTuple):
    """A text to be synthesised into one file."""

    text: str
    place: str = ""  # in the user's file, for messages
    speaker: str | None = None  # None: as the settings say
    output: str = ""  # name of the wav without suffix; empty: a number
    pitch_file: str = ""  # as in the table
    pitch: tuple[float, ...] | None = None  # Hz per phone; None: predicted
    ssml: Ssml | None = None  # `text` is its source; None: plain text
    dataset: str = ""  # of a recorded sentence; empty for the user's own text
    recorded: str = ""  # its text, if `text` holds phones of the corpus


@contextmanager
def naming(place: object) -> Iterator[None]:
    """Puts a place, if there is one, before the message of an InputError."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}" if place else str(error)) from error


def read_input_texts(path: Path, *, strict: bool = False) -> list[InputText]:
    """Reads the texts of a file: one a line, or, from a `.tsv`, a table with a header line.

    A file `.ssml` is one text. Empty lines are left out. The columns of a table are separated by
    tabs: `text`, and if wanted `pitch` (a file of Hz per phone, relative to the table), `output`
    (name of the wav), `speaker`. Empty cells but those of `text` count as missing.
    """
    path = user_path(path)
    if path.suffix.lower() == ".ssml":
        source = read_text(path)
        return [InputText(source, path.name, ssml=Ssml(source, strict))]
    lines = enumerate(read_text(path).split("\n"), start=1)
    rows = {
        f"{path.name}, line {n}": line for n, text in lines if (line := text.strip("\r\n \v\f"))
    }
    if path.suffix.lower() == ".tsv":
        return _parse_table(path, rows)
    texts = [InputText(line.strip(), place) for place, line in rows.items() if line.strip()]
    if not texts:
        raise InputError(f"{path}: no text in it; expected one a line")
    return texts


def _parse_table(path: Path, rows: dict[str, str]) -> list[InputText]:
    if not rows:
        raise InputError(f"{path}: empty; expected a header line with the column text")
    (_, header), *lines = rows.items()
    columns = [cell.strip() for cell in header.split("\t")]
    fault = ""
    if unknown := [column for column in columns if column not in COLUMNS]:
        fault = f"unknown column {unknown[0][:40]!r}{nearest(unknown[0], COLUMNS)}"
    elif "text" not in columns:
        fault = "there is no column text"
    elif len(set(columns)) < len(columns):
        fault = "a column is there twice"
    if fault:
        rule = f"the columns are {', '.join(COLUMNS)}, separated by tabs"
        raise InputError(f"{path}, line 1: {fault}; {rule}")
    texts = [_parse_row(path.parent, place, columns, line) for place, line in lines]
    if not texts:
        raise InputError(f"{path}: no text in it; expected one in each line after the header")
    seen: dict[str, InputText] = {}  # on some file systems case makes no difference
    for text in texts:
        other = seen.setdefault(text.output.lower(), text)
        if text.output and other is not text:
            raise InputError(
                f"{text.place}: output {text.output!r} is that of {other.place} too; choose another"
            )
    return texts


def _parse_row(folder: Path, place: str, columns: Sequence[str], line: str) -> InputText:
    cells = [cell.strip() for cell in line.split("\t")]
    if len(cells) > len(columns):
        raise InputError(f"{place}: {len(cells)} cells, the header has {len(columns)}")
    row = dict(zip_longest(columns, cells, fillvalue=""))
    if not row["text"]:
        raise InputError(f"{place}: the text is empty")
    output, pitch_file = row.get("output", ""), row.get("pitch", "")
    name = output.removesuffix(".wav")
    if output and not _NAME.fullmatch(name):
        raise InputError(
            f"{place}: output {output[:120]!r}; expected a file name of up to 100 letters a-z,"
            " digits, _, - and ., which starts with none of the last two"
        )
    if NUMBERED.fullmatch(name) or name == Path(SCORES).stem:
        raise InputError(f"{place}: output {output!r} is a name of stage 3's own; choose another")
    with naming(place):
        pitch = read_pitch(folder / user_path(pitch_file)) if pitch_file else None
    return InputText(
        text=row["text"],
        place=place,
        speaker=row.get("speaker") or None,
        output=name,
        pitch_file=pitch_file,
        pitch=pitch,
    )


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
    voice, named = synthesis.synthesizer, list[InputText]()
    for text in texts:
        with naming(text.place):
            speaker = voice.speakers[voice.speaker_id(text.speaker or settings.speaker)]
        named.append(text._replace(speaker=speaker.name))
    with opened_results(synthesis.output / SINGLE, TextLine) as results:
        for text in named:
            _check_text(synthesis, text, settings, results)
        ids = assign_ids(results, named, settings)
        items = [text._replace(output=id) for id, text in zip(ids, named, strict=True)]
        _synthesise_all(synthesis, items, results, settings)


def _check_text(
    synthesis: TextSynthesis, text: InputText, settings: Settings, results: ResultFolder[TextLine]
) -> None:
    """Refuses a pitch that does not fit a text, and an output that is another text's."""
    voice, slower = synthesis.synthesizer, settings.duration_control
    with naming(text.place):
        if text.pitch is not None:
            voice.checked(settings, pitch=text.pitch)
            names = voice.phone_names(text.text, speaker=text.speaker, duration_control=slower)
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

    Each has the speaker of its recording, unless the settings name one. The phones of a corpus are
    spoken in place of its texts.
    """
    if settings.speaker is not None:
        synthesis.synthesizer.speaker_id(settings.speaker)  # refuses an unknown one
    preprocess = synthesis.synthesizer.config.preprocess
    check_prepared(preprocess, dataset, task=None)
    texts = [
        InputText(
            utterance.spoken,
            speaker=settings.speaker or utterance.speaker,
            output=utterance.id,
            dataset=dataset,
            recorded=utterance.text if utterance.phones else "",
        )
        for utterance in utterances_of(user_path(preprocess.processed_dir), dataset, testing_set)
    ]
    with opened_results(synthesis.output, TextLine) as results:
        results.check_dataset(dataset, [text.output for text in texts])
        _synthesise_all(synthesis, texts, results, settings)


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
            text = line.ssml or line.text
            ids[fingerprint(text, line.speaker, line.pitch_file, line.settings)].append(line.id)
    unknown = {path.stem for path in results.folder.glob("text-*")} - results.lines.keys()
    names = unknown | results.lines.keys()
    free = (id for n in count(1) if (id := f"text-{n:04d}") not in names)
    for given in texts:
        wanted = fingerprint(given.text, given.speaker, given.pitch_file, settings.record())
        if given.output:
            yield given.output
        elif same := ids[wanted]:
            yield same.pop(0)
        else:
            yield next(free)


def _synthesise_all(
    synthesis: TextSynthesis,
    texts: Sequence[InputText],
    results: ResultFolder[TextLine],
    settings: Settings,
) -> None:
    """Synthesises texts; writes wavs, plots, alignments and `metadata.jsonl`."""
    voice = synthesis.synthesizer
    voice.checked(settings)
    transform = settings.transform
    contour = transform.factors if isinstance(transform, PitchContour) else None
    made_by = voice.fingerprint(), voice.vocoder_name, settings.record(), contour, bool(voice.tag)
    by_id = {text.output: text for text in texts}
    fingerprints = {  # neither the place in a file nor the text of recorded phones is heard
        id: fingerprint(*made_by, text._replace(place="", recorded=""))
        for id, text in by_id.items()
    }

    def make(id: str) -> tuple[TextLine, float]:
        """Synthesises and writes one text; returns its line, and the seconds of the synthesis."""
        text, start = by_id[id], time.perf_counter()
        with naming(text.place):
            speech = voice(text.ssml or text.text, settings, speaker=text.speaker, pitch=text.pitch)
        work_s = time.perf_counter() - start
        line = line_of(text, speech, settings, vocoder=voice.vocoder_name, work_s=work_s)
        results.announce(line)
        path = results.folder / line.file
        write_wav(path, speech.wav, speech.sample_rate, speech.tag)
        if voice.config.inference.save_plots:
            shown = speech.mel, speech.phone_names, speech.durations, speech.f0, speech.energy
            figure = plot_synthesis(*shown, title=f"{id}: {speech.text}", frame_s=speech.frame_s)
            with replacing(path.with_suffix(".png")) as temporary:
                figure.savefig(temporary, format="png")
        return line, work_s

    try:
        synthesise_each(fingerprints, results, "texts", make, overwrite=synthesis.overwrite)
    finally:
        if synthesis.alignment:
            write_alignments(results.folder, results.folder, synthesis.alignment)


def line_of(
    text: InputText, speech: Speech, settings: Settings, *, vocoder: str, work_s: float
) -> TextLine:
    """Builds the line about one synthesised text."""
    worst: dict[str, float | bool] = {}  # over its sentences, of models with attention
    if qualities := speech.attention:
        worst = {
            "focus": round(min(quality.focus for quality in qualities), 3),
            "skipped": max(quality.skipped for quality in qualities),
            "repeated": max(quality.repeated for quality in qualities),
            "stopped": all(quality.stopped for quality in qualities),
        }
    return TextLine(
        id=text.output,
        file=f"{text.output}.wav",
        text=text.recorded or speech.text,
        normalized="" if text.recorded else speech.normalized,  # of phones
        speaker=speech.speaker,
        dataset=text.dataset,
        vocoder=vocoder,
        seconds=round(speech.seconds, 4),
        real_time_factor=round(work_s / speech.seconds, 4),
        words=speech.words,
        phones=speech.phones,
        out_of_vocabulary=list(speech.out_of_vocabulary),
        hop_length=round(speech.frame_s * speech.sample_rate),
        sample_rate=speech.sample_rate,
        settings=settings.record(),
        pitch_file=text.pitch_file,
        attention=worst,
        sentences=speech.sentences,
        marks=speech.marks,
        ssml="" if text.ssml is None else text.ssml.source,
    )
