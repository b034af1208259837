import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.synthesizer.settings import (
    RECORDED,
    PitchContour,
    RangeWarning,
    Settings,
    contour_of,
    read_pitch,
    transform_of,
)
from modules.variance.pitch_transform import PitchTransform
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat
from tests.models.synthesizer.speeches import make_speech
from utils.errors import InputError

ALL = frozenset({"pitch", "energy", "duration", "pitch_transform"})


@pytest.mark.parametrize(
    ("controls", "lacking"),
    [
        (Settings(pitch_control=1.1), "pitch"),
        (Settings(pitch=(100.0,)), "pitch"),
        (Settings(energy_control=0.9), "energy"),
        (Settings(duration_control=1.2), "duration"),
        (Settings(pitch_transform=PitchTransform(flatten=True)), "pitch_transform"),
        (Settings(pitch_transform=PitchContour((2.0,), "")), "pitch_transform"),
    ],
)
def test_a_control_that_a_model_lacks_is_an_error_that_names_those_it_has(controls, lacking):
    assert controls.checked("FastPitch", ALL) == controls
    known = ", ".join(sorted(ALL - {lacking}))
    message = rf"^FastPitch has no control of {lacking} \(it has: {known}\); leave it out"
    with pytest.raises(InputError, match=message):
        controls.checked("FastPitch", ALL - {lacking})
    with pytest.raises(InputError, match=r"^Tacotron2 has no control of .* \(it has: none\)"):
        controls.checked("Tacotron2", ())


def test_no_control_is_needed_to_ask_for_none():
    assert Settings().checked("Tacotron2", ()) == Settings()
    assert Settings(pitch_transform=PitchTransform()).checked("Tacotron2", ()) == Settings()
    given = Settings(pitch=(100.0,))
    assert replace(given, pitch_transform=PitchTransform()).checked("FastPitch", ALL) == given


@pytest.mark.parametrize("pitch", [[0, 99.5], np.array([0, 99.5]), torch.tensor([0, 99.5])])
def test_given_pitch_is_any_sequence(pitch):
    checked = Settings(pitch=pitch).checked("FastPitch", ALL)
    assert checked == Settings(pitch=(0.0, 99.5))
    assert checked.changes_pitch


def identity(hz, lengths):
    return hz


@pytest.mark.parametrize(
    ("given", "transform"),
    [
        (None, None),
        ("flatten", PitchTransform(flatten=True)),
        ("invert", PitchTransform(invert=True)),
        (identity, PitchTransform(custom=identity)),
        (PitchTransform(amplify=2.0), PitchTransform(amplify=2.0)),
        (PitchContour((2.0,), ""), PitchContour((2.0,), "")),
    ],
)
def test_a_transform_is_a_record_a_name_or_a_function(given, transform):
    assert transform_of(given) == transform


@pytest.mark.parametrize(
    ("transform", "changes"),
    [
        (None, {}),
        (PitchTransform(), {}),
        ("flatten", {"flatten": True}),
        (PitchTransform(flatten=True, shift_hz=5), {"flatten": True, "shift_hz": 5}),
        (PitchContour((1.0, 2.0), "ramp:1:2"), {"custom": "ramp:1:2"}),
    ],
)
def test_the_record_of_settings_is_ready_for_json_with_what_a_transform_changes(transform, changes):
    settings = Settings("one", 1.2, pitch_transform=transform, pitch=(100.0,), fade_out=3, seed=5)
    assert settings.record() == {
        **{"pitch_control": 1.2, "energy_control": 1.0, "duration_control": 1.0},
        **{"pitch_transform": changes, "steps": None, "temperature": None},
        **{"fade_out": 3, "seed": 5},
    }
    assert set(RECORDED) == set(settings.record())


def test_what_is_asked_of_the_model_is_what_differs_from_the_defaults():
    settings = Settings(speaker="one", pitch_control=1.2, pitch=(100.0,), fade_out=3, seed=5)
    assert settings.changed_controls() == {"pitch_control": 1.2, "pitch": (100.0,)}


