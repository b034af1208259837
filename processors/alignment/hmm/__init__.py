"""The aligner "hmm": a hidden Markov model trained on the corpus, for any language and phones.

Stage 1 trains the model on a part of the recordings before it aligns the first of them, and keeps
it in the folder of the processed data. A few utterances more or less do not train it again.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment.aligner import Aligner, AlignmentError, check_length
from processors.alignment.hmm.chain import N_STATES, segments_of
from processors.alignment.hmm.edits import score_of
from processors.alignment.hmm.mfcc import FRAME_S, mfcc
from processors.alignment.hmm.model import load_model
from processors.alignment.hmm.plan import MODEL_FILE, plan_training
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
        check_length(sum(map(len, words)), N_STATES * FRAME_S, duration_s)
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


def _make(config: PreprocessConfig, dataset_root: Path, folder: Path) -> HmmAligner:
    return HmmAligner(folder / MODEL_FILE, config.edge_silence_s)


ALIGNER = Aligner(make=_make, plan_training=plan_training)
