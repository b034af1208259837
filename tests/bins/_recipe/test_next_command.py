import shlex

import pytest

from bins._flags.parsers import recipe_arguments
from bins._recipe.next_command import next_command
from bins._recipe.places import Recipe, find_recipe
from models.training import readiness

TTS = find_recipe("tts/FastPitch", "/")
VOCODER = find_recipe("vocoder/HiFiGAN", None)


@pytest.fixture
def following(monkeypatch):
    """The command after a stage, for data and a voice with such splits and speakers."""

    def command_after(recipe: Recipe, stage: int, *, empty=(), speaker=None, **texts) -> str:
        monkeypatch.setattr(readiness, "empty_splits", lambda config, overrides: list(empty))
        monkeypatch.setattr(readiness, "last_speaker", lambda config, overrides, name: speaker)
        return next_command(recipe, stage, {"config": "a b.json", **texts})

    return command_after


@pytest.mark.parametrize(
    ("recipe", "stage", "texts", "flags"),
    [
        (TTS, 1, {}, "--stage 2 --name my_model"),
        (TTS, 1, {"name": "a"}, "--stage 2 --name a"),
        (TTS, 2, {"name": "a"}, "--stage 3 --name a --infer_mode single --infer_text 'Any text.'"),
        (
            TTS,
            2,
            {"name": "a", "speaker": "it's"},
            "--stage 3 --name a --infer_mode single --infer_text 'Any text.' --speaker \"it's\"",
        ),
        (
            VOCODER,
            2,
            {"name": "a"},
            "--stage 3 --name a --infer_mode single --infer_audio_dir /path/to/recordings",
        ),
    ],
)
def test_the_next_stage_is_named_with_all_that_it_needs(following, recipe, stage, texts, flags):
    words = shlex.split(following(recipe, stage, set=["x=it's", "y=1"], **texts))
    settings = ["--config", "a b.json", "--set", "x=it's", "--set", "y=1"]
    assert words == [*recipe.command, *shlex.split(flags), *settings]
    recipe_arguments(recipe.kind, words[len(recipe.command) :])


def test_data_without_a_split_are_completed_first(following):
    line = following(TTS, 1, empty=["valid of mini", "test of mini"])
    remark, command = line.split(", then ")
    assert remark == (
        "no utterances in valid of mini, test of mini: add some or change preprocess.split"
    )
    assert shlex.split(command)[2:] == ["--stage", "1", "--config", "a b.json"]
