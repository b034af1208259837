import pytest

from processors.metrics.records import missing_packages
from processors.metrics.registry import METRICS


def skip_without(*metrics: str) -> None:
    """Skips a test where packages of these metrics are missing."""
    packages = [package for name in metrics for package in METRICS[name].packages]
    if missing := missing_packages(packages):
        pytest.skip(f"not installed: {', '.join(missing)}")
