"""Exported voices in the published sherpa-onnx."""

import numpy as np
import pytest
import torch

from models.base.assets import Speaker
from models.export.folder import open_voice
from models.export.merged import export_sherpa
from processors.text.g2p import lookup
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.models.synthesizer.test_vocoders import make_vocoder

sherpa_onnx = pytest.importorskip("sherpa_onnx")


def test_the_published_package_speaks_as_the_network(tmp_path):
    home = make_voice(tmp_path / "two", Speaker("anna", "en-us"), Speaker("bert", "en-us"))
    voice = open_voice(home, make_vocoder(tmp_path / "vocoder"))
    export_sherpa(voice, tmp_path / "out")
    assert (tmp_path / "out" / "cmudict.LICENSE").is_file()
    files = {key: str(tmp_path / "out" / f"{key}.txt") for key in ("lexicon", "tokens")}
    vits = sherpa_onnx.OfflineTtsVitsModelConfig(
        model=str(tmp_path / "out" / "model.onnx"), **files
    )
    model = sherpa_onnx.OfflineTtsModelConfig(vits=vits, num_threads=1)
    tts = sherpa_onnx.OfflineTts(sherpa_onnx.OfflineTtsConfig(model=model))
    phones = ["<sil>", *lookup("the"), *lookup("fox"), "<.>"]
    ids = torch.tensor([voice.model.vocabulary.ids(phones)])
    for speed in (1.0, 0.8):
        found = tts.generate("the fox", sid=1, speed=speed)
        mel = voice.model.network.infer(
            ids,
            torch.tensor([ids.shape[1]]),
            speaker_ids=torch.tensor([1]),
            duration_control=torch.full(ids.shape, 1 / speed),
        ).mel
        expected = voice.graphs["vocoder"].module(mel)[0].detach().numpy()
        assert found.sample_rate == voice.model.mel.sample_rate
        np.testing.assert_allclose(np.array(found.samples), expected, rtol=0, atol=1e-3)
