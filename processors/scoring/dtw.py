"""Dynamic time warping: the cheapest way to lay one sequence on another, in order.

Sakoe and Chiba 1978, "Dynamic programming algorithm optimization for spoken word recognition". It
is exact for any length. The table of costs is filled diagonal by diagonal, whose cells do not
depend on each other, and in blocks of rows: the row above each block is kept, and the path goes
back through the blocks one at a time, so that memory stays bounded.
"""

import numpy as np

_BLOCK_CELLS = 16_000_000  # 150 MB; two sentences of 20 s at 5 ms are one block
_ACROSS, _UP, _LEFT = 0, 1, 2  # where a cell is reached from: both one less, the row, the column


def dtw_path(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The path with the smallest sum of Euclidean distances from both starts to both ends.

    Each step goes on by one in `a`, in `b`, or in both; of equal ways it takes both.

    Args:
        a: (N, D).
        b: (M, D).

    Returns:
        Indices into `a` and `b`, (L, 2); none if either is empty.
    """
    N, M = len(a), len(b)
    if N == 0 or M == 0:
        return np.zeros((0, 2), dtype=int)
    rows = max(1, _BLOCK_CELLS // M)
    above = [np.append(0.0, np.full(M, np.inf))]  # before column 0, then by column: (M + 1,)
    starts = list(range(0, N, rows))
    for start in starts[:-1]:
        above.append(_last_row(_distances(a[start : start + rows], b), above[-1]))
    path: list[tuple[int, int]] = []
    column = M - 1
    for start, row in zip(reversed(starts), reversed(above), strict=True):
        distances = _distances(a[start : start + rows], b)
        steps = np.empty(distances.shape, dtype=np.uint8)
        _last_row(distances, row, steps)
        column = _trace(steps, start, column, path)
    return np.array(path[::-1])


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Euclidean distances of every two rows, (N, M)."""
    squares = a @ (-2.0 * b.T)
    squares += (a**2).sum(axis=1)[:, None]
    squares += (b**2).sum(axis=1)
    return np.sqrt(np.maximum(squares, 0, out=squares), out=squares)


def _last_row(
    distances: np.ndarray, above: np.ndarray, steps: np.ndarray | None = None
) -> np.ndarray:
    """What it costs to reach each cell of the last row of a block, (M + 1,) as `above`.

    Args:
        distances: (N, M).
        above: The costs of the row above; before column 0 first, (M + 1,).
        steps: Is filled with where each cell is reached from, (N, M) contiguous.
    """
    N, M = distances.shape
    last = np.full(M + 1, np.inf)
    # Costs by row, of the two diagonals before; number 0 belongs to the row above the block.
    older, old, current = (np.full(N + 1, np.inf) for _ in range(3))
    older[0], old[0] = above[:2]
    for diagonal in range(N + M - 1):
        low, high = max(0, diagonal - M + 1), min(N - 1, diagonal)
        cells = slice(  # of row i and column diagonal - i
            low * (M - 1) + diagonal, high * (M - 1) + diagonal + 1, max(M - 1, 1)
        )
        across, up, left = older[low : high + 1], old[low : high + 1], old[low + 1 : high + 2]
        beside = np.minimum(up, left)
        current[low + 1 : high + 2] = np.minimum(across, beside) + distances.ravel()[cells]
        if steps is not None:
            from_beside = np.where(left < up, _LEFT, _UP)
            steps.ravel()[cells] = np.where(across <= beside, _ACROSS, from_beside)
        if high == N - 1:
            last[diagonal - N + 2] = current[N]
        current[0] = above[diagonal + 2] if diagonal + 2 <= M else np.inf
        older, old, current = old, current, older
    return last


def _trace(steps: np.ndarray, start: int, column: int, path: list[tuple[int, int]]) -> int:
    """Follows a block back from its last row; gives the column in which it comes to its top."""
    row = len(steps) - 1
    while row >= 0:
        path.append((start + row, column))
        step = steps[row, column]
        row -= step != _LEFT
        column -= step != _UP
    return column
