"""A server of three small voices, for tests that do not change it."""

import pytest

from models.base.assets import Speaker
from models.synthesizer.synthesizer import Synthesizer
from tests.models.programs.server.servers import running
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.models.synthesizer.test_vocoders import make_vocoder


@pytest.fixture(scope="session")
def vocoder(tmp_path_factory):
    return make_vocoder(tmp_path_factory.mktemp("vocoder") / "small")


@pytest.fixture(scope="module", autouse=True)
def _small_vocoder(vocoder):
    """Puts a vocoder of some thousand weights in the place of the bundled one."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("models.synthesizer.vocoders.BUNDLED", vocoder)
        yield


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("voices")
    anna, bert, carl = Speaker("anna", "en-us"), Speaker("bert", "en-gb"), Speaker("carl", "en-gb")
    return {
        "tiny": make_voice(folder / "tiny"),
        "three": make_voice(folder / "three", anna, bert, carl),
        "two": make_voice(folder / "two", carl, bert, default="bert"),
    }


@pytest.fixture(scope="session")
def server(folders):
    with running(folders) as server:
        yield server


@pytest.fixture(scope="session")
def voice(folders, vocoder):
    return Synthesizer(folders["tiny"], vocoder)
