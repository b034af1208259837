"""Compares speech in blind listening tests: arion compare A B --blind OUT, then --results CSV."""

from typing import Literal

from bins._flags.parsers import program_arguments
from utils.cli import UsageError, print_text, run


def main() -> None:
    """Makes a test, or analyses its results."""
    flags = program_arguments("compare")
    if bool(flags.results) == (flags.blind is not None):
        raise UsageError("give folders and --blind OUT to make a test, or --results CSV of one")
    if flags.results and (flags.folders or flags.opinion or flags.clips):
        raise UsageError("folders, --opinion and --clips go with --blind")
    if flags.blind is not None and len(flags.folders) < (1 if flags.opinion else 2):
        raise UsageError("give the folders to compare: at least two, or one with --opinion")

    from models.programs.compare import listening_test as test

    if flags.results:
        key = test.read_key(flags.key or flags.results[0].with_name(test.KEY))
        print_text(test.summary(test.read_answers(flags.results, key), key))
        return
    kind: Literal["opinion", "preference"] = "opinion" if flags.opinion else "preference"
    key = test.make_test(flags.folders, flags.blind, kind, flags.clips, flags.seed)
    page, key_file = flags.blind / "page", flags.blind / test.KEY
    print_text(f"{len(key.trials)} trials: give listeners {page}, keep {key_file} to yourself\n")


if __name__ == "__main__":
    run(main)
