import numpy as np
import pytest
import torch
from PIL import Image

from models.base.plots import colour_limits
from models.evaluation.report.tracks import write_tracks
from modules.mel import MelSpectrogram
from processors.audio.files import write_wav
from processors.scoring.utterance_scorer import EvaluatedUtterance, SpeechFile
from tests.models.evaluation.report.evaluations import MEL, item_of, tone


def hiss(seconds: float) -> np.ndarray:
    noise = np.random.default_rng(0).standard_normal(round(8000 * seconds))
    return (0.05 * np.diff(noise, prepend=0)).astype(np.float32)


def test_pitch_is_laid_on_the_places_of_the_recording_that_sound_alike(tmp_path):
    recorded = np.concatenate([tone(150, 0.4), hiss(0.2), tone(120, 0.4)])
    slower = np.concatenate([tone(180, 0.8), hiss(0.4), tone(144, 0.8)])
    write_wav(tmp_path / "slower.wav", slower, 8000)
    spoken = {"slower": SpeechFile(tmp_path / "slower.wav")}
    item = EvaluatedUtterance("a", lambda: recorded, "", "", "", None, spoken)
    ((recording, track),) = write_tracks("00000", [item], tmp_path, MEL)
    assert len(track.f0) == 2 * len(track.warped) == 2 * len(recording.f0)
    both = (track.warped > 0) & (recording.f0 > 0)
    assert both.mean() > 0.7
    ratio = track.warped[both] / recording.f0[both]
    assert np.median(ratio) == pytest.approx(1.2, abs=0.01)
    assert (abs(ratio - 1.2) < 0.03).mean() > 0.95


def test_copies_and_sentences_without_a_recording_need_no_other_time(tmp_path):
    ((_, copy),) = write_tracks("00000", [item_of(tmp_path, "a", ("copy",))], tmp_path, MEL)
    ((alone,),) = write_tracks("1", [item_of(tmp_path, "a", recorded=False)], tmp_path, MEL)
    assert copy.warped is None
    assert alone.warped is None


def test_the_pictures_of_an_utterance_have_the_same_colours(tmp_path):
    item = item_of(tmp_path, "a", wav=0.5 * tone(150))
    ((recording, voice),) = write_tracks("00000", [item], tmp_path, MEL)
    spectrogram = MelSpectrogram(MEL)
    sounds = [tone(140.0, 0.5), 0.5 * tone(150)]
    mels = [spectrogram(torch.from_numpy(wav)[None])[0].numpy() for wav in sounds]
    low, high = colour_limits(mels)
    for track, mel in zip((recording, voice), mels, strict=True):
        pixels = np.asarray(Image.open(tmp_path / track.picture)).astype(float)[::-1]
        expected = 63 * ((mel - low) / (high - low)).clip(0, 1)
        assert abs(pixels - expected).max() < 0.6  # rounding, and 16 bits of the file
