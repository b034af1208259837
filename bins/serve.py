"""Serves voices over HTTP: arion serve [VOICE ...] [flags]."""

import os
import signal

from bins._flags.values import COUNT, whole
from utils.cli import Parser, UsageError, run
from utils.errors import InputError
from utils.logging import setup_logging

_OWN_MACHINE = ("127.0.0.1", "::1", "localhost")


def main() -> None:
    """Checks the flags, then serves until a signal comes."""
    parser = Parser(
        "Serves voices as OpenAI's speech endpoint, /v1/audio/speech, and on a page, /. Voices are"
        " opened when first asked for."
    )
    add = parser.add_argument
    add("voices", nargs="*", metavar="VOICE").help = """a name that `arion voices` lists, an
        experiment, a folder of them, or org/name on the Hub; NAME=VOICE names it (default: all that
        `arion voices` lists)"""
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=whole(0, 65535).argument, default=8000, metavar="N", help="(default: 8000)")
    add("--token", default=os.environ.get("ARION_TOKEN")).help = """that clients send as their API
        key (default: $ARION_TOKEN); needed for another --host than 127.0.0.1"""
    add("--no_token", action="store_true", help="serve everyone who reaches --host")
    add("--memory", type=COUNT.argument, default=2000, metavar="MB").help = """memory of open
        voices; the least recently used ones are closed (default: %(default)s)"""
    add("--queue", type=COUNT.argument, default=128, metavar="N").help = """requests at a time;
        others get 503 (default: %(default)s)"""
    add("--deadline", type=COUNT.argument, default=600, metavar="S").help = """seconds for a
        request, also after SIGTERM (default: %(default)s)"""
    given = parser.parse_args()
    if given.token == "":
        raise UsageError("--token is empty")
    if given.token and given.no_token:
        raise UsageError("--token and --no_token exclude each other")
    if given.host not in _OWN_MACHINE and not (given.token or given.no_token):
        raise UsageError(f"--host {given.host} needs --token, or --no_token to serve everyone")
    try:
        from models.server.app import serve
        from models.server.limits import Limits
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "pydantic"):
            raise
        raise InputError(f"{error.name} is missing: pip install -e '.[serve]'") from error

    setup_logging()
    limits = Limits(given.token, given.queue, given.deadline)
    try:
        serve(given.voices, limits, host=given.host, port=given.port, memory_mb=given.memory)
    except KeyboardInterrupt as stop:  # Terminated, with its signal, or Ctrl-C: the usual end
        raise SystemExit(128 + int(*stop.args or [signal.SIGINT])) from None


if __name__ == "__main__":
    run(main)
