"""Long recordings are compared in pieces: an hour takes no more memory than a minute."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

_PIECE_FRAMES = 2048  # about 24 s

Pieces = Iterable[tuple[np.ndarray, np.ndarray]]  # parts of a recording and of its copy, (S,) each


def spans(n_samples: int, hop: int) -> Iterator[slice]:
    """Consecutive spans of samples, about equally long, that cover all whole frames."""
    T = n_samples // hop
    n_pieces = -(-T // _PIECE_FRAMES)
    edges = np.linspace(0, T, 1 + n_pieces).astype(int) * hop
    yield from map(slice, edges[:-1].tolist(), edges[1:].tolist())


def mean_over(
    pieces: Pieces, compare: Callable[[np.ndarray, np.ndarray], float | None]
) -> float | None:
    """Mean of a comparison over pieces by their length; None if it has no value for any."""
    total = weight = 0.0
    for wav, wav_hat in pieces:
        value = compare(wav, wav_hat)
        if value is not None:
            total += value * len(wav)
            weight += len(wav)
    return total / weight if weight else None
