import numpy as np
import pytest

from models.synthesizer.prosody.range import RangeWarning
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat

PITCH = Stat(160.0, 30.0, 66.0, 372.0)
STATS = CorpusStats({"anna": SpeakerStats(PITCH, PITCH, PITCH, PITCH, seconds=9.0)})


def spoken(vowel_hz: list[float], pause_hz: float = 10.0):
    """A vowel of so many frames between two pauses of a frame."""
    f0, durations = np.array([pause_hz, *vowel_hz, pause_hz]), np.array([1, len(vowel_hz), 1])
    return "anna", ("<sil>", "AA1", "<.>"), durations, f0


@pytest.mark.parametrize(
    ("f0", "warned"),
    [
        ([101, 219, 160, 160], False),
        ([99, 160, 160, 160], True),
        ([99, 160, 160, 160, 160], False),  # a fifth may be
        ([221] * 4, True),
        ([0, 0, 160], False),  # given as unvoiced
        ([], False),
    ],
)
def test_a_pitch_beyond_two_deviations_is_warned_of_once(caplog, f0, warned):
    check = RangeWarning(STATS, in_letters=False).check
    check(*spoken(f0))
    check(*spoken(f0))
    wanted = "beyond the 100 to 220 Hz of most recordings of anna"
    assert caplog.text.count(wanted) == int(warned)


def test_without_statistics_there_is_no_warning(caplog):
    RangeWarning(None, in_letters=False).check(*spoken([500]))
    assert caplog.text == ""
