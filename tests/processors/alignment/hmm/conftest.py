"""A corpus whose boundaries are known, and what the aligner learns from it."""

from unittest import mock

import pytest

from processors.alignment.hmm import training
from tests.processors.alignment.hmm.synthetic import corpus


@pytest.fixture(scope="package")
def drawn():
    return corpus()


@pytest.fixture(scope="package")
def trained(drawn):
    """The model; and states, Gaussians and likelihood of each pass of its training."""
    with mock.patch.object(training._log, "debug") as debug:
        model = training.train([one.example for one in drawn])
    passes = [call.args for call in debug.call_args_list if "nats per frame" in call.args[0]]
    return model, [numbers for _, *numbers in passes]


@pytest.fixture(scope="package")
def model(trained):
    return trained[0]
