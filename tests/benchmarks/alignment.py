"""Errors of the boundaries that aligners find, against known boundaries.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.alignment [--only PART ...] [--output FILE]
        [--hand_made DIR] [--nathalie DIR] [--speech DIR]

    synthetic   espeak-ng, which reports the onset of each phone: five languages, two voices of each
    mfa         the demo's clips of LJ Speech, by the Montreal Forced Aligner (steps of 10 ms); all
                of them, and fewer
    hand_made   a folder of recordings with boundaries made by hand, and of others with HTS labels;
                the aligner hmm is trained on the demo's clips as well
    nathalie    Dutch with the times of an aligner of Kaldi's (steps of 10 ms); with its phones
                ("reference phones"), and with those of espeak for the text
    speech      1, 6 and 15 minutes of a corpus in LJ Speech layout, against the alignment of
                all of it, and of its texts synthesised by espeak

The last three need a folder. Words that both sides have are compared: their onsets, and those of
their phones if both have equally many. A lead below 0 means: found too early. CPU seconds and
memory are of a process that trains and aligns, with compiled code in the cache.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.boundaries.amounts import amounts_of_mfa, amounts_of_speech
from tests.benchmarks.boundaries.clips import Clip, Reference
from tests.benchmarks.boundaries.dutch import dutch_clips
from tests.benchmarks.boundaries.hand_made import clips_by_hand, labelled_clips
from tests.benchmarks.boundaries.measuring import Result, measure
from tests.benchmarks.boundaries.synthetic import LANGUAGES, read_sentences, synthetic_clips
from tests.benchmarks.boundaries.table import header, rows
from tests.benchmarks.boundaries.textgrids import mfa_clips, read_utterances
from utils.files import user_path

DEMO = Path(__file__).parents[2] / "egs/_demo/LJSpeech-mini"
ENGLISH = ("pocketsphinx", "hmm")  # aligners of English in ARPAbet
VARIANTS = ("", "f1")  # of espeak's voices


def main() -> None:
    """Prints the table, line by line, and writes it."""
    options = _options()
    lines = []
    with TemporaryDirectory() as folder:
        for line in _table(options, Path(folder)):
            print(line, flush=True)  # noqa: T201
            lines.append(line)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--output", type=user_path, help="a file for the table")
    for part in NEED_FOLDER:
        parser.add_argument(f"--{part}", type=user_path, metavar="DIR")
    options = parser.parse_args()
    for part in NEED_FOLDER:
        folder = getattr(options, part)
        if folder is not None and not folder.is_dir():
            parser.error(f"--{part}: there is no folder {folder}")
    return options


def _table(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    yield header()
    for part in options.only:
        if part in NEED_FOLDER and getattr(options, part) is None:
            print(f"{part}: left out, it needs --{part} DIR")  # noqa: T201
            continue
        for result in PARTS[part](options, folder):
            yield from rows(result)
            for failure in result.failures:
                print(f"{result.reference.name}, {result.aligner}: {failure}")  # noqa: T201


def _synthetic(options: argparse.Namespace, folder: Path) -> Iterator[Result]:
    english = [utterance.text for utterance in read_utterances(DEMO)]
    texts = {"en-us": english} | {language: read_sentences(language) for language in LANGUAGES}
    for language, sentences in texts.items():
        clips = synthetic_clips(sentences, language, folder, VARIANTS)
        yield measure("hmm", Reference(f"espeak, {language}", clips, "espeak"))


def _mfa(options: argparse.Namespace, folder: Path) -> Iterator[Result]:
    reference = Reference("MFA", mfa_clips(DEMO), "lexicon", step_s=0.01)
    for aligner in ENGLISH:
        yield measure(aligner, reference)
    yield from amounts_of_mfa(DEMO)


def _hand_made(options: argparse.Namespace, folder: Path) -> Iterator[Result]:
    more = tuple(Clip(utterance) for utterance in read_utterances(DEMO))
    by_hand = clips_by_hand(options.hand_made)
    labelled = labelled_clips(options.hand_made)
    for aligner in ENGLISH:
        learnt = more if aligner == "hmm" else ()
        yield measure(aligner, Reference("by hand", (*by_hand, *learnt), "lexicon"))
        yield measure(aligner, Reference("HTS labels", (*labelled, *learnt), "lexicon"))


def _nathalie(options: argparse.Namespace, folder: Path) -> Iterator[Result]:
    for name, as_aligned in (
        ("Nathalie, nl, reference phones", True),
        ("Nathalie, nl, espeak phones", False),
    ):
        clips = dutch_clips(options.nathalie, as_aligned=as_aligned)
        yield measure("hmm", Reference(name, clips, "espeak", step_s=0.01))


def _speech(options: argparse.Namespace, folder: Path) -> Iterator[Result]:
    yield from amounts_of_speech(options.speech, folder)


PARTS: dict[str, Callable[[argparse.Namespace, Path], Iterator[Result]]] = {
    "mfa": _mfa,
    "synthetic": _synthetic,
    "hand_made": _hand_made,
    "nathalie": _nathalie,
    "speech": _speech,
}
NEED_FOLDER = ("hand_made", "nathalie", "speech")


if __name__ == "__main__":
    main()
