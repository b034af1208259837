"""Exported voices for tests: what they say comes from the toolkit's front end."""

import importlib
import json
import sys
from pathlib import Path

from models.export.folder import export_voice, open_voice
from models.synthesizer.synthesizer import Synthesizer

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

_FRONT_END = '''
import json
from pathlib import Path
from types import SimpleNamespace


class Reader:
    """Texts that were read before."""

    def __init__(self, folder):
        self.readings = json.loads((Path(folder) / "readings.json").read_text())

    def __call__(self, text, language=None):
        sentences = self.readings[text]
        return [[SimpleNamespace(phone_ids=ids) for ids in clauses] for clauses in sentences]
'''


def export_with_readings(synthesizer: Synthesizer, vocoder, folder: Path, **options) -> Path:
    """Exports a voice with a vocoder; the front end knows `TEXTS` only."""
    export_voice(open_voice(synthesizer.model.home, vocoder), folder, **options)
    vocabulary = synthesizer.model.vocabulary
    readings = {
        text: [
            [vocabulary.ids(passage.spoken.phones) for passage in sentence]
            for sentence in synthesizer._reader.passages(text, "en-us", None, pauses=True)
        ]
        for text in TEXTS
    }
    (folder / "readings.json").write_text(json.dumps(readings))
    (folder / "frontend.py").write_text(_FRONT_END)
    return folder


def runner_in(folder: Path):
    """The module speak.py of an exported folder."""
    for name in ("speak", "attention", "frontend"):
        sys.modules.pop(name, None)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("speak")
    finally:
        sys.path.remove(str(folder))
