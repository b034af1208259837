"""`arion serve`: its flags, and its end."""

import json
import os
import re
import signal
import socket
import sys
import threading
from contextlib import suppress
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from models.programs.server import app
from models.programs.server.requests import Limits
from models.synthesizer.synthesizer import Synthesizer
from processors.audio.streams import encoded
from tests.commands import call
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.processes import Process
from utils.cli import UsageError
from utils.errors import InputError

SERVED = """
import os
os.dup2(1, 2)
from bins.arion import entry_point
entry_point()
"""


def served(monkeypatch, *words):
    """What the server is asked for by flags."""
    calls = []
    monkeypatch.setattr(app, "serve", lambda *given, **named: calls.append((*given, named)))
    call("serve", *words)
    return calls[0]


def test_it_listens_on_this_machine_alone_unless_asked(monkeypatch):
    monkeypatch.delenv("ARION_TOKEN", raising=False)
    voices, limits, places = served(monkeypatch)
    assert (voices, limits, places["host"]) == ([], Limits(), "127.0.0.1")
    with pytest.raises(UsageError, match=r"--host 0\.0\.0\.0 needs --token, or --no_token"):
        served(monkeypatch, "--host", "0.0.0.0")
    with pytest.raises(UsageError, match="exclude"):
        served(monkeypatch, "--token", "x", "--no_token")
    assert served(monkeypatch, "--host", "0.0.0.0", "--no_token")[1].token is None
    assert served(monkeypatch, "--host", "::", "--token", "x")[1].token == "x"
    monkeypatch.setenv("ARION_TOKEN", "y")
    assert served(monkeypatch, "--host", "::")[1].token == "y"


def test_flags_are_limits(monkeypatch):
    with pytest.raises(UsageError, match="--port '99999': expected a whole number from 0 to 65535"):
        served(monkeypatch, "--port", "99999")
    flags = ("--queue", "3", "--deadline", "9", "--memory", "10", "--port", "0")
    voices, limits, places = served(monkeypatch, "a=b", *flags)
    assert voices == ["a=b"]
    assert (limits.queue, limits.deadline_s) == (3, 9)
    assert (places["memory_mb"], places["port"], places["tagged"]) == (10, 0, True)
    assert not served(monkeypatch, "--no_tags")[2]["tagged"]
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "7")
    monkeypatch.delenv("LRU_CACHE_CAPACITY", raising=False)
    served(monkeypatch)
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"
    assert os.environ["LRU_CACHE_CAPACITY"] == "64"


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "models.programs.server.app", None)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    for name in [name for name in sys.modules if name.startswith("models.programs.server.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(InputError, match=r"pip install -e '\.\[serve\]'"):
        call("serve")


def test_sigterm_ends_the_server_after_what_is_running(tmp_path):
    folder = make_voice(tmp_path / "tiny")
    text = "It was so. Was it? Yes, in 1813. " * 3
    voice = Synthesizer(folder)
    expected = b"".join(encoded(voice.generate(text), "wav", 22050, voice.tag))
    process = Process("-c", SERVED, "serve", folder, "--port", "0")
    try:
        lines = iter(process.stdout.readline, "")
        url = next(found[0] for line in lines if (found := re.search(r"http://[\d.:]+", line)))
        log = []
        rest = threading.Thread(target=lambda: log.extend(lines))
        rest.start()
        asked = {"model": "tts-1", "voice": "tiny", "input": text, "response_format": "wav"}
        request = Request(f"{url}/v1/audio/speech", json.dumps(asked).encode())
        request.add_header("Content-Type", "application/json")
        with urlopen(request) as response:
            first = response.read(100)
            os.kill(process.pid, signal.SIGTERM)
            assert first + response.read() == expected
        rest.join()
        assert process.finish().returncode == 128 + signal.SIGTERM
        assert not any("error" in line or "Traceback" in line for line in log), log
        with pytest.raises(URLError):
            urlopen(f"{url}/v1/models")
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


@pytest.mark.parametrize(("stop", "code"), [((), 130), ((int(signal.SIGTERM),), 143)])
def test_ctrl_c_ends_it_with_the_usual_status(monkeypatch, stop, code):
    def serve(*_given, **_named):
        raise KeyboardInterrupt(*stop)

    monkeypatch.setattr(app, "serve", serve)
    with pytest.raises(SystemExit) as ended:
        call("serve")
    assert ended.value.code == code


def test_a_port_in_use_is_named_with_the_flag():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        message = rf"cannot listen on 127\.0\.0\.1, port {port}: .*; choose another --port or --hos"
        with pytest.raises(InputError, match=message):
            app.serve([], Limits(), host="127.0.0.1", port=port, memory_mb=1)


def test_an_address_of_the_wyoming_protocol_is_a_port_with_or_without_a_host(monkeypatch):
    for word, address in (
        ("10200", ("127.0.0.1", 10200)),
        ("0.0.0.0:10200", ("0.0.0.0", 10200)),
        ("[::1]:10200", ("::1", 10200)),
    ):
        assert served(monkeypatch, "--wyoming", word)[2]["wyoming"] == address
    assert served(monkeypatch)[2]["wyoming"] is None
    for word in ("here", "::1:10200", "10200:"):
        with pytest.raises(UsageError, match=r"--wyoming '.*': expected a port, or HOST:PORT"):
            served(monkeypatch, "--wyoming", word)
