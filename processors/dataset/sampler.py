"""Samplers of batches: length buckets that fill a frame budget, and batches of fixed shapes.

Random batches waste a third of LJSpeech on padding; batches of similar length, under 3 %.

A compiled network is compiled again for each new shape of its input. With fixed shapes an epoch has
a few of them, each larger than the one before in both dimensions, so that a batch of a large shape
can take shorter utterances too. Each utterance is padded to the smallest one that holds it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from utils.errors import InputError
from utils.seed import derived_seed

JITTER = 0.03  # lengths are perturbed by up to this share before sorting: new neighbours each epoch


class Shape(NamedTuple):
    """Lengths that utterances are padded to."""

    phones: int  # 0 for vocoders
    frames: int


class BatchShape(NamedTuple):
    """The shape of all tensors of a batch."""

    items: int
    phones: int
    frames: int

    def __str__(self) -> str:
        return " x ".join(str(size) for size in self if size)


def choose_shapes(phones: np.ndarray, frames: np.ndarray, n_shapes: int) -> tuple[Shape, ...]:
    """Chooses up to `n_shapes` shapes with the least padding, by dynamic programming over lengths.

    Minimised is the number of padded phones and frames of all utterances, by their lengths, (K,).
    The shapes ascend, and the last one holds the longest utterance.
    """
    order = np.argsort(frames, kind="stable")
    lengths, first = np.unique(frames[order], return_index=True)  # (L,)
    ends = np.append(first[1:], len(frames))  # utterances of at most this length, (L,)
    widest = np.maximum.accumulate(phones[order])[ends - 1]  # phones of the longest of these
    sizes = widest + lengths  # of a shape that ends with this length, (L,)
    begins = np.append(0, ends)  # (L + 1,)
    # costs[j]: positions of the utterances up to length j, in the shapes so far; origins: where
    # the last of these shapes begins
    costs, origins = ends * sizes, [np.zeros(len(lengths), dtype=np.int64)]
    for _ in range(1, min(n_shapes, len(lengths))):
        before = np.append(0, costs)  # by the first length of the next shape, (L + 1,)
        totals = before[:, None] + (ends - begins[:, None]) * sizes  # (L + 1, L)
        allowed = np.arange(len(before))[:, None] <= np.arange(len(lengths))
        totals = np.where(allowed, totals, np.iinfo(np.int64).max)
        origins.append(totals.argmin(axis=0))
        costs = totals.min(axis=0)
    last, chosen = len(lengths) - 1, []
    for origin in reversed(origins):
        chosen.append(Shape(int(widest[last]), int(lengths[last])))
        last = int(origin[last]) - 1
        if last < 0:
            break
    return tuple(reversed(chosen))


def fitting(shapes: Sequence[Shape], phones: int, frames: int) -> Shape:
    """Returns the smallest of ascending shapes that holds so many phones and frames."""
    for shape in shapes:
        if phones <= shape.phones and frames <= shape.frames:
            return shape
    largest = f"the largest of the fixed shapes has {shapes[-1].phones} and {shapes[-1].frames}"
    raise ValueError(f"{phones} phones and {frames} frames; {largest}")


class FixedBatches:
    """The batches of an epoch: always of the same shapes, filled with other utterances each epoch.

    A batch of a shape holds as many utterances as the frame budget allows, so that all shapes take
    about the same memory. Where the utterances of a shape do not fill its last batch, those of the
    next smaller one do; those of the smallest shape are divided into batches that differ by at most
    one utterance. So there is one batch shape more than shapes, at most, and every utterance comes
    once. The number of batches is a multiple of `multiple`; where the corpus is too small for that,
    there are fewer shapes than `n_shapes`, or the last batches exceed the budget.

    `phones` and `frames` are the largest numbers of each utterance, (K,).
    """

    def __init__(
        self, phones: np.ndarray, frames: np.ndarray, n_shapes: int, budget: int, multiple: int = 1
    ) -> None:
        sizes: list[int] | None = None
        while sizes is None:
            self.shapes = choose_shapes(phones, frames, n_shapes)
            # index of the smallest shape that holds each utterance, (K,)
            most_phones, most_frames = np.array(self.shapes).T
            by_phones = np.searchsorted(most_phones, phones)
            self._of_item = np.maximum(by_phones, np.searchsorted(most_frames, frames))
            sizes = _batch_sizes(np.sort(self._of_item)[::-1], self.shapes, budget, multiple)
            n_shapes = len(self.shapes) - 1
        self._ends = np.cumsum(sizes)
        largest = np.sort(self._of_item)[::-1][self._ends - sizes]  # shape of each batch
        self._plan = [
            BatchShape(size, *self.shapes[shape])
            for size, shape in zip(sizes, largest.tolist(), strict=True)
        ]
        self.batch_shapes = tuple(dict.fromkeys(self._plan))

    def fill(self, generator: np.random.Generator) -> list[list[int]]:
        """Draws which utterances make the batches of an epoch; their indices, by batch."""
        order = np.lexsort((generator.permutation(len(self._of_item)), -self._of_item))
        return [batch.tolist() for batch in np.split(order, self._ends[:-1])]


def _batch_sizes(
    of_items: np.ndarray, shapes: Sequence[Shape], budget: int, multiple: int
) -> list[int] | None:
    """Returns utterances in each batch; None if the smallest shape cannot make up the multiple."""
    # of_items: index of the shape of each utterance, in descending order, (K,)
    most = [max(1, budget // shape.frames) for shape in shapes]
    sizes: list[int] = []
    n_placed = 0
    while n_placed < len(of_items) and of_items[n_placed] > 0:
        sizes.append(most[of_items[n_placed]])
        n_placed += sizes[-1]
    n_left = len(of_items) - n_placed  # of the smallest shape
    n_batches = -(-n_left // most[0])
    n_batches += -(len(sizes) + n_batches) % multiple
    if n_batches > n_left and not sizes:
        n_batches = n_left // multiple * multiple
    if n_left < 0 or n_batches > n_left:
        return None
    quotient, surplus = divmod(n_left, n_batches) if n_batches else (0, 0)
    return sizes + [quotient + 1] * surplus + [quotient] * (n_batches - surplus)


class Draw(NamedTuple):
    """One utterance in one epoch, as the sampler requests it from the dataset."""

    epoch: int  # travels with the item, so that random crops are right in worker processes too
    item: int


class FrameBudgetSampler:
    """Batches of similar length; their order is a function of (seed, epoch) alone.

    A batch holds as many utterances as `items x longest <= budget` allows; a longer utterance has a
    batch of its own. Every utterance comes once per epoch. The number of batches is brought to a
    multiple of `processes x window`, never by repeating or dropping any: every process has the same
    number of whole windows. The batches with the most utterances are halved; where there are too
    few utterances for that, the batches with the fewest frames are joined and exceed the budget.
    In the first epoch the longest batches make the first update, so that a lack of memory shows at
    once. Two processes have the same updates as one with a window of twice the size; fewer
    utterances than micro-batches in one update are an InputError.

    Sharding by process is done here, and there is no `batch_size` attribute: accelerate's own
    sharding loses batches of varying size.

    Args:
        budget: Frames per batch, padding included.
        window: Micro-batches per update.
        fixed: Makes batches of fixed shapes in place of those by the budget, given what their
            number is a multiple of.
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
        self._epoch = self._start = 0
        if len(self._lengths) < self._multiple:
            update = f"one update of {processes} processes x {window} micro-batches"
            fault = f"{len(self._lengths)} training utterances cannot fill {update}"
            remedy = "use fewer processes or a smaller train.gradient_accumulation_step"
            raise InputError(f"{fault}; {remedy}")
        self.fixed = None if fixed is None else fixed(self._multiple)

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Chooses the epoch of the next iteration.

        Its first `start` micro-batches of this process are left out: an interrupted run did them.
        """
        self._epoch, self._start = epoch, start

    def __iter__(self) -> Iterator[list[Draw]]:
        epoch, start, self._start = self._epoch, self._start, 0
        for batch in self.plan(epoch)[self._rank :: self.processes][start:]:
            yield [Draw(epoch, item) for item in batch]

    def __len__(self) -> int:
        return len(self.plan(self._epoch)) // self.processes

    def plan(self, epoch: int) -> list[list[int]]:
        """Returns all batches of an epoch, for all processes together, in order."""
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
        """Returns batches of similar length, in whole windows."""
        jitter = generator.uniform(1 - JITTER, 1 + JITTER, len(self._lengths))
        batches = self._filled(np.argsort(self._lengths * jitter, kind="stable"))
        surplus = len(batches) % self._multiple
        joins = len(batches) - surplus + self._multiple > len(self._lengths)
        while len(batches) % self._multiple:
            if joins:
                batches.sort(key=lambda batch: len(batch) * self._longest(batch))
                batches[:2] = [batches[0] + batches[1]]
            else:
                largest = max(range(len(batches)), key=lambda i: len(batches[i]))
                batch = batches[largest]
                middle = (len(batch) + 1) // 2
                batches[largest : largest + 1] = [batch[:middle], batch[middle:]]
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

    def _longest(self, batch: list[int]) -> int:
        return int(self._lengths[batch].max())


def frame_budget(lengths: Sequence[int] | np.ndarray, batch_size: int, batch_frames: int) -> int:
    """Returns frames per batch: `batch_frames`, or `batch_size` utterances of mean length."""
    return batch_frames or round(batch_size * float(np.mean(lengths)))
