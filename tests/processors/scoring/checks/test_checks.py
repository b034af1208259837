import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from models.synthesizer.speech import faded
from processors.scoring import checks
from processors.scoring.checks import Check, Flag, NotApplicableError, check_names, find, run_checks
from processors.scoring.recognition import LabelledSpeech
from tests.processors.scoring.checks.signals import RATE, silence, speech, voice
from utils.errors import InputError

REPOSITORY = Path(__file__).parents[4]
CORPUS = REPOSITORY / "egs" / "_demo" / "LJSpeech-mini"
OF_SOUND = ["clicks", "clipping", "dc", "level", "rate", "silence", "truncation"]
CLIPPED = {"LJ001-0096", "LJ003-0011", "LJ016-0117", "LJ042-0161"}  # before they were published


class Stub:
    """A check that does what a function says."""

    def __init__(self, check, packages=()) -> None:
        self.CHECK = Check("a failure", packages=packages)
        self.check = check


def refuse(spoken: LabelledSpeech, recorded: LabelledSpeech | None) -> str:
    raise NotApplicableError("needs a text in Finnish")


@pytest.fixture
def stubs(monkeypatch):
    known = {
        "good": Stub(lambda spoken, recorded: None),
        "bad": Stub(lambda spoken, recorded: f"{len(spoken.wav)} samples, {recorded}"),
        "unable": Stub(refuse),
        "bare": Stub(refuse, packages=("no_such_package",)),
        "broken": Stub(lambda spoken, recorded: {}["cue"]),
    }
    monkeypatch.setattr(checks, "check_names", lambda: list(known))
    monkeypatch.setattr(checks, "find", known.__getitem__)


@pytest.fixture(scope="module")
def recordings():
    texts = {}
    for line in (CORPUS / "metadata.csv").read_text(encoding="utf-8").splitlines():
        texts[line.split("|")[0]] = line.split("|")[-1]
    return [
        LabelledSpeech(*soundfile.read(path, dtype="float32"), texts[path.stem], "en", id=path.stem)
        for path in sorted((CORPUS / "wavs").iterdir())
    ]


def test_a_check_is_a_file_with_its_test():
    folder = Path(checks.__file__).parent
    assert check_names() == sorted(path.stem for path in folder.glob("[a-z]*.py"))
    assert set(OF_SOUND) <= set(check_names())
    for name in check_names():
        assert (Path(__file__).parent / f"test_{name}.py").is_file()


@pytest.mark.parametrize("name", check_names())
def test_a_check_says_what_it_finds(name):
    module = find(name)
    assert module.CHECK.finds
    assert any(character.isdigit() for character in module.__doc__)
    assert callable(module.check)


def test_what_a_check_needs_is_imported_when_it_runs():
    code = """
import sys
from processors.scoring.checks import check_names, find
packages = {package for name in check_names() for package in find(name).CHECK.packages}
print(len(check_names()), {"soxr", "librosa", "scipy", *packages} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    count, loaded = done.stdout.split(maxsplit=1)
    assert int(count) >= len(OF_SOUND)
    assert loaded.strip() == "set()"


def test_an_unknown_check_is_an_error_that_lists_the_known_ones():
    with pytest.raises(InputError, match=r"no check 'click'; did you mean clicks\? \(known: click"):
        find("click")


def test_failures_become_flags_and_other_checks_have_a_reason(stubs):
    flags, skipped, failed = run_checks(speech(silence(1)), None)

    assert flags == (Flag("bad", "22050 samples, None"),)
    assert skipped == {
        "unable": "needs a text in Finnish",
        "bare": "not installed: no_such_package",
    }
    assert failed == {"broken": "KeyError: 'cue'"}


def test_only_the_named_checks_run(stubs):
    assert run_checks(speech(silence(1)), None, ["good"]) == ((), {}, {})


def test_good_recordings_are_not_flagged(recordings):
    assert len(recordings) == 55
    for spoken in recordings:
        for recorded in (None, spoken):
            flags = [flag.check for flag in run_checks(spoken, recorded, OF_SOUND).flags]
            assert flags == (["clipping"] if spoken.id in CLIPPED else []), spoken.id


def test_every_fault_put_into_a_recording_is_found(recordings):
    recorded = recordings[0]
    wav = faded(recorded.wav, RATE)
    middle = len(wav) // 2
    faults = {
        "clipping": np.clip(wav * 1.4 / np.abs(wav).max(), -1, 1),
        "clicks": np.concatenate([wav, [0.1]]),
        "dc": wav + 0.02,
        "level": wav * 0.1,
        "rate": np.interp(np.arange(0, len(wav) - 1, 1 / 1.6), np.arange(len(wav)), wav),
        "silence": np.insert(wav, middle, silence(1.5)),
        "truncation": faded(wav[: round(9.2 * RATE)], RATE),
    }
    for name, fault in faults.items():
        spoken = LabelledSpeech(fault.astype(np.float32), RATE, recorded.text, "en")
        flags, skipped, failed = run_checks(spoken, recorded, OF_SOUND)
        assert name in [flag.check for flag in flags], name
        assert (skipped, failed) == ({}, {})


@pytest.mark.parametrize("n_samples", [0, 1, 2, 10, 100, 500, 2205])
@pytest.mark.parametrize("kind", ["silence", "sound"])
def test_signals_of_any_length_can_be_checked(n_samples, kind):
    wav = np.zeros(n_samples) if kind == "silence" else np.sin(np.arange(n_samples) / 10)
    spoken = LabelledSpeech(wav.astype(np.float32), RATE, "Yes.", "en")

    for recorded in (None, spoken, speech(voice(2)), speech(silence(0))):
        flags = [flag.check for flag in run_checks(spoken, recorded, OF_SOUND).flags]
        if kind == "silence" or n_samples == 0:
            assert flags == ["level", "silence"]
