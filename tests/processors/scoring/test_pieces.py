import numpy as np

from processors.scoring import pieces
from processors.scoring.pieces import mean_over, spans


def test_spans_cover_every_frame_once_and_are_not_too_long(monkeypatch):
    monkeypatch.setattr(pieces, "_PIECE_FRAMES", 32)
    found = list(spans(100 * 256 + 17, 256))
    assert [span.start for span in found[1:]] == [span.stop for span in found[:-1]]
    assert (found[0].start, found[-1].stop) == (0, 100 * 256)
    assert [(span.stop - span.start) / 256 for span in found] == [25] * 4
    assert list(spans(32 * 256, 256)) == [slice(0, 32 * 256)]
    assert list(spans(255, 256)) == []


def test_a_mean_counts_samples_and_leaves_out_what_has_no_value():
    values = {10: 1.0, 30: 2.0, 60: None}
    parts = [(np.zeros(n), np.zeros(n)) for n in values]
    assert mean_over(parts, lambda wav, _: values[len(wav)]) == (10 * 1 + 30 * 2) / 40
    assert mean_over(parts[2:], lambda wav, _: values[len(wav)]) is None
