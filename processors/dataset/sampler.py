"""Samplers of batches: length buckets that fill a frame budget.

Random batches waste a third of LJSpeech on padding; batches of similar length, under 3 %. Compiled
networks may need batches of fixed shapes (processors/dataset/shapes.py).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from processors.dataset.shapes import FixedBatches
from utils.errors import InputError
from utils.seed import derived_seed

JITTER = 0.03  # lengths are perturbed by up to this share before sorting: new neighbours each epoch


class Draw(NamedTuple):
    """One utterance in one epoch, as the sampler requests it from the dataset.

    The epoch travels with the item, so that random crops are right in worker processes too.
    """

    epoch: int
    item: int


class FrameBudgetSampler:
    """Batches of similar length; their order is a function of (seed, epoch) alone.

    A batch holds as many utterances as `items x longest <= budget` allows; a longer utterance has a
    batch of its own. Every utterance comes once per epoch. The number of batches is brought to a
    multiple of `processes x window`, never by repeating or dropping any: every process has the same
    number of whole windows. The batches with the most utterances are halved; where there are too
    few utterances for that, the batches with the fewest frames are joined and exceed the budget.
    In the first epoch the longest batches make the first update, so that a lack of memory shows at
    once. Two processes have the same updates as one with a window of twice the size.

    Sharding by process is done here, and there is no `batch_size` attribute: accelerate's own
    sharding loses batches of varying size.

    Args:
        budget: Frames per batch, padding included.
        window: Micro-batches per update.
        rank: This process, from 0.
        fixed: Makes batches of fixed shapes of these utterances, in place of those by the budget,
            given what their number is a multiple of.

    Attributes:
        fixed: The batches of fixed shapes; None without.
        processes: Number of processes.
        n_frames: Frames of all utterances.

    Raises:
        InputError: If there are fewer utterances than micro-batches in one update.
    """

    def __init__(
        self,
        lengths: Sequence[int] | np.ndarray,
        budget: int,
        *,
        seed: int,
        window: int = 1,
        processes: int = 1,
        rank: int = 0,
        fixed: Callable[[int], FixedBatches] | None = None,
    ) -> None:
        self._lengths = np.asarray(lengths, dtype=np.int64)
        self._budget = budget
        self._seed = seed
        self._multiple = window * processes
        self.processes = processes
        self.n_frames = int(self._lengths.sum())
        self._rank = rank
        self._epoch = 0
        self._start = 0
        if len(self._lengths) < self._multiple:
            raise InputError(
                f"{len(self._lengths)} training utterances cannot fill one update of {processes} "
                f"processes x {window} micro-batches; use fewer processes or a smaller "
                "train.gradient_accumulation_step"
            )
        self.fixed = None if fixed is None else fixed(self._multiple)

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Chooses the epoch of the next iteration.

        Its first `start` micro-batches of this process are left out: an interrupted run did them.
        """
        self._epoch = epoch
        self._start = start

    def __iter__(self) -> Iterator[list[Draw]]:
        start, self._start = self._start, 0
        epoch = self._epoch
        for batch in self.plan(epoch)[self._rank :: self.processes][start:]:
            yield [Draw(epoch, item) for item in batch]

    def __len__(self) -> int:
        return len(self.plan(self._epoch)) // self.processes

    def plan(self, epoch: int) -> list[list[int]]:
        """All batches of an epoch, for all processes together, in order."""
        generator = np.random.default_rng(derived_seed("batches", self._seed, epoch))
        fixed = self.fixed
        batches = self._by_length(generator) if fixed is None else fixed.fill(generator)
        batches = [batches[i] for i in generator.permutation(len(batches))]
        if epoch == 0:
            batches.sort(key=self._longest, reverse=True)
            first, rest = batches[: self._multiple], batches[self._multiple :]
            batches = first + [rest[i] for i in generator.permutation(len(rest))]
        return batches

    def _by_length(self, generator: np.random.Generator) -> list[list[int]]:
        """Batches of similar length, in whole windows."""
        jitter = generator.uniform(1 - JITTER, 1 + JITTER, len(self._lengths))
        batches = self._filled(np.argsort(self._lengths * jitter, kind="stable"))
        surplus = len(batches) % self._multiple
        if len(batches) - surplus + self._multiple <= len(self._lengths):
            self._split(batches)
        else:
            self._join(batches, surplus)
        return batches

    def _filled(self, order: np.ndarray) -> list[list[int]]:
        """Cuts the sorted utterances into batches that fill the budget."""
        batches: list[list[int]] = [[]]
        longest = 0
        for index in order.tolist():
            longest = max(longest, int(self._lengths[index]))
            if batches[-1] and (len(batches[-1]) + 1) * longest > self._budget:
                batches.append([])
                longest = int(self._lengths[index])
            batches[-1].append(index)
        return batches

    def _split(self, batches: list[list[int]]) -> None:
        for _ in range(-len(batches) % self._multiple):
            largest = max(range(len(batches)), key=lambda i: len(batches[i]))
            batch = batches[largest]
            middle = (len(batch) + 1) // 2
            batches[largest : largest + 1] = [batch[:middle], batch[middle:]]

    def _join(self, batches: list[list[int]], surplus: int) -> None:
        for _ in range(surplus):
            batches.sort(key=lambda batch: len(batch) * self._longest(batch))
            batches[:2] = [batches[0] + batches[1]]

    def _longest(self, batch: list[int]) -> int:
        return int(self._lengths[batch].max())


def frame_budget(lengths: Sequence[int] | np.ndarray, batch_size: int, batch_frames: int) -> int:
    """Frames per batch: `batch_frames` where given, else `batch_size` utterances of mean length."""
    return batch_frames or round(batch_size * float(np.mean(lengths)))
