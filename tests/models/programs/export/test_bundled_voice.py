"""The voice that comes with the repository, exported: takes a minute."""

import numpy as np
import pytest
import torch

from models.programs.export.folder import export_voice, open_voice
from models.synthesizer.synthesizer import Synthesizer
from models.voices import FOLDERS
from modules.mel import MelSpectrogram
from tests.models.programs.export.voices import TEXTS, runner_in

pytestmark = pytest.mark.slow
FP32 = "inference.acoustic_precision=fp32", "inference.vocoder_precision=fp32"


def test_it_speaks_as_with_the_synthesizer(tmp_path):
    synthesizer = Synthesizer(FOLDERS[0] / "kathleen", device="cpu", overrides=FP32)
    folder = tmp_path / "kathleen"
    export_voice(open_voice(synthesizer.model.home), folder)
    voice = runner_in(folder).Voice(folder)
    mel_of = MelSpectrogram(synthesizer.model.mel)
    one = {name: np.ones((1, 1), np.float32) for name in ("duration", "pitch", "energy")}
    for text in TEXTS:
        expected = synthesizer(text)
        clauses = [clause for sentence in voice._reader(text, "en-us") for clause in sentence]
        mels = [voice.mel(c.phone_ids, 0, one, np.random.default_rng()) for c in clauses]
        found = np.concatenate(mels, axis=2)[0]
        spoken = expected.mel[:, (expected.mel > expected.mel.min()).any(axis=0)]
        np.testing.assert_allclose(found, spoken, rtol=0, atol=1e-4)
        wav = voice(text)
        # rounding adds up in the phases: samples differ by more than their mels
        np.testing.assert_allclose(wav, expected.wav, rtol=0, atol=5e-2)
        mel, mel_expected = (mel_of(torch.from_numpy(w)[None]) for w in (wav, expected.wav))
        assert (mel - mel_expected).abs().mean() < 5e-3
