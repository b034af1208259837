"""Recordings that do not fit their texts: which are reported, and which rejected."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError
from processors.records import AlignmentScore
from utils.files import write_jsonl
from utils.logging import get_logger

SCORES_FILE = "alignment_scores.jsonl"
SUSPECT = 50.0  # nats; docs/benchmarks.md has the error rates of this threshold
_SHOWN = 10  # the file holds all


def check_fit(score: AlignmentScore, max_misfit: float) -> None:
    """Rejects an utterance whose misfit is larger than `preprocess.max_misfit`; 0 rejects none."""
    if 0 < max_misfit < score.misfit:
        raise AlignmentError(
            f"text and recording do not fit: {_described(score)} (preprocess.max_misfit is"
            f" {max_misfit:g}); is every word spoken as it is written?"
        )


def list_misfits(
    folder: Path, utterances: Sequence[Utterance], scores: Mapping[str, AlignmentScore]
) -> None:
    """Writes all scores, if there are any, the worst first, and warns of suspicious ones."""
    if not scores:
        return
    texts = {utterance.id: utterance.text for utterance in utterances}
    ordered = _worst_first(scores)
    path = folder / SCORES_FILE
    write_jsonl(
        path, ({"id": id, **score._asdict(), "text": texts[id]} for id, score in ordered.items())
    )
    suspects = report_of(scores)
    if suspects:
        n_suspects = sum(score.misfit > SUSPECT for score in scores.values())
        _log.warning(
            "%d of %d recordings may differ from their texts (misfit above %g); listen to them at"
            " the places that %s lists:%s",
            n_suspects,
            len(scores),
            SUSPECT,
            path,
            "".join(f"\n  {id}: {description}" for id, description in suspects.items()),
        )


def report_of(scores: Mapping[str, AlignmentScore]) -> dict[str, str]:
    """The worst suspicious utterances, with misfit, words and times."""
    worst = list(_worst_first(scores).items())[:_SHOWN]
    return {id: _described(score) for id, score in worst if score.misfit > SUSPECT}


def _worst_first(scores: Mapping[str, AlignmentScore]) -> dict[str, AlignmentScore]:
    return dict(sorted(scores.items(), key=lambda item: (-item[1].misfit, item[0])))


def _described(score: AlignmentScore) -> str:
    span = f"{score.start_s:.2f}-{score.end_s:.2f} s"
    return f"misfit {score.misfit:.1f} at '{score.words}', {span}"


_log = get_logger(__name__)
