import pytest

from bins.inference import main
from models.synthesizer.runs import text_synthesis
from models.synthesizer.runs.text_synthesis import InputText
from models.synthesizer.settings import PitchContour
from modules.variance.pitch_transform import PitchTransform
from utils.cli import UsageError

MODEL = ["--infer_expt_dir", "m", "--infer_output_dir", "out"]
SINGLE = [*MODEL, "--infer_mode", "single"]
BATCH = [*MODEL, "--infer_mode", "batch"]
TEST = ["--infer_testing_set", "test"]
TEXT = [*SINGLE, "--infer_text", "Hi."]


@pytest.fixture
def stage_3(monkeypatch):
    """Runs the command; gives options of the synthesizer, the synthesis, and what it speaks."""
    options, calls = {}, []
    monkeypatch.setattr(text_synthesis, "Synthesizer", lambda *_, **named: options.update(named))
    monkeypatch.setattr(text_synthesis, "read_input_texts", lambda path, **_: [InputText("Hi.")])
    for name in ("synthesise_texts", "synthesise_dataset"):
        monkeypatch.setattr(text_synthesis, name, lambda *given: calls.append(given))

    def run(*flags: str):
        main([*flags])
        return options, *calls.pop()

    return run


@pytest.mark.parametrize(
    ("flags", "overwrite"),
    [
        (TEXT, True),
        ([*SINGLE, "--infer_text_file", __file__], False),
        ([*SINGLE, "--infer_text_file", __file__, "--overwrite"], True),
        ([*BATCH, "--infer_dataset", "Anna", *TEST], False),
        ([*BATCH, "--infer_dataset", "Anna", *TEST, "--overwrite"], True),
    ],
)
def test_a_text_of_the_command_line_is_spoken_even_if_it_was_before(stage_3, flags, overwrite):
    _, synthesis, *_ = stage_3(*flags)
    assert synthesis.overwrite == overwrite


def test_transforms_fade_steps_temperature_and_tags_reach_stage_3(stage_3):
    flags = "--pitch_transform_invert --pitch_transform_amplify 1.5 --pitch_transform_shift -50"
    *_, settings = stage_3(*TEXT, *flags.split(), "--fade_out", "10", "--pace", "2")
    assert settings.pitch_transform == PitchTransform(invert=True, amplify=1.5, shift_hz=-50)
    assert (settings.fade_out, settings.duration_control) == (10, 0.5)
    *_, ramp = stage_3(*TEXT, "--pitch_transform_custom", "ramp:0.5:1.5")
    assert ramp.pitch_transform == PitchContour((0.5, 1.5), "ramp:0.5:1.5")
    *_, settings = stage_3(*TEXT, "--steps", "8", "--temperature", "0")
    assert (settings.steps, settings.temperature) == (8, 0.0)
    options, *_, usual = stage_3(*TEXT)
    assert (usual.steps, usual.temperature, options["tagged"]) == (None, None, True)
    assert not stage_3(*TEXT, "--no_tags")[0]["tagged"]


def test_a_contour_that_cannot_be_read_is_a_usage_error(stage_3, tmp_path):
    (tmp_path / "c.txt").write_text("1\nhigh\n")
    for spec, message in (
        (f"{tmp_path}/c.txt", ".*/c.txt, line 2: 'high'; expected a"),
        ("ramp:1:20", "ramp:1:20: factor 20; expected a number from 0.1 to 10"),
    ):
        with pytest.raises(UsageError, match=f"^--pitch_transform_custom: {message}"):
            stage_3(*TEXT, "--pitch_transform_custom", spec)
