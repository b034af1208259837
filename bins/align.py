"""Aligns recordings with their texts: arion align CORPUS OUT [flags]."""

import shutil

from bins._flags.parsers import program_arguments
from bins.check_corpus import DATASET, corpus_config, read_scores
from utils.cli import run
from utils.errors import InputError
from utils.files import write_text

_COLUMNS = ("id", "misfit", "start_s", "end_s", "words", "text")


def main() -> None:
    """Writes alignments, and a table of how well each recording fits its text, worst first."""
    flags = program_arguments("align")
    from processors.durations.writing import export_store
    from processors.extraction.run import REJECTED, prepare_datasets
    from utils.logging import get_logger

    output, folder = flags.output, flags.output / "stage_1"
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name != DATASET and not path.name.startswith("."):
            raise InputError(f"{path} is not of an interrupted call; choose another OUT")
    if not folder.exists() and (output / REJECTED).exists():
        fault = "holds the alignments of an earlier call, and those of other recordings would stay"
        raise InputError(f"{output} {fault}; choose another OUT, or remove it first")
    config = corpus_config(flags, flags.aligner, folder)
    prepare_datasets(config, flags.num_workers)
    misfits = read_scores(config)
    export_store(config.preprocess, folder / DATASET, flags.format, output)
    if misfits:
        rows = [[" ".join(str(row[name]).split()) for name in _COLUMNS] for row in misfits]
        lines = ["\t".join(row) + "\n" for row in (_COLUMNS, *rows)]
        write_text(output / "misfits.tsv", "".join(lines))
    (folder / DATASET / REJECTED).replace(output / REJECTED)
    shutil.rmtree(folder)
    names = f"misfits.tsv (places to listen to) and {REJECTED}" if misfits else REJECTED
    get_logger(__name__).info("alignments and %s are in %s", names, output)


if __name__ == "__main__":
    run(main)
