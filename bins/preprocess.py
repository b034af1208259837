"""Stage 1: extracts features and statistics from the datasets of a configuration."""

from bins._flags.parsers import arguments
from utils.cli import run


def main(argv: list[str] | None = None) -> None:
    """Prepares every dataset of a config."""
    flags = arguments("preprocess", argv)
    # after the flags are read: help and mistakes in them need not wait for PyTorch
    from models.base.registry import load_config
    from processors.extraction.run import prepare_datasets

    config = load_config(flags.config, flags.set, flags.task)
    if flags.from_acoustic is None:
        prepare_datasets(config, flags.num_workers)
    else:
        from models.teacher_forcing.predicted_mels import prepare_from_acoustic

        prepare_from_acoustic(config, flags.from_acoustic, flags.num_workers, flags.acoustic_data)


if __name__ == "__main__":
    run(main)
