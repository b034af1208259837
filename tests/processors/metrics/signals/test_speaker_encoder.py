import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from models.synthesizer import Synthesizer
from processors.metrics.signals.speaker_encoder import encode_speaker
from tests.processors.metrics.packages import skip_without

DEMO = Path(__file__).parents[4] / "egs" / "_demo" / "LJSpeech-mini"
TEXT = "in being comparatively modern."  # of the recording LJ001-0002


def recording(id: str) -> tuple[np.ndarray, int]:
    return soundfile.read(DEMO / "wavs" / f"{id}.flac", dtype="float32")


@pytest.fixture(scope="module")
def embedding() -> np.ndarray:
    skip_without("similarity")
    return encode_speaker(*recording("LJ001-0002"))


def test_two_sentences_by_one_speaker_are_closer_than_one_sentence_by_two(embedding):
    other = encode_speaker(*recording("LJ001-0008"))
    speech = Synthesizer("kathleen")(TEXT)
    kathleen = encode_speaker(speech.wav, speech.sample_rate)
    assert embedding @ other > 0.75
    assert embedding @ kathleen < embedding @ other - 0.1


def test_an_embedding_has_length_1_and_depends_neither_on_the_level_nor_on_silence(embedding):
    wav, rate = recording("LJ001-0002")
    assert embedding.shape == (256,)
    assert np.linalg.norm(embedding) == pytest.approx(1, abs=1e-5)
    assert embedding @ encode_speaker(0.1 * wav, rate) > 0.999
    assert embedding @ encode_speaker(np.pad(wav, 2 * rate), rate) > 0.99


@pytest.mark.usefixtures("embedding")
def test_silence_less_than_a_second_and_nan_have_none():
    wav, rate = recording("LJ001-0002")
    assert encode_speaker(np.zeros(2 * rate, dtype=np.float32), rate) is None
    assert encode_speaker(wav[:rate], rate) is None
    assert encode_speaker(np.full_like(wav, np.nan), rate) is None


@pytest.mark.usefixtures("embedding")
def test_the_voice_activity_detection_of_the_package_is_not_needed():
    assert "webrtcvad" not in sys.modules
