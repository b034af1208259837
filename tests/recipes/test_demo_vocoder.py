"""The vocoder weights that come with the repository, on clips that they were not trained on."""

from pathlib import Path

import pytest
import soundfile
import torch

from models.base.registry import load_config
from models.checkpoint.loading import load_model
from modules.mel import MelSpectrogram

REPOSITORY = Path(__file__).parents[2]
VOCODER = REPOSITORY / "egs/_demo/hifigan_v2"
CLIPS = REPOSITORY / "egs/_demo/LJSpeech-mini/wavs"
DEMO = REPOSITORY / "egs/tts/FastSpeech2/exp_config_demo.json"


@pytest.fixture(scope="module")
def vocoder():
    return load_model(VOCODER)


def test_it_is_small_and_holds_tensors_alone():
    sizes = {path.name: path.stat().st_size for path in VOCODER.iterdir()}
    assert sum(sizes.values()) < 4e6
    assert {Path(name).suffix for name in sizes} == {".safetensors", ".json", ".md"}


@pytest.mark.parametrize("id", ["LJ009-0038", "LJ028-0138"])
def test_it_copies_a_recording_it_has_not_seen(vocoder, id):
    assert id in load_config(DEMO).preprocess.split.test_ids
    wav, rate = soundfile.read(CLIPS / f"{id}.flac", dtype="float32")
    assert rate == vocoder.mel.sample_rate
    mel_of = MelSpectrogram(vocoder.mel)
    mel = mel_of(torch.from_numpy(wav)[None])[:, :, :172]  # two seconds
    copied = mel_of(vocoder.network.infer(mel))
    # silence in its place would be at 3 and more
    assert float((copied - mel).abs().mean()) < 0.6


def test_its_card_says_what_it_was_made_of():
    card = (VOCODER / "README.md").read_text(encoding="utf-8")
    for fact in ("cc0-1.0", "Kathleen", "LJSpeech-mini", "22050 Hz", "updates"):
        assert fact in card
