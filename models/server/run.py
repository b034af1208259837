"""Runs the server until a signal ends it."""

import logging
import socket
from collections.abc import Sequence

import uvicorn

from models.server.app import build_app
from models.server.limits import Limits, protocol_with_patience
from models.server.voices import VoiceStore, named_references
from utils.errors import InputError
from utils.logging import get_logger


def server_config(voices: VoiceStore, limits: Limits, host: str, port: int) -> uvicorn.Config:
    """The configuration of uvicorn.

    Args:
        host: Address to listen on.
        port: 0: any that is free.
    """
    return uvicorn.Config(
        build_app(voices, limits),
        host,
        port,
        http=protocol_with_patience(limits.patience_s),
        ws="none",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=round(limits.deadline_s),
    )


def serve(voices: Sequence[str], limits: Limits, *, host: str, port: int, memory_mb: float) -> None:
    """Serves voices; SIGTERM and SIGINT let running requests end first.

    Args:
        voices: As for `named_references`.
        host: Address to listen on.
        port: 0: any that is free.
        memory_mb: As of `VoiceStore`.

    Raises:
        InputError: If a voice cannot be found, or host and port cannot be listened on.
    """
    _check_free(host, port)
    store = VoiceStore(named_references(voices), memory_mb)
    get_logger(__name__).info("voices: %s", ", ".join(store.facts))
    # the log has no word of what clients send
    for room in ("models.synthesizer", "processors"):
        get_logger(room).setLevel(logging.ERROR)
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)  # where it listens
    uvicorn.Server(server_config(store, limits, host, port)).run()


def _check_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another --port or"
            " --host"
        ) from error
