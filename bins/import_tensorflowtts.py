"""Makes processed data of a dump of TensorFlowTTS: ... --config FILE --rootdir DUMP."""

from bins._flags.parsers import chosen_dataset, program_arguments
from utils.cli import run


def main() -> None:
    """Imports a dump."""
    flags = program_arguments("import_tensorflowtts")
    from processors.tensorflowtts.importing import import_dump

    config, dataset = chosen_dataset(flags)
    import_dump(config, dataset, flags.rootdir, flags.durations, flags.n_cpus)


if __name__ == "__main__":
    run(main)
