"""Aligns clips with their texts, by a model that is trained on them, and measures their misfit."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from config.preprocess import PreprocessConfig
from config.text import text_config
from models.programs.corpus.clips import RATE, CorpusClip
from models.programs.corpus.matching import MAX_MISFIT, reason_for
from preprocessors.manifest import Utterance
from processors.alignment import aligner
from processors.alignment.aligner import AlignmentError
from processors.alignment.fit import SUSPECT, check_coverage
from processors.alignment.hmm import align, model
from processors.alignment.hmm.training import Example, train
from processors.audio.frames import from_pcm16
from processors.audio.speech_level import FRAME_S, speech_frames
from processors.records import Alignment
from processors.text.frontend import TextFrontend
from processors.text.symbols import PAUSES
from processors.text.voice_phones import is_vowel
from utils.seed import derived_seed

LEAST_S = 120.0  # of speech, to train a model; of less, clips are checked by the words
_LOOK_S = 0.2  # around a clip, where the aligner learns silence and looks for the ends of speech
_NOISY = 15.0  # nats; of a larger misfit, noise at an end is cut off
_NOISE_S = 0.5  # at an end of a clip, that is cut off; more may be a word
_LEAST_NOISY = 6  # frames of 10 ms of noise in the first or last phone, before a pause within it
# Seconds of a phone that are softer than speech, at the start and at the end of a clip. Sonorants
# are loud from start to end, but for an echo; the weakest fricatives are hardly loud at all.
_SOFT_S, _SONORANT_S, _WEAK_S = (0.06, 0.12), (0.04, 0.07), (0.16, 0.2)
_SONORANT = frozenset(("M", "N", "NG", "L", "R", "W", "Y", *"mnŋlɹrʁwj"))  # and vowels
_WEAK = frozenset(("F", "TH", *"fθ"))
_MOST_CLIPS = 400  # of the training: half an hour of speech
_MODEL = "aligner.safetensors"


@dataclass(frozen=True)
class Checker:
    """Checks the clips of recordings; may be sent to other processes."""

    folder: Path  # of the model, and of the samples `<recording>.npy`
    language: str

    def train(self, clips: Sequence[CorpusClip], n_threads: int) -> bool:
        """Trains a model, unless there is one of these clips; returns whether there is one."""
        if sum(clip.end_s - clip.start_s for clip in clips) < LEAST_S:
            return False
        path = self.folder / _MODEL
        draws = [derived_seed("corpus", clip.recording, round(clip.start_s)) for clip in clips]
        drawn = [clips[n] for n in np.argsort(draws, kind="stable")[:_MOST_CLIPS]]
        origin = {"clips": [list(clip[:4]) for clip in drawn]}
        if not path.exists() or model.read_origin(path) != origin:
            model.save_model(path, train([*map(self._example, drawn)], n_threads), origin)
        return True

    def _example(self, clip: CorpusClip) -> Example:
        spoken = _frontend(self.language)(clip.text)
        words = tuple(spoken.phones[word.start : word.end] for word in spoken.words)
        frames = model.mfcc(self._wav(clip)[0], RATE)
        return Example(clip.recording, frames, words, tuple(aligner.is_punctuated(spoken)))

    def _wav(self, clip: CorpusClip) -> tuple[np.ndarray, float]:
        """Returns the sound of a clip up to the words around it, (S,), and its start in seconds."""
        pcm = np.load(self.folder / f"{clip.recording}.npy", mmap_mode="r")
        start_s, end_s = clip.span_s(_LOOK_S)
        return from_pcm16(pcm[round(start_s * RATE) : round(end_s * RATE)]), start_s

    def __call__(self, _key: str, clips: Sequence[CorpusClip]) -> list[CorpusClip]:
        """Returns clips with their misfit and the ends of their speech, and why they do not fit.

        Of a clip that does not fit, its parts are checked. Without a model, clips fit by the
        recognised words, which must include those at their edges.
        """
        return [checked for clip in clips for checked in self._checked(clip)]

    def _checked(self, clip: CorpusClip) -> list[CorpusClip]:
        if clip.reason:
            checked = clip
        elif (self.folder / _MODEL).exists():
            checked = self.align(clip)
        elif clip.misfit > MAX_MISFIT or clip.n_unrecognised:
            checked = clip._replace(reason=reason_for(clip.misfit))
        else:
            checked = clip
        if checked.reason and clip.parts:
            parts = (CorpusClip(*part) for part in clip.parts)
            return [checked for part in parts for checked in self._checked(part)]
        return [checked._replace(parts=())]

    def align(self, clip: CorpusClip, can_trim: bool = True) -> CorpusClip:
        """Returns a clip with its misfit and the ends of its speech, or why it does not fit."""
        wav, offset_s = self._wav(clip)
        utterance = Utterance("clip", Path(), clip.text, clip.recording, self.language)
        config = PreprocessConfig(sample_rate=RATE, text=text_config(self.language))
        spoken = _frontend(self.language)(clip.text)
        try:
            alignment = align(config, _load_model(self.folder / _MODEL), utterance, wav, spoken)
            check_coverage(alignment, wav, RATE)
        except AlignmentError as error:
            return clip._replace(reason=str(error).partition(";")[0])
        start_s, end_s = (round(offset_s + edge_s, 3) for edge_s in _span_s(alignment, wav))
        score = alignment.score
        misfit = score.misfit if score else 0.0
        aligned = clip._replace(start_s=start_s, end_s=end_s, misfit=misfit)
        if score is None or misfit <= _NOISY:
            return aligned
        # noise at an end: without it, all words must fit better
        worst_start_s, worst_end_s = offset_s + score.start_s, offset_s + score.end_s
        quiet = None
        if can_trim and worst_end_s < start_s + _NOISE_S:
            quiet = clip._replace(start_s=worst_end_s, room_start_s=worst_end_s)
        elif can_trim and worst_start_s > end_s - _NOISE_S:
            quiet = clip._replace(end_s=worst_start_s, room_end_s=worst_start_s)
        if quiet:
            trimmed = self.align(quiet, can_trim=False)
            if not trimmed.reason and trimmed.misfit < misfit:
                return trimmed
        if misfit <= SUSPECT:
            return aligned
        fault = f"'{score.words}' at {worst_start_s:.2f} s is not spoken as written"
        return aligned._replace(reason=f"misfit {misfit:.0f} above {SUSPECT:g}: {fault}")


def _span_s(alignment: Alignment, wav: np.ndarray) -> tuple[float, float]:
    """Finds the ends of speech in a wav, (S,), in seconds; its phones may extend over silence."""
    phones = [n for n, phone in enumerate(alignment.phones) if phone not in PAUSES]
    is_loud = speech_frames(wav, RATE)[0]  # (T,)
    edges = np.rint(alignment.boundaries_s / FRAME_S).astype(int)  # (N + 1,)
    first, last = (slice(*edges[[n, n + 1]]) for n in (phones[0], phones[-1]))
    start, end = first.start + _n_noisy(is_loud[first]), last.stop - _n_noisy(is_loud[last][::-1])
    start_s, end_s = float(start * FRAME_S), float(end * FRAME_S)
    loud = start + np.flatnonzero(is_loud[start:end])
    if not len(loud):
        return start_s, end_s
    loud_start_s, loud_end_s = loud[0] * FRAME_S, (loud[-1] + 1) * FRAME_S
    soft_start_s, soft_end_s = (_soft_s(alignment.phones[n]) for n in (phones[0], phones[-1]))
    return max(start_s, loud_start_s - soft_start_s[0]), min(end_s, loud_end_s + soft_end_s[1])


def _soft_s(phone: str) -> tuple[float, float]:
    """Returns the seconds of a phone that may be soft, at the start and at the end of a clip."""
    if phone in _WEAK:
        return _WEAK_S
    return _SONORANT_S if phone in _SONORANT or is_vowel(phone) else _SOFT_S


def _n_noisy(is_loud: np.ndarray) -> int:
    """Counts the frames of noise in a phone, (T,), from the end of its clip up to a pause.

    The phone itself sounds after the pause; the release of a stop is shorter than noise.
    """
    n_loud = int(np.argmin(np.append(is_loud, False)))
    return n_loud if n_loud >= _LEAST_NOISY and is_loud[n_loud:].any() else 0


@cache
def _frontend(language: str) -> TextFrontend:
    return TextFrontend(text_config(language), language, "skip")


_load_model = cache(model.load_model)
