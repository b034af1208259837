"""Makes a corpus of recordings; a run that is interrupted goes on where it ended."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import soundfile
import soxr

from models.programs.corpus import recognition
from models.programs.corpus.checking import LEAST_S, Checker
from models.programs.corpus.clips import MARGIN_S, RATE, CorpusClip, write_left_out, write_page
from models.programs.corpus.filling import Filler, find_gaps, with_filled
from models.programs.corpus.matching import MAX_MISFIT, Matcher
from models.programs.corpus.texts import SourceText
from preprocessors.audio_folder import recording_id
from preprocessors.collector import AUDIO_SUFFIXES, UNREADABLE_SUFFIXES
from preprocessors.manifest import Utterance
from processors.audio.files import check_length
from processors.audio.loudness import loudness, mastering_gain_db
from processors.audio.streams import write_audio
from processors.metrics.recognition.user_models import UserFunction
from utils.arrays import write_array
from utils.errors import InputError, UtteranceError, counted, refuse
from utils.files import read_jsonl, write_json, write_jsonl, write_text
from utils.locks import locked, refuse_other_contents
from utils.logging import Progress, get_logger, progress
from utils.parallel import ParallelBackend, run_chunks

CLIPS = "clips.jsonl"
RECORD, METADATA = "recordings.json", "metadata.csv"
LEFT_OUT, REPORT = "left_out.csv", "report.html"
_PER_CHUNK = 20  # pieces, or clips, that a process takes at a time; progress advances by them
_BLOCK = 1 << 20  # samples that are read at a time
_log = get_logger(__name__)
T = TypeVar("T")
R = TypeVar("R")


def list_recordings(path: Path, out: Path) -> list[Utterance]:
    """Lists a recording, or those below a folder but not in `out`; refuses unreadable files."""
    if out.exists() and (not out.is_dir() or path.absolute().is_relative_to(out.absolute())):
        raise InputError(f"{out}: OUT is a folder for the corpus alone; choose a new one")
    paths = sorted(path.rglob("*")) if path.is_dir() else [path]
    paths = [p for p in paths if p.is_file() and not p.absolute().is_relative_to(out.absolute())]
    recordings, faults = list[Utterance](), list[str]()
    for file in paths:
        name = file.relative_to(path if path.is_dir() else path.parent)
        if file.suffix.lower() in UNREADABLE_SUFFIXES:
            faults.append(f"{name}: convert it: ffmpeg -i {name} {name.with_suffix('.flac')}")
        if file.suffix.lower() not in AUDIO_SUFFIXES:
            continue
        try:
            check_length(file)
            if not soundfile.info(file).frames:
                raise UtteranceError("it has no samples; record it again")
        except UtteranceError as error:
            faults.append(f"{name}: {error}")
        except soundfile.LibsndfileError as error:
            faults.append(f"{name}: not readable as audio ({error.error_string}); export it again")
        recordings.append(Utterance(recording_id(name.as_posix()), file, "", ""))
    refuse(faults, f"{path}: recordings cannot be read")
    if not recordings:
        raise InputError(f"{path}: no recording; expected {', '.join(AUDIO_SUFFIXES)}")
    return recordings


@dataclass(frozen=True)
class CorpusWriter:
    """Cuts recordings into clips and writes them to a folder."""

    out: Path
    language: str
    sources: Mapping[str, SourceText]  # by recording; those with one text share it
    recogniser: UserFunction | None  # None for pocketsphinx
    n_jobs: int
    backend: ParallelBackend = "loky"

    @property
    def _work(self) -> Path:
        return self.out / ".unfinished"

    def write(self, recordings: Sequence[Utterance], made_of: Mapping[str, str]) -> None:
        """Writes the corpus; `made_of` is what it depends on, by the names of flags."""
        with locked(self.out, "wait until it ends"):
            refuse_other_contents(self.out / RECORD, made_of)
            write_json(self.out / RECORD, {"made_of": dict(made_of)})
            if (self.out / REPORT).exists():
                if self._work.exists():
                    shutil.rmtree(self._work)
                _log.info("%s is complete; nothing is left to do", self.out)
                return
            lengths = {r.id: round(soundfile.info(r.audio).duration) for r in recordings}
            steps = [(name, r.id) for name in ("clips", "done") for r in recordings]
            n_done = sum(lengths[id] for name, id in steps if self._path(id, name).exists())
            total = 2 * sum(lengths.values())
            with progress(total, "seconds recognised and checked", initial=n_done) as bar:
                self._cut_and_check(recordings, lengths, bar)
            self._finish(recordings)

    def _cut_and_check(
        self, recordings: Sequence[Utterance], lengths: Mapping[str, int], bar: Progress
    ) -> None:
        """Does what is left to do of the recordings, of which `lengths` are in seconds."""
        for recording in recordings:
            if not self._path(recording.id, "clips").exists():
                clips = self._recognised(recording, lengths[recording.id], bar)
                write_jsonl(self._path(recording.id, "clips"), (clip._asdict() for clip in clips))
        tables = {r.id: self._table(r.id, "clips") for r in recordings}
        good = [clip for clips in tables.values() for clip in clips if not clip.reason]
        checker = Checker(self._work, self.language)
        fitting = [clip for clip in good if clip.misfit <= MAX_MISFIT]
        is_trained = checker.train(fitting, self.n_jobs)
        if not is_trained:
            lack = f"less than {LEAST_S:g} s of speech fit the text"
            _log.warning("%s: clips are only checked by the recognised words", lack)
        for recording in recordings:
            if self._path(recording.id, "done").exists():
                continue
            clips = self._in_chunks(checker, tables[recording.id], lengths[recording.id], bar)
            source = self.sources.get(recording.id)
            if source is not None and is_trained:
                gaps = [*find_gaps(clips, source, soundfile.info(recording.audio).duration)]
                clips = with_filled(clips, self._in_chunks(Filler(checker), gaps, 0, bar))
            self._write_clips(recording, clips)

    def _path(self, recording: str, name: str) -> Path:
        return self._work / f"{recording}.{name}.jsonl"

    def _table(self, recording: str, name: str) -> list[CorpusClip]:
        rows = read_jsonl(self._path(recording, name))
        return [CorpusClip(**cast("dict[str, Any]", row)) for row in rows]

    def _recognised(self, recording: Utterance, seconds: int, bar: Progress) -> list[CorpusClip]:
        """Returns clips of a recording, and what is left out of it, in order."""
        samples = self._work / f"{recording.id}.npy"
        pcm = np.concatenate(list(_pcm(recording.audio)))
        write_array(samples, pcm)
        pieces, source = recognition.find_pieces(pcm), self.sources.get(recording.id)
        folder = self._work / recording.id
        recogniser = recognition.Recogniser(samples, folder, self.language, self.recogniser)
        if source is None:
            return self._in_chunks(recogniser.clips, recognition.join_pieces(pieces), seconds, bar)
        if self.recogniser is None:
            recognition.write_language_model(folder, source)
        words = self._in_chunks(recogniser.words, pieces, seconds, bar)
        return [*Matcher(recording.id, len(pcm) / RATE, words, source).choose_clips()][::-1]

    def _in_chunks(
        self,
        function: Callable[[str, Sequence[T]], list[R]],
        items: Sequence[T],
        seconds: int,
        bar: Progress,
    ) -> list[R]:
        """Calls a function with some of the items at a time; returns its results in order."""
        chunks = {f"{n:08}": items[n : n + _PER_CHUNK] for n in range(0, len(items), _PER_CHUNK)}
        results, n_reached = dict[str, list[R]](), 0
        for done in run_chunks(function, chunks, self.n_jobs, self.backend):
            results[done.key] = done.result
            bar.advance(seconds * len(results) // len(chunks) - n_reached)
            n_reached = seconds * len(results) // len(chunks)
        bar.advance(seconds - n_reached)
        return [result for key in sorted(results) for result in results[key]]

    def _write_clips(self, recording: Utterance, clips: Sequence[CorpusClip]) -> None:
        """Writes the clips of a recording at the loudness of all."""
        good = [clip for clip in clips if not clip.reason]
        with soundfile.SoundFile(recording.audio) as file:
            lufs, peak = loudness(_sounds(file, good), file.samplerate)
            gain = np.float32(10 ** (mastering_gain_db(lufs, peak) / 20))
            for n, wav in enumerate(_sounds(file, good), 1):
                target = self.out / "wavs" / f"{recording.id}-{n:05}.wav"
                write_audio(target, [wav * gain], file.samplerate)
        write_jsonl(self._path(recording.id, "done"), (clip._asdict() for clip in clips))

    def _finish(self, recordings: Sequence[Utterance]) -> None:
        """Writes the tables and the report, which completes the corpus."""
        good, bad = dict[str, CorpusClip](), list[CorpusClip]()
        for recording in recordings:
            clips = self._table(recording.id, "done")
            bad += (clip for clip in clips if clip.reason)
            fitting = (clip for clip in clips if not clip.reason)
            good |= {f"{recording.id}-{n:05}": clip for n, clip in enumerate(fitting, 1)}
        aligned = [*good.values(), *bad]
        for source in {id(source): source for source in self.sources.values()}.values():
            bad += self._unread(source, aligned)
        write_left_out(self.out / LEFT_OUT, bad)
        if not good:
            reason = bad[0].reason if bad else "there is no sound in the recordings"
            raise InputError(f"{self.out}: no clip can be used: {reason}; {LEFT_OUT} lists all")
        facts = ("recording", "start_s", "end_s", "misfit", "text")
        rows = ({"id": id, **{f: getattr(clip, f) for f in facts}} for id, clip in good.items())
        write_jsonl(self.out / CLIPS, rows)
        lines = ["id|text", *(f"{id}|{clip.text}" for id, clip in good.items()), ""]
        write_text(self.out / METADATA, "\n".join(lines))
        write_page(self.out / REPORT, good, bad, {r.id: r.audio for r in recordings})
        shutil.rmtree(self._work)
        minutes = sum(clip.end_s - clip.start_s for clip in good.values()) / 60
        left_out = counted(len(bad), "stretches")
        _log.info("%s: %s, %.1f min", self.out, counted(len(good), "clips"), minutes)
        _log.info("left out: %s, in %s; listen to %s", left_out, LEFT_OUT, self.out / REPORT)

    def _unread(self, source: SourceText, clips: Sequence[CorpusClip]) -> Iterator[CorpusClip]:
        """Yields passages of a text that were not found in its recordings."""
        is_found = np.zeros(len(source.words) + 2, dtype=bool)
        is_found[[0, -1]] = True
        for clip in clips:
            if self.sources.get(clip.recording) is source and clip.text_first >= 0:
                is_found[clip.text_first + 1 : clip.text_last + 2] = True
        edges = np.flatnonzero(np.diff(is_found))
        for start, end in edges.reshape(-1, 2).tolist():
            text = source.between(start, end - 1)
            yield CorpusClip("", 0.0, 0.0, text, 100.0, "not found in the recordings")


def _blocks(file: soundfile.SoundFile) -> Iterator[np.ndarray]:
    """Reads the rest of a file, its channels averaged, (n,) float32 each."""
    while len(block := file.read(_BLOCK, dtype="float32", always_2d=True)):
        yield block.mean(axis=1)


def _pcm(path: Path) -> Iterator[np.ndarray]:
    """Yields 16-bit samples of a recording at `RATE`, its channels averaged, (n,) each."""
    with soundfile.SoundFile(path) as file:
        stream = soxr.ResampleStream(file.samplerate, RATE, 1)
        for block in chain(_blocks(file), [np.zeros(0, dtype=np.float32)]):
            resampled = stream.resample_chunk(block, last=not len(block))
            yield np.rint(32767 * np.clip(resampled, -1, 1)).astype(np.int16)


def _sounds(file: soundfile.SoundFile, clips: Sequence[CorpusClip]) -> Iterator[np.ndarray]:
    """Reads clips with a margin that no word before or after them reaches, (S,) each.

    The file is read from its start: after a jump in an MP3, the first frames are damaged.
    """
    file.seek(0)
    blocks, buffer, offset = _blocks(file), np.zeros(0, dtype=np.float32), 0  # offset of the buffer
    for clip in clips:
        start, end = (round(edge_s * file.samplerate) for edge_s in clip.span_s(MARGIN_S))
        while offset + len(buffer) < end and (block := next(blocks, None)) is not None:
            n_past = min(max(start - offset, 0), len(buffer))
            buffer, offset = np.concatenate([buffer[n_past:], block]), offset + n_past
        yield buffer[max(start - offset, 0) : end - offset]
