"""How much code and how many records a text passes on its way to a wav."""

import sys
from dataclasses import is_dataclass
from pathlib import Path
from types import FrameType

import pytest

from models.synthesizer.synthesizer import Synthesizer
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.models.synthesizer.test_vocoders import make_vocoder

ROOT = Path(__file__).parents[3]
ROOMS = ("config", "models", "modules", "preprocessors", "processors", "utils")
# The acoustic model and the vocoder have nine of them; English has seven.
MOST_FILES = 18
MOST_RECORDS = 14


class Tracer:
    """Notes the files of the toolkit that are entered, and the types of records that are made."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.records: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        path = Path(code.co_filename)
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in ROOMS:
            self.files.add(str(path.relative_to(ROOT)))
        first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        made = type(first) if code.co_name == "__init__" else first
        if isinstance(made, type) and made.__module__.split(".")[0] in ROOMS:
            is_record = is_dataclass(made) or hasattr(made, "_fields")
            if is_record and (code.co_name in ("__init__", "_make") or "_cls" in code.co_varnames):
                self.records.add(made.__name__)


@pytest.mark.parametrize("streamed", [False, True])
def test_the_road_from_text_to_wav_is_short(tmp_path, streamed):
    (tmp_path / "voice").mkdir()
    voice = Synthesizer(make_voice(tmp_path / "voice"), make_vocoder(tmp_path / "vocoder"))
    tracer = Tracer()
    sys.setprofile(tracer)
    try:
        list(voice.generate("Any text.")) if streamed else voice("Any text.")
    finally:
        sys.setprofile(None)
    assert "processors/text/reading.py" in tracer.files
    assert {"Passage", "SpokenText", "Speech"} <= tracer.records
    assert len(tracer.files) <= MOST_FILES, sorted(tracer.files)
    assert len(tracer.records) <= MOST_RECORDS, sorted(tracer.records)
