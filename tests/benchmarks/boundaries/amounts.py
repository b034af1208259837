"""How the accuracy of the aligner hmm depends on the amount of speech."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import soundfile

from tests.benchmarks.boundaries.clips import Clip, Reference
from tests.benchmarks.boundaries.measuring import Result, measure
from tests.benchmarks.boundaries.synthetic import synthetic_clips
from tests.benchmarks.boundaries.textgrids import mfa_clips, read_utterances

_MINUTES = (1, 6, 15)


def amounts_of_mfa(root: Path) -> Iterator[Result]:
    """Parts of LJ Speech, against MFA."""
    clips = mfa_clips(root)
    for minutes in (1, 3):
        part = first_minutes(clips, minutes)
        yield measure("hmm", Reference(f"MFA, {minutes} min", part, "lexicon", step_s=0.01))


def amounts_of_speech(root: Path, folder: Path) -> Iterator[Result]:
    """Parts of a corpus, against the alignment of all of it.

    Args:
        root: In LJ Speech layout.
        folder: For synthetic speech of its texts, which is compared with its own times.
    """
    clips = tuple(Clip(utterance) for utterance in read_utterances(root))
    whole = measure("hmm", Reference(f"{root.name}, all", clips, "lexicon"))
    yield whole
    known = tuple(Clip(one.utterance, whole.words.get(one.utterance.id, ())) for one in clips)
    for minutes in _MINUTES:
        name = f"{root.name}, all, by {minutes} min"
        yield measure("hmm", Reference(name, first_minutes(known, minutes), "lexicon"))
    yield measure("pocketsphinx", Reference(f"{root.name}, all", known, "lexicon"))
    synthetic = synthetic_clips([clip.utterance.text for clip in clips], "en-us", folder)
    for minutes in _MINUTES:
        part = first_minutes(synthetic, minutes)
        yield measure("hmm", Reference(f"espeak, en-us, {minutes} min", part, "espeak"))


def first_minutes(clips: Sequence[Clip], minutes: float) -> tuple[Clip, ...]:
    """The first clips, up to so many minutes.

    Args:
        clips: In order.
        minutes: All clips if they are shorter.
    """
    chosen, seconds = [], 0.0
    for clip in clips:
        if seconds >= 60 * minutes:
            break
        chosen.append(clip)
        seconds += soundfile.info(clip.utterance.audio).duration
    return tuple(chosen)
