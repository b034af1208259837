"""Writes a corpus that a teacher speaks; a run that is interrupted goes on where it ended."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, log
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from models.programs.distil.teachers import Teacher, checked_sound
from models.programs.distil.texts import PoolText
from preprocessors.corpora import ORIGIN
from preprocessors.manifest import check_id
from processors.audio.streams import write_audio
from processors.metrics.checks import SOUND_CHECKS
from processors.metrics.families.speech import score_words
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from processors.metrics.recognition.user_models import UserModels
from utils.errors import InputError, counted, listed, refuse
from utils.files import append_jsonl, read_jsonl, write_json, write_jsonl, write_text
from utils.locks import locked, refuse_other_contents
from utils.logging import get_logger, progress
from utils.parallel import run_chunks

_CLIPS, _GOOD, _REJECTED = "clips.jsonl", "wavs", "rejected"
_PILOT, _LONG_S = 20, 6  # clips of a first round, not all may be faulty; seconds assumed for each
_FAILURES = 5  # failures of the teacher in a row that end the run
_FEWEST = 8  # clips of a voice by which its usual pace is estimated
_NEAR, _DEVIATIONS = log(1.4), 4.5  # of log(pace / usual): no fault up to it, to robust deviations
_WORST_WER, _FEWEST_ERRORS = 25, 2  # percent, words: beyond both is a fault


class Clip(NamedTuple):
    """A text that was spoken; a line of clips.jsonl."""

    id: str
    seconds: float = 0.0
    speech_s: float = 0.0  # without silence at the edges
    fault: str = ""


@dataclass
class VoiceTexts:
    """The texts of a voice, with the ids of `clips_of`."""

    name: str
    taken: list[PoolText]  # spoken, or the next ones
    waiting: list[PoolText]
    minutes: float | None  # of good clips; None: all texts are spoken

    def advance(self, clips: Mapping[str, Clip]) -> int:
        """Takes texts to be spoken next, by the clips of the others. Returns how many."""
        n = len(self.waiting)
        if self.minutes is not None:
            wanted_s, seconds = 60 * self.minutes, self.seconds(clips)
            mean_s = seconds / len(self.taken) if seconds else max(wanted_s / _PILOT, _LONG_S)
            n = min(n, max(0, ceil((wanted_s - seconds) / mean_s)))
        self.taken += self.waiting[:n]
        del self.waiting[:n]
        return n

    def seconds(self, clips: Mapping[str, Clip]) -> float:
        """Returns the seconds of clips without a fault."""
        faults = self.faults(clips)
        return sum(clips[text.id].seconds for text in self.taken if text.id not in faults)

    def faults(self, clips: Mapping[str, Clip]) -> dict[str, str]:
        """Returns why clips cannot be used, by id; also unusually long or short ones."""
        faults = {text.id: fault for text in self.taken if (fault := clips[text.id].fault)}
        good = [text for text in self.taken if text.id not in faults]
        if len(good) >= _FEWEST:
            paces = np.log([clips[text.id].speech_s / text.length for text in good])
            paces -= np.median(paces)
            limit = max(_NEAR, _DEVIATIONS * 1.4826 * np.median(np.abs(paces)))
            for text, pace in zip(good, paces, strict=True):
                if abs(pace) > limit:
                    how = "long" if pace > 0 else "short"
                    faults[text.id] = f"too {how}: {exp(pace):.2f} of what its phones take"
        return faults


def clips_of(voice: str, texts: Iterable[PoolText]) -> list[PoolText]:
    """Returns the texts with the ids of the clips of a voice; refuses unsafe ids."""
    prefix = re.sub("[^A-Za-z0-9_.-]", "_", voice)
    return [text._replace(id=check_id(f"{prefix}_{text.id}")) for text in texts]


def refuse_doubled_ids(voices: Iterable[str], texts: Sequence[PoolText]) -> None:
    """Refuses texts and voices of which several clips would have the same id."""
    sources = defaultdict[str, list[str]](list)
    for voice in voices:
        for text in clips_of(voice, texts):
            sources[text.id].append(f"{text.source} by {voice}")
    doubled = [f"{id}: {listed(clips)}" for id, clips in sources.items() if len(clips) > 1]
    refuse(doubled, "several clips would have the same id; rename texts or voices")


@dataclass(frozen=True)
class ClipRecorder:
    """Has texts spoken, checks the sound and writes it; may be sent to other processes."""

    teacher: Teacher
    language: str
    models: UserModels  # the recogniser, if words are checked
    folder: Path

    def __call__(self, id: str, items: Sequence[tuple[str, str]]) -> tuple[Clip, bool]:
        """Returns the clip of an id, by text and voice, and whether the teacher failed."""
        try:
            if not items:
                raise InputError("the process of the teacher crashed")
            wav, rate = checked_sound(self.teacher.speak(*items[0]))
        except InputError as error:
            return Clip(id, fault=str(error)), True
        clip = self._checked(id, wav, rate, items[0][0])
        if clip.seconds:
            write_audio(self.folder / _GOOD / f"{id}.flac", [wav], rate)
        append_jsonl(self.folder / _CLIPS, clip._asdict())  # now, in case that the run is killed
        return clip, False

    def _checked(self, id: str, wav: np.ndarray, rate: int, text: str) -> Clip:
        if not np.isfinite(wav).all():
            return Clip(id, fault="samples are NaN or infinite")
        speech = LabelledSpeech(wav, rate, text, self.language, user_models=self.models)
        faults = [fault for check in SOUND_CHECKS if (fault := check.score(speech, None))]
        wer = None if self.models.recogniser is None or faults else score_words(speech)
        if wer and wer.value > _WORST_WER and wer.value * wer.weight >= 100 * _FEWEST_ERRORS:
            faults.append(f"word error rate {wer.value:.0f} %, recognised: {wer.note}")
        spoken = speech.activity
        speech_s = spoken.end_s - spoken.start_s if spoken else 0.0
        return Clip(id, len(wav) / rate, speech_s, "; ".join(faults))


def write_corpus(
    voices: Sequence[VoiceTexts], recorder: ClipRecorder, record: Mapping[str, Any], n_jobs: int
) -> None:
    """Has the texts spoken that the recorder's folder lacks; `record` is for its corpus.json."""
    folder, log = recorder.folder, get_logger(__name__)
    with locked(folder, "wait until it ends"):
        refuse_other_contents(folder / ORIGIN, record["made_of"])
        write_json(folder / ORIGIN, record)
        for unfinished in folder.glob("*/.*.flac"):
            unfinished.unlink()
        path = folder / _CLIPS
        rows = read_jsonl(path, unfinished_end=True) if path.exists() else []
        write_jsonl(path, rows)
        spoken = (Clip(**cast("dict[str, Any]", row)) for row in rows)
        clips = {clip.id: clip for clip in spoken}
        if not record["origin"]["licence"]:
            log.warning("no --licence: model cards will say that it is unknown")
        log.info("%s has %s; the teacher starts", folder, counted(len(clips), "clips"))
        _speak_missing(voices, recorder, clips, n_jobs)
        _finish(voices, clips, folder)


