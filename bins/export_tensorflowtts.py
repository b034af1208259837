"""Writes the dump of TensorFlowTTS: ... --config FILE --rootdir CORPUS --outdir DUMP."""

from pathlib import Path

from bins._flags.parsers import add_config_arguments, chosen_dataset
from bins._flags.values import COUNT, whole
from utils.cli import Parser, UsageError, run


def main() -> None:
    """Writes a dump."""
    flags = Parser("Writes the features of a corpus in the layout of TensorFlowTTS.")
    add_config_arguments(flags)
    add = flags.add_argument
    add("--rootdir", type=Path, required=True, help="folder of the corpus")
    add("--outdir", type=Path, required=True, help="folder to make; empty or missing")
    add("--n_cpus", type=COUNT.argument, default=4, help="processes (default: %(default)s)")
    add("--test_size", type=float, default=0.05).help = """share of the utterances in valid
        (default: %(default)s)"""
    seeds = whole(0, 2**32 - 1)
    add("--seed", type=seeds.argument, default=1234, help="of the split (default: %(default)s)")
    given = flags.parse_args()
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
