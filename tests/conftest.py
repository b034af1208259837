"""Fixtures of tests of several packages."""

import copy
import functools
import logging
import os
import signal

import pytest
import torch

from processors.audio import pitch
from tests.utils.hub_server import HubServer
from utils import config_tree, parallel

POOL = parallel._loky_pool
SLOW = ("tests/recipes/", "tests/test_try_it.py", "tests/models/")
TOGETHER = "tests/models/programs/export/"  # with what was exported for all of its files


def pytest_configure():
    """Gives each process one thread: sums of several differ in their last bits."""
    threads = os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(int(threads))


def pytest_collection_modifyitems(items):
    """Puts the slow tests first, so that the workers end at the same time."""
    items.sort(key=lambda item: not item.nodeid.startswith(SLOW))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Gives whole files to the workers: fixtures of a file are made once."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return TOGETHER if nodeid.startswith(TOGETHER) else super()._split_scope(nodeid)

    config.option.loadscopereorder = False  # by the number of tests
    return Scheduling(config, log) if config.option.dist == "load" else None


@pytest.fixture(autouse=True, scope="session")
def _hang_up():
    """Lets SIGHUP arrive, which a program started by nohup ignores, with all that it starts."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(autouse=True, scope="session")
def _quick():
    """Waits for no disk, parses each text of json5 once, and finds the pitch of each signal once.

    The pitch takes half of the time of stage 1, a configuration with those below it 0.1 s.
    """
    praat, known = pitch._praat, {}
    parse = functools.cache(config_tree._parse)

    @functools.wraps(praat)
    def once(wav, *arguments):
        key = (wav.tobytes(), wav.dtype.str, *map(repr, arguments))
        if key not in known:
            known[key] = praat(wav, *arguments)
        return known[key].copy()

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(os, "fsync", lambda _: None)
        monkeypatch.setattr(pitch, "_praat", once)
        monkeypatch.setattr(config_tree, "_parse", lambda text: copy.deepcopy(parse(text)))
        yield


@pytest.fixture(autouse=True, scope="module")
def _in_this_process(request):
    """Replaces worker processes, of which each takes three seconds to import PyTorch."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        if request.node.get_closest_marker("processes") is None:
            monkeypatch.setattr(parallel, "_loky_pool", parallel._this_process)
        yield


@pytest.fixture(autouse=True)
def _in_processes(request, monkeypatch):
    """Gives the tests that are about worker processes theirs."""
    if request.node.get_closest_marker("processes") is not None:
        monkeypatch.setattr(parallel, "_loky_pool", POOL)


@pytest.fixture(autouse=True)
def _levels():
    """Lets all parts of Arion log again: a command may silence some for its process."""
    yield
    for name, logger in logging.root.manager.loggerDict.items():
        if name.split(".")[0] == "arion" and isinstance(logger, logging.Logger):
            logger.setLevel(logging.NOTSET)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A Hub on this machine, which the real client talks to; cache and token lie in tmp_path.

    The client reads its environment when it is imported, so its constants are set instead.
    """
    from huggingface_hub import close_session, constants

    server = HubServer()
    home = tmp_path / "huggingface"
    values = {
        "ENDPOINT": server.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": server.url + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HOME": str(home),
        "HF_HUB_CACHE": str(home / "hub"),
        "HF_TOKEN_PATH": str(home / "token"),
        "HF_STORED_TOKENS_PATH": str(home / "stored_tokens"),
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_XET": True,
    }
    for name, value in values.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.chdir(tmp_path)
    close_session()
    yield server
    close_session()
    server.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A tab of Chromium, for tests that are marked by `IN_BROWSER`."""
    from tests.models.evaluation.report.browser import Browser

    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()
