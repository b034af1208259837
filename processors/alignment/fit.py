"""Whether an alignment, and the text, fit their recording: which are reported, and which rejected.

docs/benchmarks.md#alignments-of-a-part has what is found, and that no right alignment is rejected.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError
from processors.audio.speech_level import FRAME_S, speech_frames
from processors.records import Alignment, AlignmentScore
from processors.text.symbols import PAUSES
from utils.files import write_jsonl
from utils.logging import get_logger

SCORES_FILE = "alignment_scores.jsonl"
SUSPECT = 50.0  # nats; docs/benchmarks.md has the error rates of this threshold
RELIABLE_S = 300.0  # of recordings, a rule of thumb: of less, 2.3 % of right texts exceed 50
_SHOWN = 10  # the file holds all
MAX_UNALIGNED_S = 0.2  # of speech without phones in one place
_FEWEST_VOWELS_S = 0.05  # in these; breaths, clicks and noise have none
_REPORTED_S = 0.05  # at the ends; a last sound dies away for that long


def check_fit(score: AlignmentScore, max_misfit: float) -> None:
    """Rejects an utterance whose misfit is larger than `preprocess.max_misfit`; 0 rejects none."""
    if 0 < max_misfit < score.misfit:
        fault = f"{_described(score)} (preprocess.max_misfit is {max_misfit:g})"
        remedy = "is every word spoken as it is written?"
        raise AlignmentError(f"text and recording do not fit: {fault}; {remedy}")


def list_misfits(
    folder: Path, utterances: Sequence[Utterance], scores: Mapping[str, AlignmentScore]
) -> None:
    """Writes all scores, if there are any, the worst first, and warns of suspicious ones."""
    if not scores:
        return
    texts = {utterance.id: utterance.text for utterance in utterances}
    worst_first = sorted(scores.items(), key=lambda item: (-item[1].misfit, item[0]))
    path = folder / SCORES_FILE
    write_jsonl(path, ({"id": id, **s._asdict(), "text": texts[id]} for id, s in worst_first))
    suspects = [f"\n  {id}: {_described(s)}" for id, s in worst_first if s.misfit > SUSPECT]
    if suspects:
        count = f"{len(suspects)} of {len(scores)} recordings"
        fault = f"{count} may differ from their texts (misfit above {SUSPECT:g})"
        remedy = f"listen to them at the places that {path} lists"
        get_logger(__name__).warning("%s; %s:%s", fault, remedy, "".join(suspects[:_SHOWN]))


def _described(score: AlignmentScore) -> str:
    return f"misfit {score.misfit:.1f} at '{score.words}', {score.start_s:.2f}-{score.end_s:.2f} s"


def check_coverage(alignment: Alignment, wav: np.ndarray, sample_rate: int) -> tuple[str, ...]:
    """Rejects alignments that leave out speech: before, after or between their phones.

    Returns:
        A notice for each end with less speech, or with other sound as loud, such as a breath.
    """
    audible, vowels = speech_frames(wav, sample_rate)  # (T,)
    edges = alignment.boundaries_s.tolist()
    phones = [n for n, name in enumerate(alignment.phones) if name not in PAUSES]
    # the pauses; the first and the last reach to the ends
    starts = [0.0, *(edges[n + 1] for n in phones)]
    ends = [*(edges[n] for n in phones), np.inf]
    notices = []
    for number, (start_s, end_s) in enumerate(zip(starts, ends, strict=True)):
        span = slice(round(max(start_s, 0) / FRAME_S), round(min(end_s / FRAME_S, len(audible))))
        frames = span.start + np.flatnonzero(audible[span])
        unaligned_s = FRAME_S * len(frames)
        has_vowels = FRAME_S * np.count_nonzero(vowels[span]) >= _FEWEST_VOWELS_S
        if unaligned_s > MAX_UNALIGNED_S and has_vowels:
            place = f"{FRAME_S * frames[0]:.2f} to {FRAME_S * (frames[-1] + 1):.2f} s"
            fault = f"it leaves out {unaligned_s:.2f} s of speech: no phones from {place}"
            where = "where the recording is as loud as its speech"
            raise AlignmentError(f"{fault}, {where}; align this recording again")
        if unaligned_s > _REPORTED_S and number in (0, len(phones)):
            end = "after the last" if number else "before the first"
            notices.append(f"sound as loud as speech {end} phone is not aligned")
    return tuple(notices)
