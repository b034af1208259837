"""Systems beside each other: paired differences of every two, and what to make of them."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Literal

from models.base.result_files import COMPARISON
from models.evaluation.bootstrap import CONFIDENCE, FEWEST, estimate_differences
from models.evaluation.scores import Comparison, Evaluation, Score, System, arrays_of, scores_of
from processors.scoring.utterance_scorer import ScoreColumn
from utils.files import write_json

Verdict = Literal["better", "worse", "differs", "unclear", "too few"]


def compare(systems: Sequence[System], columns: Sequence[ScoreColumn]) -> tuple[Comparison, ...]:
    """Every two systems, utterance by utterance.

    Args:
        systems: Those that were asked for; they have spoken the same.
        columns: What is compared.
    """
    return tuple(_pair(first, second, columns) for first, second in combinations(systems, 2))


def _pair(first: System, second: System, columns: Sequence[ScoreColumn]) -> Comparison:
    ids = [id for id in first.scored if id in second.scored]
    ours, our_weights = arrays_of(columns, [first.scored[id] for id in ids])
    theirs, their_weights = arrays_of(columns, [second.scored[id] for id in ids])
    estimates = estimate_differences(ours, theirs, our_weights, their_weights)
    return Comparison(first.name, second.name, scores_of(columns, estimates))


def verdict_of(difference: Score) -> Verdict:
    """What a difference says about the first system beside the second.

    "unclear" where its interval holds 0: other sentences may well say the opposite. "differs" where
    it does not, and neither direction is better. "too few" of fewer than six utterances, which all
    may say the same by chance.
    """
    if difference.n < FEWEST or difference.low is None or difference.high is None:
        return "too few"
    if difference.low <= 0 <= difference.high:
        return "unclear"
    if not difference.better:
        return "differs"
    return "better" if (difference.mean < 0) == (difference.better == "lower") else "worse"


def write_comparison(folder: Path, evaluation: Evaluation) -> None:
    """Writes `comparison.json`: which folders, and the differences with a verdict each."""
    systems = {
        system.name: {
            "folder": str(system.folder),
            "means": {name: score.mean for name, score in system.report.scores.items()},
        }
        for system in evaluation.systems
    }
    comparisons = [
        {
            "first": comparison.first,
            "second": comparison.second,
            "differences": {
                name: {**asdict(score), "first_is": verdict_of(score)}
                for name, score in comparison.differences.items()
            },
        }
        for comparison in evaluation.comparisons
    ]
    content = {"confidence": CONFIDENCE, "utterances": len(evaluation.items), "systems": systems}
    write_json(folder / f"{COMPARISON}.json", {**content, "comparisons": comparisons})
