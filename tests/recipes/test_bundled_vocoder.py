"""The vocoder that comes with the repository, on clips that it was not trained on."""

from pathlib import Path

import pytest
import soundfile
import torch

from models.base.registry import load_config
from models.checkpoint.loading import load_model
from modules.losses import MultiResolutionStft
from modules.mel import MelSpectrogram
from modules.waveform.griffin_lim import GriffinLim

REPOSITORY = Path(__file__).parents[2]
VOCODER = REPOSITORY / "egs/_voices/freevgl"
CLIPS = REPOSITORY / "egs/_demo/LJSpeech-mini/wavs"
DEMO = REPOSITORY / "egs/tts/FlowSpeech/exp_config_demo.json"


@pytest.fixture(scope="module")
def vocoder():
    return load_model(VOCODER)


def test_it_is_small_and_holds_tensors_alone():
    sizes = {path.name: path.stat().st_size for path in VOCODER.iterdir()}
    assert sum(sizes.values()) < 5e6
    assert {Path(name).suffix for name in sizes} == {".safetensors", ".json", ".md"}


@pytest.mark.parametrize("id", ["LJ009-0038", "LJ028-0138"])
def test_its_copy_of_a_new_recording_is_nearer_than_that_of_griffin_lim(vocoder, id):
    assert id in load_config(DEMO).preprocess.split.test_ids
    wav, rate = soundfile.read(CLIPS / f"{id}.flac", dtype="float32")
    assert rate == vocoder.mel.sample_rate
    recorded = torch.from_numpy(wav)[None, : 256 * 256]  # three seconds
    mel_of, distance = MelSpectrogram(vocoder.mel), MultiResolutionStft()
    mel = mel_of(recorded)
    copy, plain = vocoder.network.infer(mel), GriffinLim(vocoder.mel).infer(mel)
    assert (mel_of(copy) - mel).abs().mean() < 0.12
    assert float(distance(copy, recorded)) < 0.75 * float(distance(plain, recorded))
