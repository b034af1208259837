"""A corpus whose boundaries are known, and what the aligner learns from it."""

import pytest

from processors.alignment.hmm.training import train
from tests.processors.alignment.hmm.synthetic import corpus


@pytest.fixture(scope="package")
def drawn():
    return corpus()


@pytest.fixture(scope="package")
def model(drawn):
    return train([one.example for one in drawn])
