"""Writes the dump of TensorFlowTTS: ... --config FILE --rootdir CORPUS --outdir DUMP."""

from bins._flags.parsers import chosen_dataset, program_arguments
from utils.cli import UsageError, run


def main() -> None:
    """Writes a dump."""
    flags = program_arguments("export_tensorflowtts")
    if not 0 < flags.test_size < 1:
        raise UsageError(f"--test_size {flags.test_size:g}: expected a share, between 0 and 1")

    from processors.tensorflowtts.exporting import export_dump

    config, dataset = chosen_dataset(flags)
    options = {name: vars(flags)[name] for name in ("n_cpus", "test_size", "seed")}
    export_dump(config, dataset, flags.rootdir, flags.outdir, **options)


if __name__ == "__main__":
    run(main)
