"""Compares speech in blind listening tests: arion compare A B --blind OUT, then --results CSV."""

from typing import Literal

from bins._flags.parsers import program_arguments
from utils.cli import UsageError, print_text, run


def main() -> None:
    """Makes a test, or analyses its results."""
    flags = program_arguments(
        "compare",
        "Makes a page on which listeners compare folders of speech without knowing which is which,"
        " and analyses the results that they download from it. docs/listening_tests.md says how.",
    )
    if bool(flags.results) == (flags.blind is not None):
        raise UsageError("give folders and --blind OUT to make a test, or --results CSV of one")
    if flags.results and (flags.folders or flags.opinion or flags.clips):
        raise UsageError("folders, --opinion and --clips go with --blind")
    if flags.blind is not None and len(flags.folders) < (1 if flags.opinion else 2):
        raise UsageError("give the folders to compare: at least two, or one with --opinion")

    from models.programs.compare.listening_test import KEY, make_test, read_key

    if flags.results:
        from models.programs.compare.listening_test import read_answers, summary

        key = read_key(flags.key or flags.results[0].with_name(KEY))
        print_text(summary(read_answers(flags.results, key), key))
        return
    kind: Literal["opinion", "preference"] = "opinion" if flags.opinion else "preference"
    key = make_test(flags.folders, flags.blind, kind, flags.clips, flags.seed)
    print_text(
        f"{len(key.trials)} trials: give listeners {flags.blind / 'page'}, keep"
        f" {flags.blind / KEY} to yourself\n"
    )


if __name__ == "__main__":
    run(main)
