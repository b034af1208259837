"""No aligner: the model finds the durations while it trains (models.base.joint_aligner).

Stage 1 keeps the phones of the text, with a pause at both ends and at punctuation, and cuts off the
silence around the speech. A pause where no punctuation stands has no phone of its own.
"""

from pathlib import Path

import numpy as np

from config.schema import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment import AlignmentError
from processors.audio.speech_level import speech_activity
from processors.records import Alignment, SpokenText

# Weak sounds at the ends are no louder than silence: 0.12 s of a phone may lie beyond what is heard
# (see processors.audio.speech_level).
_WEAK_SOUND_S = 0.12
_FASTEST = 40.0  # phones and pauses a second; hurried speech has 20


def make_aligner(config: PreprocessConfig, dataset_root: Path) -> "EdgeFinder":
    """Finds where speech begins and ends."""
    return EdgeFinder(config.edge_silence_s, config.hop_size)


def alignment_file(utterance: Utterance, config: PreprocessConfig, dataset_root: Path) -> None:
    """There is none."""


class EdgeFinder:
    """Finds the span of the speech, and nothing in it.

    Args:
        edge_silence_s: Silence kept at both ends, seconds.
        hop_length: Samples per frame.
    """

    def __init__(self, edge_silence_s: float, hop_length: int) -> None:
        self._margin_s = edge_silence_s + _WEAK_SOUND_S
        self._hop_length = hop_length

    def __call__(
        self, utterance: Utterance, wav: np.ndarray, sample_rate: int, spoken: SpokenText
    ) -> Alignment:
        """Gives the phones of the text and the span in which they are said.

        Args:
            utterance: Has no influence.
            wav: (S,) float32 in [-1, 1].
            sample_rate: Of `wav`, Hz.
            spoken: Its phones.

        Raises:
            AlignmentError: If nothing is heard, or the phones are too many for it.
        """
        heard = speech_activity(wav, sample_rate)
        if heard is None:
            raise AlignmentError("nothing is heard in the recording; is it damaged?")
        start_s = max(heard.start_s - self._margin_s, 0.0)
        end_s = min(heard.end_s + self._margin_s, len(wav) / sample_rate)
        N, T = len(spoken.phones), int((end_s - start_s) * sample_rate / self._hop_length + 0.5)
        most = min(T, int(_FASTEST * (end_s - start_s)))
        if most < N:
            raise AlignmentError(
                f"{N} phones and pauses in {end_s - start_s:.2f} s of speech ({T} frames): nobody"
                " speaks so fast; is the recording the one of this text?"
            )
        return Alignment(spoken.phones, np.array([start_s, end_s]), spoken.words)
