import numpy as np
import pytest
import soundfile

from models.evaluation.formats import tell_formats
from processors.scoring.utterance_scorer import EvaluatedUtterance, SpeechFile


@pytest.fixture
def item_of(tmp_path):
    """Makes an utterance of a system "a", as a sound of this rate and number of channels."""

    def make(
        id: str, sample_rate: int, channels: int = 1, *, recorded: bool = True
    ) -> EvaluatedUtterance:
        file = tmp_path / f"{id}.wav"
        soundfile.write(file, np.zeros((100, channels)), sample_rate)
        recording = (lambda: np.zeros(100)) if recorded else None
        return EvaluatedUtterance(id, recording, "", "", "", None, {"a": SpeechFile(file)})

    return make


def told(items, caplog) -> list[str]:
    with caplog.at_level("INFO", "arion"):
        tell_formats("a", items, 22050)
    return [record.getMessage() for record in caplog.records]


def test_other_rates_and_channels_are_told_once_each(item_of, caplog):
    items = [item_of("x", 8000), item_of("y", 8000, 2), item_of("z", 22050)]
    rates, channels = told(items, caplog)
    assert rates == (
        "a: 2 of 3 have 8000 Hz, and recordings 22050 Hz: pairs are compared at the lower rate"
    )
    assert channels == "a: channels of 1 of 3 are averaged to mono"


def test_nothing_is_told_of_sounds_like_recordings_or_without_them(item_of, caplog):
    assert told([item_of("x", 22050), item_of("y", 8000, recorded=False)], caplog) == []


def test_a_file_that_cannot_be_read_is_left_to_those_who_read_it(item_of, caplog):
    item = item_of("x", 8000)
    item.spoken["a"].file.write_text("no sound")
    assert told([item], caplog) == []
