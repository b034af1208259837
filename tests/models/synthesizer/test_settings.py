import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.synthesizer.pitch import PitchContour, changes_of, transform_of
from models.synthesizer.settings import RECORDED, Settings
from modules.variance.contour import PitchTransform
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


@pytest.mark.parametrize("name", ["pitch", "energy", "duration"])
@pytest.mark.parametrize("value", [0, -1, math.nan, 11, "1", None, True])
def test_factors_have_a_range(name, value):
    with pytest.raises(
        InputError, match=rf"^{name}_control is .*; expected a number from 0.1 to 10$"
    ):
        Settings(**{f"{name}_control": value}).checked("FastPitch", ALL)


@pytest.mark.parametrize("pitch", [[0, 99.5], np.array([0, 99.5]), torch.tensor([0, 99.5])])
def test_given_pitch_is_any_sequence(pitch):
    checked = Settings(pitch=pitch).checked("FastPitch", ALL)
    assert checked == Settings(pitch=(0.0, 99.5))
    assert checked.change_pitch


@pytest.mark.parametrize(
    "pitch",
    [5, "123", ["100"], [100.0, None], [True], [[100.0]], [[1.0], []], torch.ones(1).to_sparse()],
)
def test_given_pitch_that_is_no_list_of_numbers_is_refused(pitch):
    with pytest.raises(InputError, match=r"^pitch is .*; expected a list of Hz, one for each ph"):
        Settings(pitch=pitch).checked("FastPitch", ALL)


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


@pytest.mark.parametrize("given", ["amplify", "Flatten", 5, ["flatten"], math.sqrt, lambda hz: hz])
def test_what_is_no_transform_is_refused_with_those_there_are(given):
    with pytest.raises(InputError, match=r"^pitch_transform is .*; expected 'flatten', 'invert', "):
        transform_of(given)


@pytest.mark.parametrize("value", [math.nan, -1.0, math.inf])
def test_given_pitch_is_finite_hz(value):
    with pytest.raises(InputError, match=r"^value 2 of the pitch is .*; expected Hz, 0 where"):
        Settings(pitch=(100.0, value)).checked("FastPitch", ALL)


@pytest.mark.parametrize("transform", [PitchTransform(invert=True), PitchContour((1.0,), "")])
def test_given_pitch_and_a_transform_exclude_each_other(transform):
    with pytest.raises(InputError, match="acts on predicted pitch, and the pitch of this text is"):
        Settings(pitch_transform=transform, pitch=(100.0,)).checked("FastPitch", ALL)


@pytest.mark.parametrize("hz", [500.5, -20000])
def test_a_shift_beyond_any_voice_is_refused(hz):
    with pytest.raises(InputError, match=rf"shifts by {hz:g} Hz; expected -500 to 500"):
        Settings(pitch_transform=PitchTransform(shift_hz=hz)).checked(
            "FastPitch", {"pitch_transform"}
        )


def test_records_hold_what_differs_from_the_defaults():
    assert changes_of(None) == changes_of(PitchTransform()) == {}
    assert changes_of(PitchTransform(flatten=True, shift_hz=5)) == {"flatten": True, "shift_hz": 5}
    assert changes_of(PitchContour((1.0, 2.0), "ramp:1:2")) == {"custom": "ramp:1:2"}


def test_what_is_asked_of_the_model_is_what_differs_from_the_defaults():
    settings = Settings(speaker="one", pitch_control=1.2, pitch=(100.0,), fade_out=3, seed=5)
    assert settings.changed_controls() == {"pitch_control": 1.2, "pitch": (100.0,)}


def test_the_record_of_settings_is_ready_for_json():
    settings = Settings("one", 1.2, pitch_transform="flatten", pitch=(100.0,), fade_out=3, seed=5)
    assert settings.record() == {
        "pitch_control": 1.2,
        "energy_control": 1.0,
        "duration_control": 1.0,
        "pitch_transform": {"flatten": True},
        "fade_out": 3,
        "seed": 5,
    }
    assert set(RECORDED) == set(settings.record())


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(InputError, match=r"no setting 'fadeout'; did you mean fade_out"):
        Settings.of({"fadeout": 1})
    with pytest.raises(InputError, match=r"did you mean duration_control, which is 1 / pace"):
        Settings.of({"pace": 1})


@pytest.mark.parametrize("value", [-1, 1.5, "1", None])
def test_a_fade_is_a_whole_number_of_frames(value):
    with pytest.raises(InputError, match=r"^fade_out is .*; expected a whole number, 0 or more"):
        Settings(fade_out=value).checked("FastPitch", ALL)


def test_numbers_of_numpy_become_those_of_python():
    settings = Settings(pitch_control=np.float32(1.5), fade_out=np.int64(3), seed=np.int32(2))
    checked = settings.checked("FastPitch", ALL)
    assert [type(x) for x in (checked.pitch_control, checked.fade_out, checked.seed)] == [
        float, int, int,
    ]  # fmt: skip
