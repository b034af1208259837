"""Makes a corpus of recordings; a run that is interrupted goes on where it ended."""

import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import soundfile
import soxr

from models.programs.corpus import matching, recognition
from models.programs.corpus.checking import LEAST_S, MARGIN_S, Checker, Clip
from models.programs.corpus.matching import Claim, Matched, choose_clips
from models.programs.corpus.recognition import RATE, Piece, Recogniser, find_pieces
from models.programs.corpus.report import write_left_out, write_page
from models.programs.corpus.texts import SourceText
from preprocessors.audio_folder import recording_id
from preprocessors.collector import AUDIO_SUFFIXES, UNREADABLE_SUFFIXES
from preprocessors.manifest import Utterance
from processors.audio.files import check_length
from processors.audio.loudness import LOUDNESS_LUFS, PEAK_DB, loudness
from processors.audio.streams import write_audio
from utils.arrays import write_array
from utils.errors import InputError, UtteranceError, counted, refuse
from utils.files import read_json, read_jsonl, write_json, write_jsonl, write_text
from utils.locks import LOCK_FILE, locked
from utils.logging import Progress, get_logger, progress
from utils.parallel import ParallelBackend, run_chunks

CLIPS = "clips.jsonl"
RECORD, METADATA = "recordings.json", "metadata.csv"
LEFT_OUT, REPORT = "left_out.csv", "report.html"
_UNFINISHED = ".unfinished"
_PER_CHUNK = 20  # pieces, or clips, that a process takes at a time
_BLOCK = 1 << 20  # samples that are read at a time
_log = get_logger(__name__)


