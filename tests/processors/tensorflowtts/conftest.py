"""A corpus and its dump, both only to be read."""

import pytest

from tests.processors.small_corpus import copy_corpus
from tests.processors.tensorflowtts.dumps import IDS, export


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    return copy_corpus(tmp_path_factory.mktemp("corpus") / "LJSpeech", IDS)


@pytest.fixture(scope="session")
def original(corpus, tmp_path_factory):
    return export(corpus, tmp_path_factory.mktemp("original") / "dump")
