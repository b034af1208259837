"""Detection of wrong transcripts by the scores of the aligner `hmm`, and its false alarms.

    OMP_NUM_THREADS=1 python -m tools.benchmarks.mislabelled [CORPUS] [--format ljspeech]
        [--wrong 0.03] [--every 1] [--model FOLDER] [--seed 0]

The aligner is trained on the corpus, and aligns every recording with its own text, with three texts
of one wrong word, and with one that is wrong in another way. --wrong is the share of transcripts
that are wrong in the training data; these have a row of their own. Thresholds for 1 and 5 % of
false alarms come from four fifths of the recordings and are applied to the last fifth, in turn
(cross-validation). The model is trained on all of them, as in stage 1. Intervals are Wilson's, of
95 %. Errors of the corpus itself count as false alarms.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from config.preprocess import CorpusConfig, PreprocessConfig
from preprocessors.corpora import read_corpus
from preprocessors.manifest import Utterance
from processors.alignment.aligner import Align, AlignmentError, find_aligner, make_aligner
from processors.audio.files import read_audio
from processors.records import AlignmentScore
from processors.text.frontend import TextFrontend
from processors.text.symbols import PAUSES
from tools.benchmarks.damage import KINDS, Damaged, damage
from utils.errors import UtteranceError

DEMO = Path(__file__).parents[2] / "egs/_demo/LJSpeech-mini"
_FOLDS = 5
_BOUNDS = (20, 30, 40, 50, 60, 80, 100)
_RATES = (0.01, 0.05)
_CONFIG = PreprocessConfig(aligner="hmm", backend="sequential")


class Trial(NamedTuple):
    """A recording and a text.

    Attributes:
        number: Of the recording.
        kind: Of the damage; "right" and "learnt" are texts of the training data, the latter
            damaged.
        misfit: Infinite if there is no alignment.
        named: Whether the place found is that of the error, or next to it.
        seconds: Of the recording.
        n_phones: Of the words that are wrong.
    """

    number: int
    kind: str
    misfit: float
    named: bool
    seconds: float
    n_phones: int


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, nargs="?", default=DEMO)
    parser.add_argument("--format", default="ljspeech")
    parser.add_argument("--wrong", type=float, default=0.0, help="share of wrong training texts")
    parser.add_argument("--model", type=Path, help="folder of the model; trained if missing")
    parser.add_argument("--every", type=int, default=1, help="damage one recording in so many")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    listing = read_corpus(
        arguments.corpus.name, arguments.corpus, CorpusConfig(format=arguments.format)
    )
    bench = Bench(listing.utterances, arguments.wrong, arguments.seed)
    with TemporaryDirectory() as folder:
        trials = list(bench.run(arguments.model or Path(folder), arguments.every))
    for table in (by_kind, by_length, by_bound):
        _print(table(trials))


class Bench:
    """A corpus with damaged texts in its training data.

    Args:
        utterances: Of the corpus.
        wrong: Share of the texts that are damaged before the training.
        seed: Of all damages.
    """

    def __init__(self, utterances: Sequence[Utterance], wrong: float, seed: int) -> None:
        self.seed = seed
        self.frontend = TextFrontend(_CONFIG.text, utterances[0].language)
        self.texts = [utterance.text for utterance in utterances]
        chosen = random.Random(seed).sample(utterances, round(wrong * len(utterances)))
        self.damaged: dict[str, Damaged] = {}
        for number, utterance in enumerate(chosen):
            made = self._damage(utterance, KINDS[number % len(KINDS)])
            if made is not None:
                self.damaged[utterance.id] = made
        self.utterances = [
            replace(one, text=self.damaged[one.id].text) if one.id in self.damaged else one
            for one in utterances
        ]

    def run(self, folder: Path, every: int) -> Iterator[Trial]:
        """Trains, and scores all right texts, and wrong ones of every `every`-th recording."""
        start = time.process_time()
        plan_training = find_aligner(_CONFIG).plan_training
        if plan_training is not None:
            plan_training(_CONFIG, self.utterances, folder).carry_out(1)
        _print(f"trained in {time.process_time() - start:.0f} CPU s")
        align = make_aligner(_CONFIG, Path(), folder)
        for number, utterance in enumerate(self.utterances):
            try:
                wav = read_audio(utterance.audio, _CONFIG).wav
            except UtteranceError as error:
                _print(f"{utterance.id}: {error}")
                continue
            score = _scorer(align, utterance, wav, self.frontend)
            seconds = len(wav) / _CONFIG.sample_rate
            if utterance.id in self.damaged:
                yield self._trial(number, "learnt", self.damaged[utterance.id], score, seconds)
                continue
            right = score(utterance.text)
            misfit = np.inf if right is None else right.misfit
            yield Trial(number, "right", misfit, named=False, seconds=seconds, n_phones=0)
            for kind in () if number % every else (*KINDS[:3], KINDS[3 + number // every % 4]):
                made = self._damage(utterance, kind)
                if made is not None:
                    yield self._trial(number, kind, made, score, seconds)

    def _damage(self, utterance: Utterance, kind: str) -> Damaged | None:
        rng = random.Random(f"{self.seed} {utterance.id} {kind}")
        return damage(utterance.text, kind, rng, self.texts, self._phones)

    def _phones(self, text: str) -> list[str]:
        return [phone for phone in self.frontend(text).phones if phone not in PAUSES]

    def _trial(
        self,
        number: int,
        kind: str,
        made: Damaged,
        score: Callable[[str], AlignmentScore | None],
        seconds: float,
    ) -> Trial:
        found = score(made.text)
        n_phones = sum(len(self._phones(word)) for word in made.words)
        if found is None:
            return Trial(number, kind, np.inf, named=False, seconds=seconds, n_phones=n_phones)
        near = {word.text.lower() for word in self.frontend(" ".join(made.near)).words}
        named = bool(near & {word.lower() for word in found.words.split()})
        return Trial(number, kind, found.misfit, named, seconds, n_phones)


def _scorer(
    align: Align, utterance: Utterance, wav: np.ndarray, frontend: TextFrontend
) -> Callable[[str], AlignmentScore | None]:
    def score(text: str) -> AlignmentScore | None:
        try:
            return align(utterance, wav, frontend(text)).score
        except AlignmentError:
            return None

    return score


def by_kind(trials: Sequence[Trial]) -> str:
    """Detection by kind of damage."""
    bounds = _bounds(trials)
    lines = [
        "",
        f"{'':26}{'n':>5}{'found at 1 %':>22}{'found at 5 %':>22}{'named, of found at 5 %':>24}",
    ]
    for kind in ("right", *KINDS, "learnt"):
        chosen = [trial for trial in trials if trial.kind == kind]
        if chosen:
            lines.append(_row(kind if kind != "right" else "right (false alarms)", chosen, bounds))
    return "\n".join(lines)


def by_length(trials: Sequence[Trial]) -> str:
    """Detection of one wrong word by the length of the recording and of the word."""
    bounds = _bounds(trials)
    single = [trial for trial in trials if trial.kind in KINDS[:3]]
    lines = [""]
    for low, high in ((0, 2.5), (2.5, 4), (4, 7), (7, 99)):
        chosen = [trial for trial in single if low <= trial.seconds < high]
        if chosen:
            lines.append(_row(f"recording of {low:g}-{high:g} s", chosen, bounds))
    for low, high in ((1, 2), (3, 4), (5, 6), (7, 99)):
        for kind in KINDS[:3]:
            chosen = [t for t in single if t.kind == kind and low <= t.n_phones <= high]
            if chosen:
                lines.append(_row(f"{kind}, {low}-{high} phones", chosen, bounds))
    return "\n".join(lines)


def by_bound(trials: Sequence[Trial]) -> str:
    """Share that `preprocess.max_misfit` rejects, percent."""
    kinds = [kind for kind in ("right", *KINDS, "learnt") if any(t.kind == kind for t in trials)]
    lines = ["", "max_misfit" + "".join(f"{kind:>14}" for kind in kinds)]
    for bound in _BOUNDS:
        shares = (
            np.mean([trial.misfit > bound for trial in trials if trial.kind == kind])
            for kind in kinds
        )
        lines.append(f"{bound:10}" + "".join(f"{100 * share:14.1f}" for share in shares))
    return "\n".join(lines)


def _bounds(trials: Sequence[Trial]) -> np.ndarray:
    """Bound of each rate of false alarms, from all folds but one, (rates, folds)."""
    right = [(trial.number % _FOLDS, trial.misfit) for trial in trials if trial.kind == "right"]
    folds, misfits = (np.array(column) for column in zip(*right, strict=True))
    return np.array(
        [
            [np.quantile(misfits[folds != fold], 1 - rate) for fold in range(_FOLDS)]
            for rate in _RATES
        ]
    )


def _row(name: str, trials: Sequence[Trial], bounds: np.ndarray) -> str:
    found = [[t.misfit > row[t.number % _FOLDS] for t in trials] for row in bounds]
    shares = "".join(f"{_interval(sum(hits), len(hits)):>22}" for hits in found)
    named = [trial.named for trial, hit in zip(trials, found[-1], strict=True) if hit]
    rate = f"{100 * np.mean(named):.0f} %" if named and trials[0].kind != "right" else ""
    return f"{name:26}{len(trials):5}{shares}{rate:>24}"


def _interval(n_found: int, n: int) -> str:
    """A share with Wilson's interval of 95 %, percent."""
    share, z = n_found / n, 1.96
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return f"{100 * share:.1f} ({100 * (centre - half):.1f}-{100 * (centre + half):.1f})"


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
