"""Aligns clips with their texts, by a model that is trained on them, and measures their misfit."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from config.preprocess import PreprocessConfig
from config.text import TextConfig
from models.programs.corpus.recognition import RATE
from preprocessors.manifest import Utterance
from processors.alignment import aligner
from processors.alignment.aligner import AlignmentError
from processors.alignment.fit import SUSPECT, check_coverage
from processors.alignment.hmm import align, model
from processors.alignment.hmm.training import Example, train
from processors.audio.speech_level import FRAME_S, speech_frames
from processors.text.frontend import TextFrontend
from processors.text.symbols import PAUSES
from utils.seed import derived_seed

LEAST_S = 120.0  # of speech, to train a model; of less, clips are as they are recognised
MARGIN_S = 0.1  # of silence before and after the speech of a clip
_LOOK_S = 0.2  # before and after it, where the aligner learns silence and looks for its ends
_NOISY = 15.0  # nats; of a larger misfit, noise at an end is cut off
_NOISE_S = 0.5  # at an end of a clip, that is cut off
_SOFT_S = (0.06, 0.12)  # of speech, before and after what is as loud as speech
_MOST_CLIPS = 400  # of the training: half an hour of speech


class Clip(NamedTuple):
    """A stretch of a recording with its text; a line of a table of clips."""

    recording: str
    start_s: float
    end_s: float
    text: str
    misfit: float  # percent of the words that are recognised otherwise, later nats of the aligner
    reason: str = ""  # why it is left out
    room_start_s: float = 0.0  # the words before and after it end and start here
    room_end_s: float = 0.0
    first: int = -1  # words of the text
    last: int = -1
    parts: Sequence["Clip"] = ()  # to which it may be divided; lists, as a table is read


def text_config(language: str) -> TextConfig:
    """Returns how texts of a language are read."""
    return TextConfig() if language.startswith("en") else TextConfig("none", "espeak")


@dataclass(frozen=True)
class Checker:
    """Aligns the clips of recordings; may be sent to other processes."""

    folder: Path  # of the model, and of the samples `<recording>.npy`
    language: str

    def train(self, clips: Sequence[Clip], n_threads: int) -> bool:
        """Trains a model, unless there is one of these clips; returns whether there is one."""
        path = self.folder / "aligner.safetensors"
        chosen = sorted(clips, key=lambda c: derived_seed("corpus", c.recording, round(c.start_s)))
        origin = {"clips": [list(clip[:4]) for clip in chosen[:_MOST_CLIPS]]}
        if sum(clip.end_s - clip.start_s for clip in clips) < LEAST_S:
            return False
        if not path.exists() or model.read_origin(path) != origin:
            examples = [self._example(clip) for clip in chosen[:_MOST_CLIPS]]
            model.save_model(path, train(examples, n_threads), origin)
        return True

    def _example(self, clip: Clip) -> Example:
        spoken = _frontend(self.language)(clip.text)
        words = tuple(spoken.phones[word.start : word.end] for word in spoken.words)
        frames = model.mfcc(self._wav(clip)[0], RATE)
        return Example(clip.recording, frames, words, tuple(aligner.is_punctuated(spoken)))

    def _wav(self, clip: Clip) -> tuple[np.ndarray, float]:
        """Returns the sound of a clip up to the words around it, (S,), and its start in seconds."""
        pcm = np.load(self.folder / f"{clip.recording}.npy", mmap_mode="r")
        start_s = max(clip.start_s - _LOOK_S, min(clip.room_start_s, clip.start_s), 0.0)
        end_s = min(clip.end_s + _LOOK_S, max(clip.room_end_s, clip.end_s))
        samples = pcm[round(start_s * RATE) : round(end_s * RATE)]
        return samples.astype(np.float32) / 32768, start_s

    def __call__(self, _key: str, clips: Sequence[Clip]) -> list[Clip]:
        """Returns clips with their misfit and the ends of their speech, and why they do not fit.

        Of a clip that does not fit, its parts are checked.
        """
        return [checked for clip in clips for checked in self._checked(clip)]

    def _checked(self, clip: Clip) -> list[Clip]:
        whole = clip if clip.reason else self._aligned(clip)
        if whole.reason and clip.parts:
            return [checked for part in clip.parts for checked in self._checked(Clip(*part))]
        return [whole._replace(parts=())]

    def _aligned(self, clip: Clip, can_trim: bool = True) -> Clip:
        wav, start_s = self._wav(clip)
        utterance = Utterance(
            "clip", Path(clip.recording), clip.text, clip.recording, self.language
        )
        hmm = _model(self.folder)
        config = PreprocessConfig(sample_rate=RATE, text=text_config(self.language))
        try:
            alignment = align(config, hmm, utterance, wav, _frontend(self.language)(clip.text))
            check_coverage(alignment, wav, RATE)
        except AlignmentError as error:
            return clip._replace(reason=str(error).partition(";")[0])
        phones = [n for n, phone in enumerate(alignment.phones) if phone not in PAUSES]
        first_s, past_s = alignment.boundaries_s[[phones[0], phones[-1] + 1]].tolist()
        span = slice(round(first_s / FRAME_S), round(past_s / FRAME_S))
        # phones may extend over silence; the first and the last are softer than others
        loud = span.start + np.flatnonzero(speech_frames(wav, RATE)[0][span])
        if len(loud):
            first_s = max(first_s, loud[0] * FRAME_S - _SOFT_S[0])
            past_s = min(past_s, (loud[-1] + 1) * FRAME_S + _SOFT_S[1])
        score = alignment.score
        misfit = score.misfit if score else 0.0
        found = clip._replace(
            start_s=round(start_s + first_s, 3),
            end_s=round(start_s + past_s, 3),
            misfit=misfit,
        )
        if score is None or misfit <= _NOISY:
            return found
        # noise at an end: without it, all words must fit better
        first_s, past_s = start_s + score.start_s, start_s + score.end_s
        if can_trim and past_s < found.start_s + _NOISE_S:
            rest = self._aligned(clip._replace(start_s=past_s, room_start_s=past_s), can_trim=False)
        elif can_trim and first_s > found.end_s - _NOISE_S:
            rest = self._aligned(clip._replace(end_s=first_s, room_end_s=first_s), can_trim=False)
        else:
            rest = found
        if not rest.reason and rest.misfit < misfit:
            return rest
        if misfit <= SUSPECT:
            return found
        fault = f"'{score.words}' at {first_s:.2f} s is not spoken as written"
        return found._replace(reason=f"misfit {misfit:.0f} above {SUSPECT:g}: {fault}")


@cache
def _frontend(language: str) -> TextFrontend:
    return TextFrontend(text_config(language), language, "skip")


@cache
def _model(folder: Path) -> model.PhoneHmm:
    return model.load_model(folder / "aligner.safetensors")
