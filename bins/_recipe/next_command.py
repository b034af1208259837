"""The command that a user needs after stage 1 or 2."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bins._recipe.places import Recipe

_EXAMPLES = {
    "tts": ("--infer_text", "Any text."),
    "vocoder": ("--infer_audio_dir", "/path/to/recordings"),
}


def next_command(recipe: Recipe, stage: int, texts: Mapping[str, Any]) -> str:
    """Returns the command of the next stage, with what has to be done before it.

    Args:
        stage: The stage that has ended: 1 or 2.
        texts: Flags that it was run with.
    """
    from models.training.readiness import empty_splits, last_speaker  # PyTorch is loaded by now

    config, overrides = texts["config"], texts.get("set", [])
    before = ""
    if stage == 2:
        flags = ["3", "--name", texts["name"], "--infer_mode", "single", *_EXAMPLES[recipe.kind]]
        if speaker := last_speaker(Path(config), overrides, texts["name"]):
            flags += ["--speaker", speaker]
    elif empty := empty_splits(Path(config), overrides):
        flags = ["1"]
        before = f"no utterances in {', '.join(empty)}: add some or change preprocess.split, then "
    else:
        flags = ["2", "--name", texts.get("name", "my_model")]
    settings = [word for setting in overrides for word in ("--set", setting)]
    return before + shlex.join([*recipe.command, "--stage", *flags, "--config", config, *settings])
