"""Stage 2: trains an experiment."""

import argparse
import os

from utils.cli import Parser, UsageError, add_config_arguments, add_task_argument, leave, run


def _arguments() -> argparse.Namespace:
    parser = Parser("Stage 2: trains an experiment; run it by `accelerate launch`, or directly.")
    add_config_arguments(parser)
    add_task_argument(parser)
    add = parser.add_argument
    add("--name", required=True, help="the experiment's folder is <log_dir>/<name>")
    add("--resume", action="store_true", help="continue from its newest whole checkpoint")
    add("--restart", action="store_true", help="delete its checkpoints and start again")
    add(
        "--init_from",
        metavar="MODEL",
        help="start from the weights of an experiment, a checkpoint or org/name on the Hub",
    )
    add(
        "--synthetic",
        action="store_true",
        help="train on generated data with the lengths of LJSpeech, without a corpus and stage 1",
    )
    add(
        "--profile",
        action="store_true",
        help="profile updates 10 to 15 of this run (others: train.profile.steps)",
    )
    add("--seed", type=int, help="overrides train.random_seed")
    return parser.parse_args()


def main() -> None:
    """Trains; after a signal, the exit code is 128 plus its number."""
    arguments = _arguments()

    from models.base.registry import load_config
    from models.training.experiment import train
    from processors.dataset.generated.utterances import N_LJSPEECH
    from utils.logging import setup_logging

    setup_logging()
    overrides = list(arguments.overrides)
    if arguments.synthetic:  # --set may ask for fewer
        overrides.insert(0, f"train.synthetic_utterances={N_LJSPEECH}")
    if arguments.profile:  # --set may choose others
        overrides.insert(0, "train.profile.steps=[10, 15]")
    if arguments.seed is not None:
        overrides.append(f"train.random_seed={arguments.seed}")
    config = load_config(arguments.config, overrides, arguments.task)
    if arguments.synthetic and not config.train.synthetic_utterances:
        raise UsageError("--synthetic contradicts --set train.synthetic_utterances=0")
    if arguments.profile and not config.train.profile.steps:
        raise UsageError("--profile contradicts --set train.profile.steps=[]")
    received = train(
        config,
        arguments.name,
        resume=arguments.resume,
        restart=arguments.restart,
        init_from=arguments.init_from,
    )
    code = 0 if received is None else 128 + received
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        leave(code)
    raise SystemExit(code)


if __name__ == "__main__":
    run(main)
