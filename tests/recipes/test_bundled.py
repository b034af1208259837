"""The voices and the vocoder of the repository, on speech that they were not trained on."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from models.base.registry import load_config
from models.checkpoint.loading import load_model
from models.synthesizer import Synthesizer
from modules.losses import MultiResolutionStft
from modules.mel import MelSpectrogram
from modules.waveform.griffin_lim import GriffinLim
from processors.audio.pitch import extract_f0

EGS = Path(__file__).parents[2] / "egs"
FOLDER = EGS / "_voices"
CLIPS = EGS / "_demo/LJSpeech-mini/wavs"
DEMO = EGS / "tts/FlowSpeech/exp_config_demo.json"
TEXT = "The boy was released. He went home at once!"
# by voice and speaker: the range of the median F0 in Hz
SPEAKERS = {
    ("kathleen", None): (110, 180),  # her recordings: 145 Hz
    ("choir", None): (80, 150),
    ("choir", "Kokoro_bf_emma"): (150, 230),
}


def test_they_are_small_and_hold_tensors_alone():
    for glob, limit, suffixes in (("*/*", 24e6, {".ogg"}), ("freevgl/*", 5e6, set())):
        sizes = {path: path.stat().st_size for path in FOLDER.glob(glob)}
        assert sum(sizes.values()) < limit
        assert {path.suffix for path in sizes} == {".safetensors", ".json", ".md", *suffixes}


def test_their_cards_name_data_and_licence():
    for voice, facts in (
        ("kathleen", ("cc0-1.0", "Kathleen", "22050 Hz", "seed")),
        ("choir", ("apache-2.0", "Kokoro-82M", "CC0-1.0", "22050 Hz", "seed")),
        ("freevgl", ("cc0-1.0", "Kathleen", "LJSpeech-mini", "22050 Hz", "updates")),
    ):
        card = (FOLDER / voice / "README.md").read_text(encoding="utf-8")
        assert [fact for fact in facts if fact not in card] == []


@pytest.mark.parametrize(("name", "f0_range"), SPEAKERS.items())
def test_they_speak_at_the_level_pitch_and_rate_of_a_person_by_the_vocoder(name, f0_range):
    voice, speaker = name
    synthesizer = Synthesizer(FOLDER / voice)
    assert "freevgl" in synthesizer.vocoder_name
    speech = synthesizer(TEXT, speaker=speaker)
    wav = np.asarray(speech.wav)
    f0 = extract_f0(wav.astype(np.float32), load_model(FOLDER / voice).mel, len(wav) // 256)
    level_db = 20 * np.log10(np.sqrt(np.mean(wav**2)))
    n_phones = sum(not phone.name.startswith("<") for phone in speech.phones)
    lowest, highest = f0_range
    assert -30 < level_db < -15
    assert np.abs(wav).max() < 1
    assert lowest < np.median(f0[f0 > 0]) < highest
    assert 6 < n_phones / speech.seconds < 18


@pytest.mark.parametrize("id", ["LJ009-0038", "LJ028-0138"])
def test_a_copy_of_a_new_recording_by_the_vocoder_is_nearer_than_that_of_griffin_lim(id):
    vocoder = load_model(FOLDER / "freevgl")
    assert id in load_config(DEMO).preprocess.split.test_ids
    wav, rate = soundfile.read(CLIPS / f"{id}.flac", dtype="float32")
    assert rate == vocoder.mel.sample_rate
    recorded = torch.from_numpy(wav)[None, : 256 * 256]  # three seconds
    mel_of, distance = MelSpectrogram(vocoder.mel), MultiResolutionStft()
    mel = mel_of(recorded)
    copy, plain = vocoder.network.infer(mel), GriffinLim(vocoder.mel).infer(mel)
    assert (mel_of(copy) - mel).abs().mean() < 0.12
    assert float(distance(copy, recorded)) < 0.75 * float(distance(plain, recorded))
