"""Writes the dump of TensorFlowTTS: ... --config FILE --rootdir CORPUS --outdir DUMP."""

from bins._flags.parsers import chosen_dataset, program_arguments
from utils.cli import UsageError, run


def main() -> None:
    """Writes a dump."""
    given = program_arguments(
        "export_tensorflowtts", "Writes the features of a corpus in the layout of TensorFlowTTS."
    )
    if not 0 < given.test_size < 1:
        raise UsageError(f"--test_size {given.test_size:g}: expected a share, between 0 and 1")

    from processors.tensorflowtts.exporting import export_dump
    from utils.logging import setup_logging

    setup_logging()
    config, dataset = chosen_dataset(given)
    options = {name: vars(given)[name] for name in ("n_cpus", "test_size", "seed")}
    export_dump(config, dataset, given.rootdir, given.outdir, **options)


if __name__ == "__main__":
    run(main)
