import numpy as np
import pytest

from processors.scoring import dtw as warping
from processors.scoring.dtw import dtw_path


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
    monkeypatch.setattr(warping, "_BLOCK_CELLS", rows * m)
    for seed in range(5):
        a, b = sequences(n, m, seed)
        path = dtw_path(a, b)
        cheapest = min(cost(a, b, np.array(other)) for other in all_paths(n, m))
        assert path.tolist() in [list(map(list, other)) for other in all_paths(n, m)]
        assert cost(a, b, path) == pytest.approx(cheapest, rel=1e-12)


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_it_costs_what_a_table_filled_cell_by_cell_says(monkeypatch, rows):
    a, b = sequences(120, 90)
    table = np.full((121, 91), np.inf)
    table[0, 0] = 0
    for i, j in np.ndindex(120, 90):
        before = min(table[i, j], table[i, j + 1], table[i + 1, j])
        table[i + 1, j + 1] = before + np.linalg.norm(a[i] - b[j])
    monkeypatch.setattr(warping, "_BLOCK_CELLS", rows * len(b))
    assert cost(a, b, dtw_path(a, b)) == pytest.approx(table[-1, -1], rel=1e-12)


def test_a_sequence_stands_beside_itself_and_what_is_repeated_beside_its_original():
    a, _ = sequences(50, 1)
    repeats = np.random.default_rng(0).integers(1, 4, size=50)
    index = np.repeat(np.arange(50), repeats)
    assert dtw_path(a, a).tolist() == [[i, i] for i in range(50)]
    assert dtw_path(a, a[index]).tolist() == [[i, j] for j, i in enumerate(index)]


def test_the_other_way_round_costs_the_same():
    a, b = sequences(40, 60)
    assert cost(a, b, dtw_path(a, b)) == pytest.approx(cost(b, a, dtw_path(b, a)))


def test_what_is_empty_has_no_path():
    a, b = sequences(0, 3)
    assert dtw_path(a, b).shape == dtw_path(b, a).shape == (0, 2)


def test_equal_frames_go_on_in_both():
    a = np.zeros((4, 2))
    assert dtw_path(a, a).tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
