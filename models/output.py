"""What acoustic models give."""

from typing import NamedTuple

from torch import Tensor


class TtsOutput(NamedTuple):
    """Speech as a mel, and the prosody that it was made with. Padding is 0 but for the mel's."""

    mel: Tensor  # (B, M, T), the log floor beyond the lengths
    mel_lengths: Tensor  # (B,)
    durations: Tensor  # (B, N) frames
    pitch: Tensor  # Hz, (B, N), or (B, T) from models that predict it per frame
    energy: Tensor  # (B, N) or (B, T)
