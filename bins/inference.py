"""Stage 3: speaks texts with a trained model."""

import argparse
from pathlib import Path

from utils.cli import Parser, UsageError, add_config_arguments, run
from utils.logging import setup_logging


def parser() -> Parser:
    """The flags of stage 3."""
    flags = Parser("Speaks texts with a trained model.")
    add_config_arguments(flags, required=False)
    add = flags.add_argument
    add("--name", help="with --config: the experiment <log_dir>/<name>")
    add("--infer_expt_dir", help="experiment, a checkpoint in it, or org/name[@revision]")
    add("--infer_mode", choices=("single", "batch"), required=True)
    add("--infer_text", help="single: the text")
    add("--infer_text_file", type=Path, help="single: a UTF-8 file with one text a line")
    add("--infer_dataset", help="batch: a data set that stage 1 has prepared")
    add("--infer_testing_set", choices=("train", "test", "golden_test"), help="batch: its split")
    add("--infer_output_dir", type=Path, help="where the wavs go; default: result/ in the model's")
    add("--vocoder_dir", help="vocoder, given as for --infer_expt_dir; default: Griffin-Lim")
    add("--speaker", help="who speaks; batch: default as recorded")
    add("--pitch_control", type=float, default=1.0, help="1.2 is 20 %% higher")
    add("--energy_control", type=float, default=1.0, help="1.2 is 20 %% louder")
    add("--duration_control", type=float, default=1.0, help="1.2 is 20 %% slower")
    add("--seed", type=int, default=0, help="for models that draw random numbers")
    return flags


def check(given: argparse.Namespace) -> None:
    """Makes sure that the flags go together.

    Raises:
        UsageError: If they do not; the message names the flags.
    """
    used = {name for name, value in vars(given).items() if value is not None}
    texts, data = ("infer_text", "infer_text_file"), ("infer_dataset", "infer_testing_set")
    required, foreign = (data, texts) if given.infer_mode == "batch" else ((), data)
    for name in foreign:
        if name in used:
            raise UsageError(f"--{name} and --infer_mode {given.infer_mode} exclude each other")
    for name in required:
        if name not in used:
            raise UsageError(f"--infer_mode {given.infer_mode} needs --{name}")
    if given.infer_mode == "single" and len(used.intersection(texts)) != 1:
        raise UsageError("--infer_mode single needs one of --infer_text and --infer_text_file")
    if "infer_expt_dir" in used:
        for name in sorted(used & {"config", "name"}):
            raise UsageError(f"--infer_expt_dir and --{name} exclude each other")
    elif not {"config", "name"} <= used:
        raise UsageError("give --infer_expt_dir, or --config and --name")


def main() -> None:
    """Runs stage 3."""
    given = parser().parse_args()
    check(given)
    setup_logging()

    from models import inference
    from models.speaking import experiment_of

    reference = given.infer_expt_dir or experiment_of(given.config, given.name, given.overrides)
    settings = inference.Settings(
        speaker=given.speaker,
        pitch_control=given.pitch_control,
        energy_control=given.energy_control,
        duration_control=given.duration_control,
        seed=given.seed,
    )
    voice = inference.load_voice(
        reference, given.vocoder_dir, given.infer_output_dir, given.overrides
    )
    if given.infer_mode == "batch":
        inference.speak_dataset(voice, given.infer_dataset, given.infer_testing_set, settings)
    elif given.infer_text_file is not None:
        inference.speak_texts(voice, inference.read_texts(given.infer_text_file), settings)
    else:
        inference.speak_texts(voice, [given.infer_text], settings)


if __name__ == "__main__":
    run(main)
