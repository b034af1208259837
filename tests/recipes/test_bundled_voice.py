"""The voice that comes with the repository, on sentences that it was not trained on."""

from pathlib import Path

import numpy as np
import pytest

from models.checkpoint.loading import load_model
from models.synthesizer import Synthesizer
from processors.audio.pitch import extract_f0

REPOSITORY = Path(__file__).parents[2]
VOICE = REPOSITORY / "egs/_voices/kathleen"


@pytest.fixture(scope="module")
def speech():
    return Synthesizer(VOICE)("The boy was released. He went home at once!")


def test_it_is_small_and_holds_tensors_alone():
    sizes = {path.name: path.stat().st_size for path in VOICE.iterdir()}
    assert sum(sizes.values()) < 20e6
    assert {Path(name).suffix for name in sizes} == {".safetensors", ".json", ".md"}


def test_its_card_names_data_and_licence():
    card = (VOICE / "README.md").read_text(encoding="utf-8")
    for fact in ("cc0-1.0", "Kathleen", "22050 Hz", "12,500 updates", "seed"):
        assert fact in card


def test_it_speaks_at_the_level_pitch_and_rate_of_a_person(speech):
    wav = np.asarray(speech.wav)
    f0 = extract_f0(wav.astype(np.float32), load_model(VOICE).mel, len(wav) // 256)
    level_db = 20 * np.log10(np.sqrt(np.mean(wav**2)))
    n_phones = sum(not phone.name.startswith("<") for phone in speech.phones)
    assert -30 < level_db < -15
    assert np.abs(wav).max() < 1
    assert 110 < np.median(f0[f0 > 0]) < 180  # her recordings: 145 Hz
    assert 6 < n_phones / speech.seconds < 16


def test_its_default_vocoder_is_the_bundled_one():
    assert "freevgl" in Synthesizer(VOICE).vocoder_name
