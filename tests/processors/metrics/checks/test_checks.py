from pathlib import Path

import numpy as np
import pytest
import soundfile

from models.synthesizer.speech import faded_pieces
from processors.metrics.recognition.labelled_speech import LabelledSpeech
from processors.metrics.registry import CHECKS
from tests.processors.metrics.checks.signals import RATE, silence, speech, voice

REPOSITORY = Path(__file__).parents[4]
CORPUS = REPOSITORY / "egs" / "_demo" / "LJSpeech-mini"
OF_SOUND = ["clipping", "silence"]
CLIPPED = {"LJ001-0096", "LJ003-0011", "LJ016-0117", "LJ042-0161"}  # before they were published


@pytest.fixture(scope="module")
def recordings():
    texts = {}
    for line in (CORPUS / "metadata.csv").read_text(encoding="utf-8").splitlines():
        texts[line.split("|")[0]] = line.split("|")[-1]
    return [
        LabelledSpeech(*soundfile.read(path, dtype="float32"), texts[path.stem], "en", id=path.stem)
        for path in sorted((CORPUS / "wavs").iterdir())
    ]


def flagged(spoken: LabelledSpeech, recorded: LabelledSpeech | None) -> list[str]:
    return [name for name in OF_SOUND if CHECKS[name].score(spoken, recorded) is not None]


def test_good_recordings_are_not_flagged(recordings):
    assert len(recordings) == 55
    for spoken in recordings:
        for recorded in (None, spoken):
            flags = flagged(spoken, recorded)
            assert flags == (["clipping"] if spoken.id in CLIPPED else []), spoken.id


def test_every_fault_put_into_a_recording_is_found(recordings):
    recorded = recordings[0]
    (wav,) = faded_pieces([recorded.wav], len(recorded.wav), RATE)
    middle = len(wav) // 2
    faults = {
        "clipping": np.clip(wav * 1.4 / np.abs(wav).max(), -1, 1),
        "silence": np.insert(wav, middle, silence(1.5)),
    }
    for name, fault in faults.items():
        spoken = LabelledSpeech(fault.astype(np.float32), RATE, recorded.text, "en")
        assert name in flagged(spoken, recorded), name


@pytest.mark.parametrize("n_samples", [0, 1, 2, 10, 100, 500, 2205])
@pytest.mark.parametrize("kind", ["silence", "sound"])
def test_signals_of_any_length_can_be_checked(n_samples, kind):
    wav = np.zeros(n_samples) if kind == "silence" else np.sin(np.arange(n_samples) / 10)
    spoken = LabelledSpeech(wav.astype(np.float32), RATE, "Yes.", "en")

    for recorded in (None, spoken, speech(voice(2)), speech(silence(0))):
        flags = flagged(spoken, recorded)
        if kind == "silence" or n_samples == 0:
            assert flags == ["silence"]