def _speak_missing(
    voices: Sequence[VoiceTexts], recorder: ClipRecorder, clips: dict[str, Clip], n_jobs: int
) -> None:
    """Speaks texts without a clip. Where the teacher fails, later runs try again."""
    n_failed = 0  # in a row
    n_new = 1  # texts of the next round
    while n_new:
        spoken_by = {text.id: (text, voice) for voice in voices for text in voice.taken}
        missing = {id: [(t.spoken, v.name)] for id, (t, v) in spoken_by.items() if id not in clips}
        n_done = len(spoken_by) - len(missing)
        with progress(len(spoken_by), "clips", initial=n_done) as bar:
            for done in run_chunks(recorder, missing, n_jobs):
                clip, failed = done.result
                clips[clip.id] = clip
                n_failed = n_failed + 1 if failed else 0
                if n_failed == _FAILURES:
                    raise InputError(f"the teacher fails again and again: {clip.id}: {clip.fault}")
                voice = spoken_by[clip.id][1]
                faults = [clips[text.id].fault for text in voice.taken if text.id in clips]
                if clip.fault and len(faults) >= _PILOT and all(faults):
                    fault = f"all {len(faults)} clips of {voice.name} are faulty, at last {clip.id}"
                    remedy = "correct the teacher, choose a new folder"
                    raise InputError(f"{fault}: {clip.fault}; {remedy}")
                bar.advance()
        n_new = sum(voice.advance(clips) for voice in voices)


def _finish(voices: Sequence[VoiceTexts], clips: Mapping[str, Clip], folder: Path) -> None:
    """Writes the tables of good and of rejected clips, and moves the files of the latter."""
    table, rejected, log = ["id|speaker|text|normalized"], [], get_logger(__name__)
    for voice in voices:
        faults = voice.faults(clips)
        for text in voice.taken:
            names = (_REJECTED, _GOOD) if text.id in faults else (_GOOD, _REJECTED)
            path, other = (folder / name / f"{text.id}.flac" for name in names)
            if other.exists():
                path.parent.mkdir(exist_ok=True)
                other.replace(path)
            if reason := faults.get(text.id):
                rejected.append({"id": text.id, "text": text.spoken, "reason": reason})
            else:
                cells = (cell.replace("|", " ").split() for cell in (text.raw, text.spoken))
                table.append("|".join([text.id, voice.name, *map(" ".join, cells)]))
        minutes = voice.seconds(clips) / 60
        n_good = counted(len(voice.taken) - len(faults), "clips")
        log.info("%s: %s, %.1f min; %d rejected", voice.name, n_good, minutes, len(faults))
        if voice.minutes and minutes < voice.minutes:
            message = "%s: all texts are spoken, %.1f of %g min; give more texts, or fewer voices"
            log.warning(message, voice.name, minutes, voice.minutes)
    write_jsonl(folder / "rejected.jsonl", rejected)
    if len(table) == 1:
        raise InputError(f"{folder}: no clip can be used: {rejected[0]['reason']}")
    write_text(folder / "metadata.csv", "\n".join([*table, ""]))
