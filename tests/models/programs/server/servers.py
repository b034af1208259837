"""A server in a thread of the tests, and clients of it."""

import contextlib
import http.client
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import openai
import uvicorn

from models.programs.server.app import server_config
from models.programs.server.requests import Limits
from models.programs.server.streams import Address
from models.programs.server.voices import VoiceStore
from processors.text.pronunciations import Dictionary


class Running(NamedTuple):
    """A server that listens."""

    port: int
    voices: VoiceStore

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, token: str = "none", max_retries: int = 0) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=token, max_retries=max_retries)

    def request(self, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str]:
        """Status and text of a response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body.encode(), headers)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def socket(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def metric(self, name: str) -> float:
        _, text = self.request("GET", "/metrics")
        return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name)))


@contextlib.contextmanager
def running(
    folders: dict[str, Path],
    limits: Limits | None = None,
    wyoming: Address | None = None,
    lexicon: Dictionary | None = None,
    voices: VoiceStore | None = None,
) -> Iterator[Running]:
    """Serves voices until the end of the block."""
    voices = voices or VoiceStore(lambda: folders, memory_mb=2000, lexicon=lexicon)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    server = uvicorn.Server(server_config(voices, limits or Limits(), "127.0.0.1", 0, wyoming))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield Running(server.servers[0].sockets[0].getsockname()[1], voices)
    finally:
        server.should_exit = server.force_exit = True
        thread.join(20)
        assert not thread.is_alive()


def wait_until(condition, seconds: float = 20) -> None:
    """Returns as soon as it holds; a test that waits in vain fails."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "never"
        time.sleep(0.01)
