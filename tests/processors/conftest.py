"""A small corpus of real recordings, and what stage 1 makes of it: tests only read them."""

from pathlib import Path

import pytest

from tests.processors.small_corpus import config_of, copy_corpus, prepare_dataset


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    return copy_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def prepared(corpus, tmp_path_factory) -> Path:
    processed = tmp_path_factory.mktemp("prepared")
    prepare_dataset(config_of(corpus, processed), "LJSpeech", 1)
    return processed / "LJSpeech"
