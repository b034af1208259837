"""Errors of the boundaries that aligners find, against known boundaries.

    OMP_NUM_THREADS=1 python -m tools.benchmarks.alignment

References are the demo's clips of LJ Speech by the Montreal Forced Aligner (steps of 10 ms), all of
them and fewer, and speech by espeak-ng, which reports the onset of each phone: five languages, two
voices of each. Words that both sides have are compared: their onsets, and those of their phones if
both have equally many. A lead below 0 means: found too early. CPU seconds and memory are of a
process that trains and aligns, with compiled code in the cache.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import soundfile

from tools.benchmarks.boundaries.clips import Clip, Reference
from tools.benchmarks.boundaries.measuring import Result, measure
from tools.benchmarks.boundaries.synthetic import LANGUAGES, read_sentences, synthetic_clips
from tools.benchmarks.boundaries.table import header, rows
from tools.benchmarks.boundaries.textgrids import mfa_clips, read_utterances

DEMO = Path(__file__).parents[2] / "egs/_demo/LJSpeech-mini"
VARIANTS = ("", "f1")  # of espeak's voices


def main() -> None:
    """Prints the table, line by line."""
    print(header())  # noqa: T201
    with TemporaryDirectory() as folder:
        for result in chain(_mfa(), _synthetic(Path(folder))):
            failures = (f"{result.aligner}: {failure}" for failure in result.failures)
            print("\n".join((*rows(result), *failures)), flush=True)  # noqa: T201


def _mfa() -> Iterator[Result]:
    clips = mfa_clips(DEMO)
    whole = Reference("MFA", clips, "lexicon", step_s=0.01)
    for aligner in ("pocketsphinx", "hmm"):
        yield measure(aligner, whole)
    for minutes in (3, 1):
        part = first_minutes(clips, minutes)
        yield measure("hmm", whole._replace(name=f"MFA, {minutes} min", clips=part))


def _synthetic(folder: Path) -> Iterator[Result]:
    english = [utterance.text for utterance in read_utterances(DEMO)]
    texts = {"en-us": english} | {language: read_sentences(language) for language in LANGUAGES}
    for language, sentences in texts.items():
        clips = synthetic_clips(sentences, language, folder, VARIANTS)
        yield measure("hmm", Reference(f"espeak, {language}", clips, "espeak"))


def first_minutes(clips: Sequence[Clip], minutes: float) -> tuple[Clip, ...]:
    """The first clips, up to so many minutes; all of them if they are shorter."""
    chosen, seconds = [], 0.0
    for clip in clips:
        if seconds >= 60 * minutes:
            break
        chosen.append(clip)
        seconds += soundfile.info(clip.utterance.audio).duration
    return tuple(chosen)


if __name__ == "__main__":
    main()
