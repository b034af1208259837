"""Alignment of one utterance by the trained model."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError
from processors.alignment.hmm.chain import N_STATES, segments_of
from processors.alignment.hmm.edits import score_of
from processors.alignment.hmm.mfcc import FRAME_S, mfcc
from processors.alignment.hmm.model import load_model
from processors.alignment.merge import aligned_words, is_punctuated, merge
from processors.records import Alignment, SpokenText, TimedPhone


class HmmAligner:
    """Aligns the phones of any language."""

    def __init__(self, path: Path, edge_silence_s: float) -> None:
        self.edge_silence_s = edge_silence_s
        self._model = load_model(path)

    def __call__(
        self, utterance: Utterance, wav: np.ndarray, sample_rate: int, spoken: SpokenText
    ) -> Alignment:
        """Aligns one utterance, with a score (see Aligner)."""
        words = [spoken.phones[word.start : word.end] for word in spoken.words]
        duration_s = len(wav) / sample_rate
        _check_length(sum(map(len, words)), duration_s)
        units = [self._model.numbers_of(phones) for phones in words]
        segments = segments_of(units, is_punctuated(spoken))
        frames = self._model.normalized(mfcc(wav, sample_rate), utterance.speaker)
        aligned = self._model.align(frames, segments)
        if aligned is None:
            raise AlignmentError("text and recording do not fit: no path leads through all words")
        times = zip(segments, [0.0, *aligned.ends_s[:-1]], aligned.ends_s, strict=True)
        spans = iter([(start, end) for segment, start, end in times if not segment.place])
        timed = [[TimedPhone(phone, *next(spans)) for phone in phones] for phones in words]
        score = score_of(aligned, self._model.chain(segments), segments, spoken)
        alignment = merge(aligned_words(spoken, timed), duration_s, self.edge_silence_s)
        return replace(alignment, score=score)


def _check_length(n_phones: int, duration_s: float) -> None:
    if n_phones * N_STATES > duration_s // FRAME_S:
        raise AlignmentError(
            f"{duration_s:.2f} s of audio are too short for {n_phones} phones; does the recording"
            " match its text?"
        )