def list_recordings(path: Path, out: Path) -> list[Utterance]:
    """Lists a recording, or those below a folder but not in `out`; refuses unreadable files."""
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
    recogniser: Any  # a UserFunction, or None for pocketsphinx
    n_jobs: int
    backend: ParallelBackend = "loky"

    @property
    def _work(self) -> Path:
        return self.out / _UNFINISHED

    def write(self, recordings: Sequence[Utterance], made_of: Mapping[str, str]) -> None:
        """Writes the corpus; `made_of` is what it depends on, by the names of flags."""
        with locked(self.out, "wait until it ends"):
            if self._begin(made_of):
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
                rows = self._recognised(
                    recording, partial(self._in_chunks, bar, lengths[recording.id])
                )
                write_jsonl(self._path(recording.id, "clips"), (row._asdict() for row in rows))
        clips = {r.id: self._table(r.id, "clips") for r in recordings}
        chosen = [clip for rows in clips.values() for clip in rows if not clip.reason]
        sure = [clip for clip in chosen if clip.misfit <= 100 * matching.MAX_MISFIT]
        checker = Checker(self._work, self.language)
        if not (has_model := checker.train(sure, self.n_jobs)):
            lack = f"less than {LEAST_S:g} s of speech fit the text"
            _log.warning("%s: clips are only checked by the recognised words", lack)
        for recording in recordings:
            if not self._path(recording.id, "done").exists():
                rows = [clip for clip in clips[recording.id] if not clip.reason]
                others = [clip for clip in clips[recording.id] if clip.reason]
                if has_model:
                    rows = self._in_chunks(bar, lengths[recording.id], checker, "", rows)
                else:
                    rows = [r._replace(reason="" if r in sure else _why(r.misfit)) for r in rows]
                self._write_clips(recording, [*rows, *others])

    def _begin(self, made_of: Mapping[str, str]) -> bool:
        """Writes the record; returns whether the corpus is complete."""
        path = self.out / RECORD
        if path.exists():
            before = cast("dict[str, str]", read_json(path))
            pairs = ((name, before.get(name), made_of.get(name)) for name in {**before, **made_of})
            changed = [f"{name} was {old}, is {new}" for name, old, new in pairs if old != new]
            refuse(changed, f"{self.out} holds a corpus of other settings; choose another folder")
        elif others := sorted({path.name for path in self.out.iterdir()} - {LOCK_FILE}):
            raise InputError(f"{self.out} holds {others[0]!r} and no corpus; choose a new folder")
        write_json(path, dict(made_of))
        self._work.mkdir(exist_ok=True)
        is_complete = (self.out / REPORT).exists()
        if is_complete:
            shutil.rmtree(self._work)
        return is_complete

    def _path(self, recording: str, name: str) -> Path:
        return self._work / f"{recording}.{name}.jsonl"

    def _table(self, recording: str, name: str) -> list[Clip]:
        rows = read_jsonl(self._path(recording, name))
        return [Clip(**cast("dict[str, Any]", row)) for row in rows]

    def _recognised(self, recording: Utterance, in_chunks: Callable[..., list[Any]]) -> list[Clip]:
        """Returns clips of a recording, and what is left out of it."""
        samples = self._work / f"{recording.id}.npy"
        write_array(samples, np.concatenate([*_pcm(recording.audio), np.zeros(0, np.int16)]))
        pcm = np.load(samples, mmap_mode="r")
        pieces = find_pieces(np.asarray(pcm))
        recogniser = Recogniser(self._work / recording.id, self.language, self.recogniser)
        source = self.sources.get(recording.id)
        if source is None:
            pieces = join_pieces(pieces)
            texts = in_chunks(recogniser.texts, f"{samples}#", pieces)
            return [_unwritten(recording.id, *pair) for pair in zip(pieces, texts, strict=True)]
        if self.recogniser is None:
            recognition.write_language_model(recogniser.folder, source)
        matched = Matched(in_chunks(recogniser.words, f"{samples}#", pieces), source)
        clips, others = choose_clips(matched)
        clip_of = partial(_clip, recording.id, matched, len(pcm) / RATE)
        left_out = (clip._replace(first=-1, last=-1) for clip in map(clip_of, others))
        return [*map(clip_of, clips), *(c._replace(reason=_why(c.misfit)) for c in left_out)]

    def _in_chunks(
        self,
        bar: Progress,
        seconds: int,
        function: Callable[..., list[Any]],
        prefix: str,
        items: Sequence[Any],
    ) -> list[Any]:
        """Calls a function with some of the items at a time; returns its results in order."""
        starts = range(0, len(items), _PER_CHUNK)
        chunks = {f"{prefix}{n:08}": items[n : n + _PER_CHUNK] for n in starts}
        results, reached = dict[str, list[Any]](), 0
        for done in run_chunks(function, chunks, self.n_jobs, self.backend):
            results[done.key] = done.result
            bar.advance(seconds * len(results) // len(chunks) - reached)
            reached = seconds * len(results) // len(chunks)
        bar.advance(seconds - reached)
        return [result for key in sorted(results) for result in results[key]]

    def _write_clips(self, recording: Utterance, clips: Sequence[Clip]) -> None:
        """Writes the clips of a recording at the loudness of all."""
        good = [clip for clip in clips if not clip.reason]
        with soundfile.SoundFile(recording.audio) as file:
            sounds = partial(_sounds, file, good)
            lufs, peak = loudness(sounds(), file.samplerate)
            gain_db = 0.0
            if math.isfinite(lufs):
                gain_db = min(LOUDNESS_LUFS - lufs, PEAK_DB - 20 * math.log10(peak))
            for n, wav in enumerate(sounds(), 1):
                target = self.out / "wavs" / f"{recording.id}-{n:05}.wav"
                target.parent.mkdir(exist_ok=True)
                write_audio(target, [wav * np.float32(10 ** (gain_db / 20))], file.samplerate)
        write_jsonl(self._path(recording.id, "done"), (clip._asdict() for clip in clips))

    def _finish(self, recordings: Sequence[Utterance]) -> None:
        """Writes the tables and the report, which completes the corpus."""
        good, bad = dict[str, Clip](), list[Clip]()
        for recording in recordings:
            clips = self._table(recording.id, "done")
            bad += (clip for clip in clips if clip.reason)
            chosen = (clip for clip in clips if not clip.reason)
            good |= {f"{recording.id}-{n:05}": clip for n, clip in enumerate(chosen, 1)}
        claimed = [*good.values(), *bad]
        for source in {id(source): source for source in self.sources.values()}.values():
            bad += self._unclaimed(source, claimed)
        write_left_out(self.out / LEFT_OUT, bad)
        if not good:
            reason = bad[0].reason if bad else "there is no sound in the recordings"
            raise InputError(f"{self.out}: no clip can be used: {reason}; {LEFT_OUT} lists all")
        facts = ("recording", "start_s", "end_s", "misfit", "text")
        places = ({"id": id, **{f: getattr(clip, f) for f in facts}} for id, clip in good.items())
        write_jsonl(self.out / CLIPS, places)
        rows = ["id|text", *(f"{id}|{clip.text}" for id, clip in good.items())]
        write_text(self.out / METADATA, "\n".join([*rows, ""]))
        write_page(self.out / REPORT, good, bad, {r.id: r.audio for r in recordings})
        shutil.rmtree(self._work)
        minutes = sum(clip.end_s - clip.start_s for clip in good.values()) / 60
        left_out = counted(len(bad), "stretches")
        _log.info("%s: %s, %.1f min", self.out, counted(len(good), "clips"), minutes)
        _log.info("left out: %s, in %s; listen to %s", left_out, LEFT_OUT, self.out / REPORT)

    def _unclaimed(self, source: SourceText, clips: Sequence[Clip]) -> Iterator[Clip]:
        """Yields passages of a text that were not found in its recordings."""
        is_found = np.zeros(len(source.words) + 2, dtype=bool)
        is_found[[0, -1]] = True
        for clip in clips:
            if self.sources.get(clip.recording) is source and clip.first >= 0:
                is_found[clip.first + 1 : clip.last + 2] = True
        edges = np.flatnonzero(np.diff(is_found))
        for start, end in edges.reshape(-1, 2).tolist():
            text = source.between(start, end - 1)
            yield Clip("", 0.0, 0.0, text, 100.0, "not found in the recordings")


def _pcm(path: Path) -> Iterator[np.ndarray]:
    """Yields 16-bit samples of a recording at `RATE`, its channels averaged."""
    with soundfile.SoundFile(path) as file:
        stream = soxr.ResampleStream(file.samplerate, RATE, 1)
        while True:
            block = file.read(_BLOCK, dtype="float32", always_2d=True).mean(axis=1)
            resampled = stream.resample_chunk(block, last=not len(block))
            yield np.rint(32767 * np.clip(resampled, -1, 1)).astype(np.int16)
            if not len(block):
                return


def join_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Joins neighbours until clips have their usual length; what stays too short goes."""
    joined = [*pieces[:1]]
    for piece in pieces[1:]:
        start_s, end_s = joined[-1]
        is_near = piece.start_s - end_s < 1.0 and piece.end_s - start_s < matching.LONGEST_S
        if is_near and end_s - start_s < matching.USUAL_S:
            joined[-1] = Piece(start_s, piece.end_s)
        else:
            joined.append(piece)
    return [piece for piece in joined if piece.end_s - piece.start_s >= matching.SHORTEST_S]


def _clip(recording: str, matched: Matched, end_s: float, claim: Claim) -> Clip:
    heard, first, past = matched.heard, claim.first, claim.past
    before_s = heard[first - 1].end_s if first else 0.0
    after_s = heard[past].start_s if past < len(heard) else end_s
    # noise next to a word that was not recognised may hold it
    if claim.start_s < heard[first].start_s and first and matched.is_noise[first - 1]:
        before_s = heard[first - 1].start_s
    if claim.end_s > heard[past - 1].end_s and past < len(heard) and matched.is_noise[past]:
        after_s = heard[past].end_s
    text = f"({' '.join(word.name for word in heard[first:past])})"
    if claim.text_first >= 0:
        text = matched.source.between(claim.text_first, claim.text_last)
    return Clip(
        recording,
        start_s=round(min(max(claim.start_s, before_s), heard[first].start_s), 3),
        end_s=round(max(min(claim.end_s, after_s), heard[past - 1].end_s), 3),
        text=text,
        misfit=round(100 * claim.misfit, 1),
        reason="" if claim.text_first >= 0 else _why(100 * claim.misfit),
        room_start_s=before_s,
        room_end_s=after_s,
        first=claim.text_first,
        last=claim.text_last,
        parts=tuple(_clip(recording, matched, end_s, part) for part in claim.parts),
    )


def _why(misfit: float) -> str:
    """Returns why a stretch is left out, by the percentage of words that do not fit."""
    if misfit >= 100:
        return "its words are not in the text, or not in this order"
    if misfit > 100 * matching.MAX_MISFIT:
        return f"{misfit:.0f} % of its words were recognised otherwise"
    return "no pause around it at which the text is certain"


def _unwritten(recording: str, piece: Piece, text: str) -> Clip:
    reason = "" if any(map(str.isalnum, text)) else "no words were recognised"
    room = piece.start_s - MARGIN_S, piece.end_s + MARGIN_S
    return Clip(recording, *piece, " ".join(text.replace("|", " ").split()), 0.0, reason, *room)


def _sounds(file: soundfile.SoundFile, clips: Sequence[Clip]) -> Iterator[np.ndarray]:
    """Reads clips with a margin that no word before or after them reaches, (S,) each.

    The file is read from its start: after a jump in an MP3, the first frames are damaged.
    """
    file.seek(0)
    held, position = np.zeros(0, dtype=np.float32), 0  # samples, and the place of the first
    for clip in clips:
        start_s = max(clip.start_s - MARGIN_S, min(clip.room_start_s, clip.start_s), 0.0)
        end_s = min(clip.end_s + MARGIN_S, max(clip.room_end_s, clip.end_s))
        first, past = round(start_s * file.samplerate), round(end_s * file.samplerate)
        while position + len(held) < past:
            rest = held[max(first - position, 0) :]
            position += len(held) - len(rest)
            block = file.read(_BLOCK, dtype="float32", always_2d=True).mean(axis=1)
            if not len(block):
                break
            held = np.concatenate([rest, block])
        yield held[max(first - position, 0) : past - position]
