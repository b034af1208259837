"""Exported voices for tests."""

import importlib
import sys
from pathlib import Path

from models.base.assets import Speaker
from models.programs.export.folder import export_voice, open_voice
from models.synthesizer.synthesizer import Synthesizer
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


def export(synthesizer: Synthesizer, vocoder, folder: Path, **options) -> Path:
    """Exports a synthesizer's voice with a vocoder."""
    export_voice(open_voice(synthesizer.model.home, vocoder), folder, **options)
    return folder


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
