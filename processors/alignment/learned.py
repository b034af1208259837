"""The value "learned": stage 1 aligns nothing, it only trims the silence around the speech.

The acoustic model learns the durations in training (models/base/aligner.py). The
phones are those of the text, with a pause at both ends and at punctuation, and none elsewhere.
"""

from functools import partial

import numpy as np

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment.aligner import Aligner, AlignmentError
from processors.audio.speech_level import speech_activity
from processors.records import Alignment, SpokenText
from processors.text.letters import longest

# Weak sounds at the ends are as quiet as silence: 0.12 s of a phone may lie outside the span that
# processors.audio.speech_level finds.
_WEAK_SOUND_S = 0.12
_FASTEST = 40.0  # phones and pauses per second; hurried speech has 20


def trim(config: PreprocessConfig, _: Utterance, wav: np.ndarray, spoken: SpokenText) -> Alignment:
    """Finds the span of the speech: the alignment has only the two outer boundaries."""
    rate = config.sample_rate
    margin_s = config.edge_silence_s + _WEAK_SOUND_S
    heard = speech_activity(wav, rate)
    if heard is None:
        raise AlignmentError("the recording has no speech; is it damaged?")
    start_s = max(heard.start_s - margin_s, 0.0)
    end_s = min(heard.end_s + margin_s, len(wav) / rate)
    N = longest(spoken.phones, spoken.word_phones)
    T = int((end_s - start_s) * rate / config.hop_length + 0.5)
    most = min(T, int(_FASTEST * (end_s - start_s)))
    if most < N:
        found = f"{N} phones and pauses in {end_s - start_s:.2f} s of speech ({T} frames)"
        remedy = "does the recording match its text?"
        raise AlignmentError(f"{found}, at most {most} are possible; {remedy}")
    return Alignment(spoken.phones, np.array([start_s, end_s]), spoken.words)


ALIGNER = Aligner(make=lambda config, _root, _folder: partial(trim, config))
