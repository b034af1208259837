"""How far the boundaries that aligners find are from those that are known.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.alignment [--only PART ...] [--output FILE]

Parts: `synthetic` (espeak-ng, which says when it begins each phone; five languages) and `mfa`
(TextGrids by the Montreal Forced Aligner, multiples of 10 ms). Words that both sides have are
compared: when they begin, and their phones where both have as many. A lead below 0 means: found
too early. CPU seconds and memory are of a process that learns and aligns, compiled code at hand.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.boundaries.clips import Reference
from tests.benchmarks.boundaries.measuring import measure
from tests.benchmarks.boundaries.synthetic import LANGUAGES, read_sentences, synthetic_clips
from tests.benchmarks.boundaries.table import header, rows
from tests.benchmarks.boundaries.textgrids import mfa_clips, read_utterances

DEMO = Path(__file__).parents[2] / "egs/_demo/LJSpeech-mini"
VARIANTS = ("", "f1")  # of espeak's voices

Job = tuple[Reference, str]  # an aligner's name


def main() -> None:
    """Prints the table, line by line, and writes it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--output", type=Path, help="a file for the table")
    options = parser.parse_args()
    lines = []
    with TemporaryDirectory() as folder:
        for line in _table(options, Path(folder)):
            print(line, flush=True)  # noqa: T201
            lines.append(line)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _table(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    yield header()
    for part in options.only:
        for reference, aligner in PARTS[part](folder):
            measured = measure(aligner, reference)
            yield from rows(reference, aligner, measured)
            for failure in measured.failures:
                print(f"{reference.name}, {aligner}: {failure}")  # noqa: T201


def _synthetic(folder: Path) -> Iterator[Job]:
    english = [utterance.text for utterance in read_utterances(DEMO)]
    texts = {"en-us": english} | {language: read_sentences(language) for language in LANGUAGES}
    for language, sentences in texts.items():
        clips = synthetic_clips(sentences, language, folder, VARIANTS)
        yield Reference(f"espeak, {language}", clips, "espeak"), "hmm"


def _mfa(folder: Path) -> Iterator[Job]:
    reference = Reference("MFA", mfa_clips(DEMO), "lexicon", step_s=0.01)
    for aligner in ("pocketsphinx", "hmm"):
        yield reference, aligner


PARTS: dict[str, Callable[[Path], Iterator[Job]]] = {"synthetic": _synthetic, "mfa": _mfa}


if __name__ == "__main__":
    main()
