"""Checks a corpus, and whether its recordings fit their texts: arion check CORPUS [flags]."""

import logging
from pathlib import Path
from tempfile import TemporaryDirectory

from bins._flags.corpus import DATASET, corpus_config, run_stage_1
from bins._flags.parsers import program_arguments
from utils.cli import print_text, run


def main() -> None:
    """Prints what is wrong; the exit code is 1 if there are more faults than stage 1 accepts."""
    flags = program_arguments(
        "check_corpus",
        "Reads the recordings and texts of a corpus as stage 1 does, and lists what it would"
        " reject, what is odd, and the words it knows no pronunciation of. Then it aligns them by"
        " a hidden Markov model, and lists words that were probably not spoken as written. The"
        " exit code is 1 if there are more faults than stage 1 accepts.",
    )

    from processors.alignment.fit import SUSPECT
    from processors.extraction.checking import check_corpus
    from utils.logging import get_logger, setup_logging

    setup_logging()
    with TemporaryDirectory() as name:
        config = corpus_config(flags, "hmm", Path(name))
        check = check_corpus(config, DATASET, flags.num_workers)
        print_text(check.report())
        if not check.passes:
            raise SystemExit(1)
        if flags.no_misfits:
            return
        for room in ("alignment.fit", "extraction"):  # they name files that are removed
            get_logger(f"processors.{room}").setLevel(logging.ERROR)
        misfits = run_stage_1(config, flags.num_workers)
    rows = [row for row in misfits if row["misfit"] > SUSPECT]
    print_text(f"recordings that may differ from their texts: {len(rows)}\n")
    for row in rows:
        span = f"{row['start_s']:.2f}-{row['end_s']:.2f} s"
        print_text(f"  {row['id']}: misfit {row['misfit']:.0f} at '{row['words']}', {span}\n")


if __name__ == "__main__":
    run(main)