NO_LIST = r"^pitch is .*; expected a list of Hz, one for each ph"
NO_HZ = "^value 2 of the pitch is .*; expected Hz, 0 where"
TWICE = "acts on predicted pitch, and the pitch of this text is given; leave one of them out"
NO_FACTOR = "{}_control is .*; expected a number from 0.1 to 10$"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *(
            ({f"{name}_control": value}, NO_FACTOR.format(name))
            for name in ("pitch", "energy", "duration")
            for value in (0, -1, math.nan, math.inf, 11, "1", None, True)
        ),
        *(
            ({"pitch": pitch}, NO_LIST)
            for pitch in (5, "123", ["100"], [100.0, None], [True], [[100.0]], [[1.0], []])
        ),
        ({"pitch": torch.ones(1).to_sparse()}, NO_LIST),
        *(({"pitch": (100.0, hz)}, NO_HZ) for hz in (math.nan, -1.0, math.inf)),
        ({"pitch_transform": "invert", "pitch": (100.0,)}, TWICE),
        ({"pitch_transform": PitchContour((1.0,), ""), "pitch": (100.0,)}, TWICE),
        ({"pitch_transform": PitchTransform(shift_hz=500.5)}, "by 500.5 Hz; expected -500 to 500"),
        ({"pitch_transform": PitchTransform(shift_hz=-20000)}, "by -20000 Hz; expected -500 to"),
        *(
            ({"pitch_transform": given}, r"^pitch_transform is .*; expected 'flatten', 'invert', ")
            for given in ("amplify", "Flatten", 5, ["flatten"], math.sqrt, lambda hz: hz)
        ),
        ({"steps": 0}, "steps is 0; expected a whole number from 1 to 50"),
        ({"steps": 51}, "steps is 51; expected a whole number from 1 to 50"),
        ({"temperature": 2.5}, "temperature is 2.5; expected a number from 0 to 2"),
        *(
            ({"fade_out": n}, "^fade_out is .*; expected a whole number, 0 or m")
            for n in (-1, 1.5, "1", None)
        ),
        ({"fadeout": 1}, r"no setting 'fadeout'; did you mean fade_out"),
        ({"pace": 1}, r"did you mean duration_control, which is 1 / pace"),
    ],
)
def test_settings_have_names_types_and_limits(given, message):
    with pytest.raises(InputError, match=message):
        Settings.of(given).checked("FlowSpeech", ALL | {"steps", "temperature"})


def test_numbers_of_numpy_become_those_of_python():
    settings = Settings(pitch_control=np.float32(1.5), fade_out=np.int64(3), seed=np.int32(2))
    checked = settings.checked("FastPitch", ALL)
    numbers = checked.pitch_control, checked.fade_out, checked.seed
    assert [type(number) for number in numbers] == [float, int, int]


MEAN = torch.tensor([[1.0], [1.0]])


def factors(contour: PitchContour, spans: list[list[float]], lengths: list[int]):
    """What the contour multiplies phones by, at the valid positions of each clause."""
    ones = torch.ones(len(spans), max(lengths))
    changed = contour.over(torch.tensor(spans))(ones, MEAN, torch.tensor(lengths))
    return [row[:length].tolist() for row, length in zip(changed, lengths, strict=True)]


def test_a_ramp_is_nvidias_sample():
    (found,) = factors(contour_of("ramp:0.5:1.5"), [[0, 1]], [8])
    assert found == pytest.approx([i / 8 + 0.5 for i in range(8)])


