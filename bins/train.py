"""Stage 2: trains an experiment; run it by `accelerate launch`, or directly."""

import os

from bins._flags.parsers import arguments
from utils.cli import UsageError, leave, run


def main(argv: list[str] | None = None) -> None:
    """Trains; after a signal, the exit code is 128 plus its number."""
    flags = arguments("train", argv)
    from models.base.registry import load_config
    from models.training.run import open_run
    from models.training.trainer import train
    from processors.dataset.generated import N_LJSPEECH

    overrides = list(flags.set)
    if flags.synthetic:  # --set may ask for fewer
        overrides.insert(0, f"train.synthetic_utterances={N_LJSPEECH}")
    if flags.profile:  # --set may choose others
        overrides.insert(0, "train.profile.steps=[10, 15]")
    if flags.seed is not None:
        overrides.append(f"train.random_seed={flags.seed}")
    config = load_config(flags.config, overrides, flags.task)
    if flags.synthetic and not config.train.synthetic_utterances:
        raise UsageError("--synthetic contradicts --set train.synthetic_utterances=0")
    if flags.profile and not config.train.profile.steps:
        raise UsageError("--profile contradicts --set train.profile.steps=[]")
    with open_run(
        config, flags.name, resume=flags.resume, restart=flags.restart, init_from=flags.init_from
    ) as opened:
        received = train(opened)
    code = 0 if received is None else 128 + received
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        leave(code)
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    run(main)
