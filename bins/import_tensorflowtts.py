"""Makes processed data of a dump of TensorFlowTTS: ... --config FILE --rootdir DUMP."""

from pathlib import Path

from bins._flags.parsers import add_config_arguments, chosen_dataset
from bins._flags.values import COUNT
from utils.cli import Parser, run


def main() -> None:
    """Imports a dump."""
    flags = Parser(
        "Makes the processed data of stage 1 from a dump of TensorFlowTTS, which is only read;"
        " stage 2 trains on them."
    )
    add_config_arguments(flags)
    add = flags.add_argument
    add("--rootdir", type=Path, required=True, help="folder of the dump")
    add("--durations", type=Path).help = """folder with <id>-durations.npy in any split; default:
        train/duration and valid/duration of the dump"""
    add("--n_cpus", type=COUNT.argument, default=4, help="processes (default: %(default)s)")
    given = flags.parse_args()

    from processors.tensorflowtts.importing import import_dump
    from utils.logging import setup_logging

    setup_logging()
    config, dataset = chosen_dataset(given)
    import_dump(config, dataset, given.rootdir, given.durations, given.n_cpus)


if __name__ == "__main__":
    run(main)
