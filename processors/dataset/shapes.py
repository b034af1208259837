"""Fixed shapes of training batches, chosen from the lengths of the corpus.

A compiled network is compiled again for each new shape of its input. With fixed shapes an epoch has
a few of them: each utterance is padded to the smallest shape that holds it. Every shape is larger
than the one before in both dimensions, so that a batch of a large shape can take shorter
utterances too.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


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
    raise ValueError(
        f"{phones} phones and {frames} frames; the largest of the fixed shapes has "
        f"{shapes[-1].phones} and {shapes[-1].frames}"
    )


class FixedBatches:
    """The batches of an epoch: always of the same shapes, filled with other utterances each epoch.

    A batch of a shape holds as many utterances as the frame budget allows, so that all shapes take
    about the same memory. Where the utterances of a shape do not fill its last batch, those of the
    next smaller one do; those of the smallest shape are divided into batches that differ by at most
    one utterance. So there is one batch shape more than shapes, at most, and every utterance comes
    once. The number of batches is a multiple of `multiple`; where the corpus is too small for that,
    there are fewer shapes, or the last batches exceed the budget.

    Args:
        phones: Largest number of phones of each utterance, (K,).
        n_shapes: How many shapes, at most.

    Attributes:
        shapes: Shapes that utterances are padded to, in ascending order.
        batch_shapes: Shapes of the batches of an epoch, each once.
    """

    def __init__(
        self, phones: np.ndarray, frames: np.ndarray, n_shapes: int, budget: int, multiple: int = 1
    ) -> None:
        sizes: list[int] | None = None
        while sizes is None:
            self.shapes = choose_shapes(phones, frames, n_shapes)
            self._of_item = _smallest_shapes(self.shapes, phones, frames)  # (K,)
            sizes = _batch_sizes(np.sort(self._of_item)[::-1], self.shapes, budget, multiple)
            n_shapes = len(self.shapes) - 1
        self._ends = np.cumsum(sizes)
        largest = np.sort(self._of_item)[::-1][self._ends - sizes]  # shape of each batch
        self._plan = [
            BatchShape(size, *self.shapes[shape])
            for size, shape in zip(sizes, largest.tolist(), strict=True)
        ]
        self.batch_shapes = tuple(dict.fromkeys(self._plan))
        self._valid = int(phones.sum()), int(frames.sum())

    def fill(self, generator: np.random.Generator) -> list[list[int]]:
        """Draws which utterances make the batches of an epoch; their indices, by batch."""
        order = np.lexsort((generator.permutation(len(self._of_item)), -self._of_item))
        return [batch.tolist() for batch in np.split(order, self._ends[:-1])]

    def padding(self) -> tuple[float, float]:
        """Shares of phones and frames of an epoch that are padding; 0 without phones."""
        phones = sum(batch.items * batch.phones for batch in self._plan)
        frames = sum(batch.items * batch.frames for batch in self._plan)
        return 1 - self._valid[0] / phones if phones else 0.0, 1 - self._valid[1] / frames


def _smallest_shapes(shapes: Sequence[Shape], phones: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """Index of the smallest shape that holds each utterance, (K,)."""
    most_phones, most_frames = np.array(shapes).T
    return np.maximum(np.searchsorted(most_phones, phones), np.searchsorted(most_frames, frames))


def _batch_sizes(
    of_items: np.ndarray, shapes: Sequence[Shape], budget: int, multiple: int
) -> list[int] | None:
    """Utterances in each batch; None if the smallest shape cannot make up the multiple.

    Args:
        of_items: Index of the shape of each utterance, in descending order, (K,).
    """
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