def test_a_contour_goes_on_from_one_clause_to_the_next_and_is_that_of_frames(tmp_path):
    contour = PitchContour((1.0, 3.0, 2.0), "")
    (whole,) = factors(contour, [[0, 1]], [8])
    first, second = factors(contour, [[0, 3 / 8], [3 / 8, 1]], [3, 5])
    assert first + second == pytest.approx(whole)
    assert whole == pytest.approx([1, 1.5, 2, 2.5, 3, 2.75, 2.5, 2.25])
    phones, frames = (factors(contour, [[0.2, 0.6]], [n])[0] for n in (4, 400))
    assert frames[::100] == pytest.approx(phones)
    assert factors(PitchContour((1.25,), ""), [[0, 1]], [3]) == [[1.25] * 3]
    path = tmp_path / "contour.txt"
    path.write_text("0.8\n\n1.25\n1\n")  # a factor a line
    assert contour_of(str(path)) == PitchContour((0.8, 1.25, 1.0), str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\nf * 2\n", r"contour.txt, line 2: 'f \* 2'; expected a finite number"),
        ("1\nnan\n", "contour.txt, line 2: 'nan'; expected a finite"),
        ("1\n\n0\n", "contour.txt, line 3: factor 0; expected a number from 0.1 to 10"),
        ("-1\n", "contour.txt, line 1: factor -1; expected a number from 0.1 to 10"),
        ("", "contour.txt: empty; expected one number a line"),
        ("ramp:1", "expected ramp:A:B, such as"),
        ("ramp:1:2:3", "expected ramp:A:B, such as"),
        ("ramp:1:", "ramp:1:: ''; expected a finite number"),
        ("ramp:a:2", "ramp:a:2: 'a'; expected a finite number"),
        ("ramp:1:20", "ramp:1:20: factor 20; expected a number from 0.1 to 10"),
        ("/none/contour.txt", "/none/contour.txt: No such file"),
    ],
)
def test_faults_of_a_contour_and_of_the_lines_of_its_file_are_named(tmp_path, text, message):
    (tmp_path / "contour.txt").write_text(text)
    spec = text if text.startswith(("ramp", "/")) else str(tmp_path / "contour.txt")
    with pytest.raises(InputError, match=message):
        contour_of(spec)


HZ = (0.0, 120.5, 99.0)


def test_text_arrays_and_tensors_hold_the_same_pitch(tmp_path):
    (tmp_path / "a.txt").write_text("0\n120.5\n99\n")
    np.save(tmp_path / "b.npy", np.array(HZ))
    torch.save(torch.tensor([HZ]), tmp_path / "c.pt")  # (1, N), as NVIDIA's
    for name in ("a.txt", "b.npy", "c.pt"):
        assert read_pitch(tmp_path / name) == HZ


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([100.0, -0.3]), r"a.npy, value 2: -0.3; expected Hz, 0 where unvoiced"),
        (np.array([np.nan, 1.0]), r"a.npy, value 1: nan; expected Hz"),
        (np.zeros(3), r"a.npy: all values are 0, unvoiced; expected Hz"),
        (np.zeros((2, 3)), r"a.npy: float64 of shape \(2, 3\); expected numbers, \(N,\) or"),
        (np.zeros(0), r"of shape \(0,\); expected numbers"),
        (np.float64(3), r"of shape \(\); expected numbers"),
        (np.array(["100"]), r"a.npy: <U3 of shape \(1,\); expected numbers"),
        (np.array([True]), r"a.npy: bool of shape \(1,\); expected numbers"),
        ("100\n\n-2\n", r"a.txt, line 3: -2; expected Hz, 0 where unvoiced"),
    ],
)
def test_what_is_no_pitch_is_refused(tmp_path, values, message):
    path = tmp_path / ("a.txt" if isinstance(values, str) else "a.npy")
    path.write_text(values) if isinstance(values, str) else np.save(path, values)
    with pytest.raises(InputError, match=message):
        read_pitch(path)


PITCH = Stat(160.0, 30.0, 66.0, 372.0)
STATS = CorpusStats({"anna": SpeakerStats(PITCH, PITCH, PITCH, PITCH, seconds=9.0)})


def spoken(vowel_hz: list[float], pause_hz: float = 10.0):
    """A vowel of so many frames between two pauses of a frame."""
    f0, durations = np.array([pause_hz, *vowel_hz, pause_hz]), np.array([1, len(vowel_hz), 1])
    return replace(make_speech(("<sil>", "AA1", "<.>"), durations), speaker="anna", f0=f0)


@pytest.mark.parametrize(
    ("f0", "stats", "warned"),
    [
        ([101, 219, 160, 160], STATS, False),
        ([99, 160, 160, 160], STATS, True),
        ([99, 160, 160, 160, 160], STATS, False),  # a fifth may be
        ([221] * 4, STATS, True),
        ([0, 0, 160], STATS, False),  # given as unvoiced
        ([0, 0], STATS, True),  # shifted below 0 Hz
        ([], STATS, False),
        ([500], None, False),
    ],
)
def test_a_pitch_beyond_two_deviations_is_warned_of_once(caplog, f0, stats, warned):
    check = RangeWarning(stats, {"AA1"}).check
    check(spoken(f0))
    check(spoken(f0))
    wanted = "beyond the 100 to 220 Hz of most recordings of anna"
    assert caplog.text.count(wanted) == int(warned)
    assert warned or caplog.text == ""
