import pytest

from processors.metrics.registry import METRICS


def skip_without(*metrics: str) -> None:
    """Skips a test where packages of these metrics are missing."""
    if missing := [package for name in metrics for package in METRICS[name].missing()]:
        pytest.skip(f"not installed: {', '.join(missing)}")
