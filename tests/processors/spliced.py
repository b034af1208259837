"""A recording out of which words are cut, or in which they are said twice."""

from pathlib import Path

import numpy as np
import soundfile

from processors.alignment.textgrid import read_textgrid

DEMO = Path(__file__).parents[2] / "egs" / "_demo" / "LJSpeech-mini"
ID = "LJ001-0004"  # 5.1 s
TEXT = "produced the block books, which were the immediate predecessors of the true printed book,"
WORDS = TEXT.replace(",", "").split()


class Recording:
    """A recording and the times of its words, as another aligner found them."""

    def __init__(self) -> None:
        self.wav, self.rate = soundfile.read(DEMO / "wavs" / f"{ID}.flac", dtype="float32")
        words = read_textgrid(DEMO / "TextGrid" / f"{ID}.TextGrid").words
        assert [word.text.lower() for word in words] == WORDS
        self.starts_s = np.array([word.start_s for word in words])
        self.ends_s = np.array([word.end_s for word in words])

    def without(self, start: int, end: int) -> np.ndarray:
        """The wav without the words `start` up to `end`."""
        return self._joined(self.starts_s[start], self.ends_s[end - 1])

    def twice(self, start: int, end: int) -> np.ndarray:
        """The wav with the words `start` up to `end` said twice."""
        return self._joined(self.ends_s[end - 1], self.starts_s[start])

    def _joined(self, until_s: float, from_s: float) -> np.ndarray:
        parts = self.wav[: round(until_s * self.rate)], self.wav[round(from_s * self.rate) :]
        return np.concatenate(parts)
