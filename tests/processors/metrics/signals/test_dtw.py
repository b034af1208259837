import librosa
import numpy as np
import pytest

from processors.metrics.signals import dtw
from processors.metrics.signals.dtw import dtw_path


def sequences(n: int, m: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.normal(size=(n, 3)), random.normal(size=(m, 3))


def cost(a: np.ndarray, b: np.ndarray, path: np.ndarray) -> float:
    return np.linalg.norm(a[path[:, 0]] - b[path[:, 1]], axis=1).sum()


def all_paths(n: int, m: int):
    """Every path from (0, 0) to (n - 1, m - 1)."""
    if (n, m) == (1, 1):
        yield [(0, 0)]
        return
    for before in ((n - 1, m - 1), (n - 1, m), (n, m - 1)):
        if min(before) > 0:
            for path in all_paths(*before):
                yield [*path, (n - 1, m - 1)]


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 4), (4, 1), (2, 6), (6, 2), (5, 5), (4, 6)])
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_no_path_is_cheaper(monkeypatch, n, m, rows):
    monkeypatch.setattr(dtw, "_BLOCK_CELLS", rows * m)
    for seed in range(5):
        a, b = sequences(n, m, seed)
        path = dtw_path(a, b)
        cheapest = min(cost(a, b, np.array(other)) for other in all_paths(n, m))
        assert path.tolist() in [list(map(list, other)) for other in all_paths(n, m)]
        assert cost(a, b, path) == pytest.approx(cheapest, rel=1e-12)


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_the_path_is_that_of_librosa(monkeypatch, rows):
    a, b = sequences(120, 90)
    monkeypatch.setattr(dtw, "_BLOCK_CELLS", rows * len(b))
    _, path = librosa.sequence.dtw(X=a.T, Y=b.T, metric="euclidean")
    assert dtw_path(a, b).tolist() == path[::-1].tolist()


def test_frames_are_matched_to_themselves_and_to_their_repetitions():
    a, _ = sequences(50, 1)
    repeats = np.random.default_rng(0).integers(1, 4, size=50)
    index = np.repeat(np.arange(50), repeats)
    assert dtw_path(a, a).tolist() == [[i, i] for i in range(50)]
    assert dtw_path(a, a[index]).tolist() == [[i, j] for j, i in enumerate(index)]


def test_the_other_way_round_costs_the_same():
    a, b = sequences(40, 60)
    assert cost(a, b, dtw_path(a, b)) == pytest.approx(cost(b, a, dtw_path(b, a)))


def test_an_empty_sequence_has_no_path():
    a, b = sequences(0, 3)
    assert dtw_path(a, b).shape == dtw_path(b, a).shape == (0, 2)


def test_of_equal_paths_the_diagonal_is_taken():
    a = np.zeros((4, 2))
    assert dtw_path(a, a).tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
