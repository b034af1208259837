import subprocess
import sys
from pathlib import Path

import pytest

from processors.metrics.records import missing_packages
from processors.metrics.registry import CHECKS, MEANINGS, METRICS, check_names
from utils.errors import InputError

REPOSITORY = Path(__file__).parents[3]


def test_metrics_are_sorted_by_name_and_each_has_a_test_as_has_each_check():
    assert {"mel_l1", "mstft", "pesq", "stoi", "wer"} <= set(METRICS)
    assert list(METRICS) == sorted(METRICS)
    tests = "".join(path.read_text() for path in (Path(__file__).parent / "families").iterdir())
    assert [name for name in METRICS if f'"{name}"' not in tests] == []
    assert not set(METRICS) & set(CHECKS)
    assert {"silence", "words"} <= set(CHECKS)
    tests = Path(__file__).with_name("test_checks.py").read_text()
    assert [name for name in CHECKS if f"check_{name}(" not in tests] == []


def test_names_are_known_without_any_heavy_package():
    """Training runs without them, and a wrong flag is answered at once."""
    code = """
import sys
from processors.metrics.registry import CHECKS, METRICS
packages = {package for row in (*METRICS.values(), *CHECKS.values()) for package in row.packages}
print(len(packages), {"torch", "soundfile", "numba", "scipy", *packages} & set(sys.modules))
"""
    how = {"cwd": REPOSITORY, "capture_output": True, "text": True, "check": True}
    done = subprocess.run([sys.executable, "-c", code], **how)
    count, loaded = done.stdout.split(maxsplit=1)
    assert int(count) >= 5
    assert loaded.strip() == "set()"


def test_metrics_and_checks_say_what_they_are():
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.needs
    for name, check in CHECKS.items():
        assert check.name == name
        assert check.finds
        assert any(char.isdigit() for char in sys.modules[check.score.__module__].__doc__)


def test_each_metric_and_check_is_defined_in_a_sentence():
    assert MEANINGS.keys() == {*METRICS, *CHECKS}
    assert all(meaning.endswith(".") for meaning in MEANINGS.values())


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pesq" else name)
    assert missing_packages(METRICS["pesq"].packages) == ("pesq",)


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(InputError, match=r"no metric 'mel_l2'; did you mean mel_l1\? \(known: .*"):
        check_names(["mel_l2"], [])
    with pytest.raises(
        InputError, match=r"no check 'word'; did you mean words\? \(known: clipping"
    ):
        check_names([], ["word"])
