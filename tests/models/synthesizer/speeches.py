"""Speech without a model."""

from collections.abc import Sequence

import numpy as np

from models.synthesizer.speech import Speech
from modules.mel import MelConfig
from processors.records import TimedSentence, TimedWord, Word


def make_speech(
    phones: Sequence[str],
    durations: Sequence[int],
    *,
    text: str = "",
    normalized: str = "",
    words: Sequence[Word] = (),
    mel: MelConfig = MelConfig(),  # noqa: B008  (immutable)
    level: float = 0.5,
) -> Speech:
    """Speech of a text of one sentence, with a constant wav, pitch and energy."""
    T = sum(durations)
    edges = np.cumsum([0, *durations]) * mel.frame_s
    timed = tuple(
        TimedWord(word.text, float(edges[word.start]), float(edges[word.end])) for word in words
    )
    sentence = TimedSentence(text, timed[0].start_s, timed[-1].end_s) if timed else None
    return Speech(
        text=text,
        normalized=normalized,
        speaker="one",
        wav=np.full(T * mel.hop_length, level, dtype=np.float32),
        sample_rate=mel.sample_rate,
        frame_s=mel.frame_s,
        words=timed,
        sentences=() if sentence is None else (sentence,),
        phone_names=tuple(phones),
        durations=np.array(durations),
        mel=np.zeros((mel.n_mels, T), dtype=np.float32),
        f0=np.full(T, 100, dtype=np.float32),
        energy=np.ones(T, dtype=np.float32),
    )
