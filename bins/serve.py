"""Serves voices over HTTP: arion serve [VOICE ...] [flags]."""

import os
import signal

from bins._flags.parsers import program_arguments
from utils.cli import UsageError, bound_operation_caches, run
from utils.errors import InputError

_OWN_MACHINE = ("127.0.0.1", "::1", "localhost")
_PACKAGES = {"fastapi", "uvicorn", "starlette", "pydantic", "websockets", "wyoming"}


def main() -> None:
    """Checks the flags, then serves until a signal comes."""
    flags = program_arguments("serve")
    token = os.environ.get("ARION_TOKEN") if flags.token is None else flags.token
    if token == "":
        raise UsageError("--token is empty")
    if token and flags.no_token:
        raise UsageError("--token and --no_token exclude each other")
    if flags.host not in _OWN_MACHINE and not (token or flags.no_token):
        raise UsageError(f"--host {flags.host} needs --token, or --no_token to serve everyone")
    try:
        from models.programs.server.app import serve
        from models.programs.server.requests import Limits
        from processors.text.pronunciations import dictionary_of
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        raise InputError(f"{error.name} is missing: pip install -e '.[serve]'") from error

    host, _, wyoming_port = (flags.wyoming or "").rpartition(":")
    wyoming = (host.strip("[]") or "127.0.0.1", int(wyoming_port)) if wyoming_port else None
    bound_operation_caches()
    limits = Limits(token, flags.queue, flags.deadline)
    try:
        serve(
            flags.voices,
            limits,
            host=flags.host,
            port=flags.port,
            memory_mb=flags.memory,
            wyoming=wyoming,
            lexicon=dictionary_of(flags.lexicon),
            tagged=not flags.no_tags,
        )
    except KeyboardInterrupt as stop:  # Terminated, with its signal, or Ctrl-C: the usual end
        raise SystemExit(128 + int(*stop.args or [signal.SIGINT])) from None


if __name__ == "__main__":
    run(main)
