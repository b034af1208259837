"""Speech with the times of its phones and words, as files of other programs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from config.preprocess import PreprocessConfig
from modules.mel import MelConfig
from preprocessors.manifest import Utterance, read_utterances
from processors.alignment.textgrid import textgrid_of
from processors.alignment.timed import Span, find_words
from processors.dataset.store import FEATURES, FeatureStore
from processors.durations.sources import TABLE, FrameRate
from processors.durations.subtitles import CharacterSpan, sentences_of, subtitles
from processors.records import Alignment, Features, TimedMark, TimedPhone, TimedSentence, TimedWord
from processors.text.frontend import Frontends
from processors.text.letters import mix
from processors.text.symbols import PAUSES
from utils.arrays import write_array
from utils.errors import InputError
from utils.files import read_json, replacing, write_text
from utils.logging import get_logger, progress

_log = get_logger(__name__)

# Praat refuses intervals of no length: a phone or pause of 0 frames is this long.
SHORTEST_S = 1e-4
_Find = Callable[[Features], Features]  # adds durations to features that have none


@dataclass(frozen=True)
class AlignedSpeech:
    """Speech with the times of its phones and words."""

    id: str  # of the utterance; safe as a file name
    text: str  # as the corpus has it
    seconds: float  # length of the recording
    # phones and pauses without gaps, N of them, from the first `<sil>` on
    phones: tuple[TimedPhone, ...]
    words: tuple[TimedWord, ...]  # in order
    sentences: tuple[TimedSentence, ...]  # of the text, in order; they hold all words
    frames: np.ndarray  # frames of each phone, (N,) int64
    hop_length: int  # of a frame, samples
    sample_rate: int  # Hz
    f0_hz: np.ndarray | None = None  # pitch of each phone, (N,), 0 = unvoiced, if it is known
    marks: tuple[TimedMark, ...] = ()  # of SSML
    spans: tuple[CharacterSpan, ...] = ()  # of each word, in `text`; empty if they are not known


def aligned_speech(
    utterance: Utterance, alignment: Alignment, seconds: float, frames: np.ndarray, mel: MelConfig
) -> AlignedSpeech:
    """Adds an alignment of N phones and pauses, with their frames, (N,), to its utterance."""
    edges: list[float] = alignment.boundaries_s.tolist()
    words = tuple(TimedWord(w.text, edges[w.start], edges[w.end]) for w in alignment.words)
    return AlignedSpeech(
        id=utterance.id,
        text=utterance.text,
        seconds=seconds,
        phones=tuple(map(TimedPhone, alignment.phones, edges[:-1], edges[1:])),
        words=words,
        sentences=sentences_of(utterance.text, words),
        frames=frames,
        hop_length=mel.hop_length,
        sample_rate=mel.sample_rate,
        f0_hz=alignment.f0_hz,
    )


def write_json(folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
    """Writes `<id>.json`, which stage 1 reads: text, sentences, words, phones with known pitch."""
    for speech in utterances:
        tiers: dict[str, list[dict[str, object]]] = {}
        for name in ("sentence", "word", "phone"):
            keys, rows = (name, "start_s", "end_s"), getattr(speech, f"{name}s")
            tiers[f"{name}s"] = [dict(zip(keys, row, strict=True)) for row in rows]
        if speech.f0_hz is not None:
            for phone, f0_hz in zip(tiers["phones"], speech.f0_hz.tolist(), strict=True):
                phone["f0_hz"] = f0_hz
        for word, span in zip(tiers["words"], speech.spans, strict=False):
            word["span"] = span
        if speech.marks:
            tiers["marks"] = [{"mark": mark.name, "time_s": mark.time_s} for mark in speech.marks]
        row = {"id": speech.id, "text": speech.text, "recording_s": speech.seconds, **tiers}
        content = json.dumps(row, ensure_ascii=False, allow_nan=False, indent=1)
        write_text(folder / f"{speech.id}.json", content + "\n", flush=False)


def write_npy(folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
    """Writes frames per phone, `<id>-durations.npy`, and `phones.txt` with their names.

    The first line of the table has the length of a frame, the others are `id|P1 P2 ...|start in
    seconds`.
    """
    with replacing(folder / TABLE) as path, path.open("w", encoding="utf-8") as table:
        for number, speech in enumerate(utterances):
            if number == 0:
                table.write(f"# hop_size {speech.hop_length} sample_rate {speech.sample_rate}\n")
            write_array(folder / f"{speech.id}-durations.npy", speech.frames.astype(np.int64))
            names = " ".join(phone.name for phone in speech.phones)
            table.write(f"{speech.id}|{names}|{speech.phones[0].start_s!r}\n")


def write_textgrid(folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
    """Writes `<id>.TextGrid` with the tiers `words`, `phones` and `pauses`.

    The phones are without pauses, as other programs expect them; with those, an import restores the
    sequence.
    """
    for speech in utterances:
        phones: list[TimedPhone] = []
        end_s = 0.0
        for phone in speech.phones:  # one after another, each at least `SHORTEST_S` long
            start_s = max(phone.start_s, end_s)
            end_s = max(phone.end_s, start_s + SHORTEST_S)
            phones.append(TimedPhone(phone.name, start_s, end_s))
        tiers: dict[str, Sequence[Span]] = {
            "words": [word for word in speech.words if word.end_s > word.start_s],
            "phones": [phone for phone in phones if phone.name not in PAUSES],
            "pauses": [phone for phone in phones if phone.name in PAUSES],
        }
        content = textgrid_of(tiers, max(speech.seconds, phones[-1].end_s))
        write_text(folder / f"{speech.id}.TextGrid", content, flush=False)


def write_subtitles(format: str, folder: Path, utterances: Iterable[AlignedSpeech]) -> None:
    """Writes `<id>.srt` or `<id>.vtt` by sentences; in vtt, each word has its time."""
    for speech in utterances:
        content = subtitles(speech.sentences, speech.words, format)
        write_text(folder / f"{speech.id}.{format}", content, flush=False)


# Each writes all utterances into a folder that exists, by the names of `EXPORT_FORMATS`.
WRITERS: dict[str, Callable[[Path, Iterable[AlignedSpeech]], None]] = {
    "json": write_json,
    "npy": write_npy,
    "srt": partial(write_subtitles, "srt"),
    "textgrid": write_textgrid,
    "vtt": partial(write_subtitles, "vtt"),
}


def export_store(
    config: PreprocessConfig, folder: Path, format: str, output: Path, find: _Find | None = None
) -> None:
    """Writes the alignments of a dataset that stage 1 has prepared.

    Times are those of the training frames, in seconds from the start of the recording. `find` adds
    durations to features that have none.
    """
    store = FeatureStore(folder)
    if not store.timed and find is None:
        fault = f"{folder} holds no durations (preprocess.aligner {config.aligner})"
        remedy = "a voice trained on it with learned has found them; give it as --infer_expt_dir"
        raise InputError(f"{fault}: {remedy}")
    output.mkdir(parents=True, exist_ok=True)
    WRITERS[format](output, _aligned(config, store, find or (lambda features: features)))
    _log.info("alignments as %s: %d in %s", format, len(store), output)


def _aligned(config: PreprocessConfig, store: FeatureStore, find: _Find) -> Iterator[AlignedSpeech]:
    folder, utterances = store.folder, read_utterances(store.folder)
    seconds: dict[str, float] = {}
    for path in (folder / FEATURES).glob("shard-*.json"):
        seconds |= cast("Mapping[str, Any]", read_json(path))["audio_seconds"]
    rate = FrameRate(store.mel.hop_length, store.mel.sample_rate)
    frontends = Frontends(config.text)
    with progress(len(store), "alignments") as bar:
        for id in store.ids:
            if id not in utterances or id not in seconds:
                raise InputError(f"{folder}: {id} is not in its manifest; run stage 1 again")
            utterance = utterances[id]
            read = frontends[utterance.language](utterance.spoken)
            spoken = mix(read, config.text.certain_p_arpabet)
            features = find(store.read(id))
            if features.durations is None:
                raise InputError(f"{folder}: {id} has no durations; run stage 1 again")
            edges = rate.boundaries_s(features.durations, features.start)  # (N + 1,)
            alignment = Alignment(features.phones, edges, find_words(features.phones, spoken))
            yield aligned_speech(utterance, alignment, seconds[id], features.durations, store.mel)
            bar.advance()
