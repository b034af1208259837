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


@pytest.mark.parametrize(
    ("flags", "overwrite"),
    [
        ([*SINGLE, "--infer_text", "Hi."], True),
        ([*SINGLE, "--infer_text_file", __file__], False),
        ([*SINGLE, "--infer_text_file", __file__, "--overwrite"], True),
        ([*BATCH, "--infer_dataset", "Anna", *TEST], False),
        ([*BATCH, "--infer_dataset", "Anna", *TEST, "--overwrite"], True),
    ],
)
def test_a_text_of_the_command_line_is_spoken_even_if_it_was_before(monkeypatch, flags, overwrite):
    spoken = []
    monkeypatch.setattr(text_synthesis, "Synthesizer", lambda *_, **__: None)
    monkeypatch.setattr(text_synthesis, "read_input_texts", lambda path, **_: [InputText("Hi.")])
    for name in ("synthesise_texts", "synthesise_dataset"):
        monkeypatch.setattr(text_synthesis, name, lambda synthesis, *_: spoken.append(synthesis))
    main(flags)
    assert [synthesis.overwrite for synthesis in spoken] == [overwrite]


TEXT = [*SINGLE, "--infer_text", "Hi."]


def settings_of(monkeypatch, *flags: str) -> text_synthesis.Settings:
    """What stage 3 is asked for by flags."""
    asked = []
    monkeypatch.setattr(text_synthesis, "Synthesizer", lambda *_, **__: None)
    monkeypatch.setattr(text_synthesis, "synthesise_texts", lambda *given: asked.append(given))
    main([*TEXT, *flags])
    return asked[0][2]


def test_transforms_fade_steps_and_temperature_reach_stage_3(monkeypatch):
    flags = "--pitch_transform_invert --pitch_transform_amplify 1.5 --pitch_transform_shift -50"
    settings = settings_of(monkeypatch, *flags.split(), "--fade_out", "10", "--pace", "2")
    assert settings.pitch_transform == PitchTransform(invert=True, amplify=1.5, shift_hz=-50)
    assert (settings.fade_out, settings.duration_control) == (10, 0.5)
    ramp = settings_of(monkeypatch, "--pitch_transform_custom", "ramp:0.5:1.5")
    assert ramp.pitch_transform == PitchContour((0.5, 1.5), "ramp:0.5:1.5")
    settings = settings_of(monkeypatch, "--steps", "8", "--temperature", "0")
    assert (settings.steps, settings.temperature) == (8, 0.0)
    usual = settings_of(monkeypatch)
    assert (usual.steps, usual.temperature) == (None, None)


def test_wavs_are_tagged_unless_told_not_to(monkeypatch):
    asked = []
    monkeypatch.setattr(text_synthesis, "Synthesizer", lambda *_, **named: asked.append(named))
    monkeypatch.setattr(text_synthesis, "synthesise_texts", lambda *_: None)
    for flags in ((), ("--no_tags",)):
        main([*TEXT, *flags])
    assert [named["tagged"] for named in asked] == [True, False]


def test_a_contour_that_cannot_be_read_is_a_usage_error(monkeypatch, tmp_path):
    (tmp_path / "c.txt").write_text("1\nhigh\n")
    for spec, message in (
        (f"{tmp_path}/c.txt", ".*/c.txt, line 2: 'high'; expected a"),
        ("ramp:1:20", "ramp:1:20: factor 20; expected a number from 0.1 to 10"),
    ):
        with pytest.raises(UsageError, match=f"^--pitch_transform_custom: {message}"):
            settings_of(monkeypatch, "--pitch_transform_custom", spec)
