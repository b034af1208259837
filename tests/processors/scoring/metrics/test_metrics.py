import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from processors.scoring import metrics
from processors.scoring.metrics import find, mean_over, metric_names, piece_spans
from utils.errors import InputError

REPOSITORY = Path(__file__).parents[4]


def test_a_metric_is_a_file_with_its_test():
    folder = Path(metrics.__file__).parent
    assert metric_names() == sorted(path.stem for path in folder.glob("[a-z]*.py"))
    assert {"mel_l1", "mstft", "pesq", "stoi", "wer"} <= set(metric_names())
    for name in metric_names():
        assert (Path(__file__).parent / f"test_{name}.py").is_file()


def test_what_a_metric_needs_is_imported_when_it_scores():
    code = """
import sys
from processors.scoring.metrics import find, metric_names
packages = {package for name in metric_names() for package in find(name).METRIC.packages}
print(len(packages), packages - {"soxr"} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    count, loaded = done.stdout.split(maxsplit=1)
    assert int(count) >= 5
    assert loaded.strip() == "set()"


@pytest.mark.parametrize("name", metric_names())
def test_a_metric_says_what_it_is(name):
    module = find(name)
    assert module.METRIC.input in ("copy", "pair", "speech")
    assert module.METRIC.better in ("lower", "higher", "")
    if module.METRIC.better:
        assert f"{module.METRIC.better} is better" in " ".join(module.__doc__.lower().split())
    assert callable(module.score)


def test_what_is_missing_is_named(monkeypatch):
    metric = find("pesq").METRIC
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pesq" else name)
    assert metric.missing() == ("pesq",)


def test_an_unknown_metric_is_an_error_that_lists_the_known_ones():
    with pytest.raises(InputError, match=r"no metric 'mel_l2'; did you mean mel_l1\? \(known: .*"):
        find("mel_l2")


def test_pieces_cover_every_frame_once_and_are_not_too_long(monkeypatch):
    monkeypatch.setattr(metrics, "_PIECE_FRAMES", 32)
    found = list(piece_spans(100 * 256 + 17, 256))
    assert [span.start for span in found[1:]] == [span.stop for span in found[:-1]]
    assert (found[0].start, found[-1].stop) == (0, 100 * 256)
    assert [(span.stop - span.start) / 256 for span in found] == [25] * 4
    assert list(piece_spans(32 * 256, 256)) == [slice(0, 32 * 256)]
    assert list(piece_spans(255, 256)) == []


def test_a_mean_counts_samples_and_leaves_out_what_has_no_value():
    values = {10: 1.0, 30: 2.0, 60: None}
    parts = [(np.zeros(n), np.zeros(n)) for n in values]
    assert mean_over(parts, lambda wav, _: values[len(wav)]) == (10 * 1 + 30 * 2) / 40
    assert mean_over(parts[2:], lambda wav, _: values[len(wav)]) is None
