import numpy as np
import soundfile

from preprocessors.manifest import Utterance
from tests.benchmarks.boundaries.amounts import first_minutes
from tests.benchmarks.boundaries.clips import Clip


def test_clips_are_taken_until_the_minutes_are_reached(tmp_path):
    clips = []
    for number in range(4):
        audio = tmp_path / f"{number}.wav"
        soundfile.write(audio, np.zeros(25 * 1000), 1000)
        clips.append(Clip(Utterance(str(number), audio, "a", "anna")))
    assert first_minutes(clips, 1) == tuple(clips[:3])  # 50 s are not enough
    assert first_minutes(clips, 2) == tuple(clips)
