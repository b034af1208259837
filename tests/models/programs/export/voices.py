"""Exported voices for tests."""

import importlib
import sys
from pathlib import Path

import pytest
import torch

from models.base.assets import Speaker
from tests.models.synthesizer.test_synthesizer import make_voice

# Equal voices in all files, whose graphs are exported once
SPEAKERS = Speaker("anna", "en-us"), Speaker("bert", "en-us")
RATES = (256,)  # of upsampling: fewer layers, which take the time of an export
TEXTS = (
    "Hello.",
    "Is this the same voice?",
    "Seventy six trombones led the big parade, with a hundred and ten cornets close at hand!",
    "One sentence. Another one, and a third? Yes: three of them.",
    "The quick brown fox jumps over the lazy dog.",
    "No.",
    "In the year 1999, she paid $12.50; he paid nothing.",
    "A very long sentence goes on, and on, and on, past every comma that could have ended it, until"
    " the reader, who has been patient for so long, is finally allowed to stop and breathe.",
    "Dr. Smith lives at 221 Baker Street.",
    "Thank you!",
)
FLOW = {
    "hidden": 16,
    "encoder": {"n_layers": 1, "filter_size": 32, "kernel_size": 3},
    "prosody": {"channels": 16, "kernel_size": 3, "n_bins": 16},
    "estimator": {"channels": 16, "n_blocks": 1, "kernel_size": 3, "dilations": [2]},
    "steps": 1,
}


def make_flow_voice(folder: Path, *speakers: Speaker) -> Path:
    """An untrained FlowSpeech of some thousand weights, with five frames per phone or so."""
    return make_voice(folder, *speakers, model="FlowSpeech", sizes=FLOW)


def infer(network, ids, speaker: int = 1, **settings):
    """What a network makes of the ids of one text, by the second of two speakers."""
    lengths, speaker_ids = torch.tensor([len(ids)]), torch.tensor([speaker])
    return network.infer(torch.tensor([ids]), lengths, speaker_ids=speaker_ids, **settings)


def wav_of(opened, phones, duration: float = 1.0, **settings):
    """The sound of the networks by the second speaker, (S,)."""
    ids = opened.model.vocabulary.ids(phones)
    factors = torch.full((1, len(ids)), float(duration))
    mel = infer(opened.model.network, ids, duration_control=factors, **settings).mel
    return opened.graphs["vocoder"].module(mel)[0].detach().numpy()


def published_sherpa(folder: Path):
    """A voice in the layout for VITS in the published sherpa-onnx."""
    sherpa_onnx = pytest.importorskip("sherpa_onnx")
    files = {key: str(folder / f"{key}.txt") for key in ("lexicon", "tokens")}
    vits = sherpa_onnx.OfflineTtsVitsModelConfig(model=str(folder / "model.onnx"), **files)
    config = sherpa_onnx.OfflineTtsModelConfig(vits=vits, num_threads=1)
    return sherpa_onnx.OfflineTts(sherpa_onnx.OfflineTtsConfig(model=config))


def runner_in(folder: Path):
    """The module speak.py of an exported folder."""
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("speak", "attention", "frontend"):
            del sys.modules[name]
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("speak")
    finally:
        sys.path.remove(str(folder))
