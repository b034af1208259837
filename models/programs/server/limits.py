"""Limits of a server: tokens, size and time of requests, the queue, clients that leave; counters.

uvicorn reads a body of any size and waits for a slow client without end.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol

from models.programs.server.requests import ApiError
from utils.logging import get_logger

_OPEN_PATHS = ("/", "/speech.js", "/health")  # without a token
_RETRY_AFTER_S = 2
_SWITCHED = 101  # to a WebSocket
CLIENT_LEFT = 499  # the status that nginx logs; it is not sent


@dataclass(frozen=True)
class Limits:
    """What a client may ask for."""

    token: str | None = None  # that clients send; None: they need none
    queue: int = 128  # requests that wait or are served at a time
    # from a request's body to the end of its response, which a client may read as it is heard
    deadline_s: float = 600.0
    patience_s: float = 10.0  # for the headers of a request, and for its body
    body_bytes: int = 64 * 1024


@dataclass
class Counters:
    """What the server has done since its start."""

    requests: Counter[int] = field(default_factory=Counter)  # by status
    active: int = 0  # requests for speech that wait or are served
    sound_s: float = 0.0
    synthesis_s: float = 0.0

    @contextmanager
    def place(self, limits: Limits) -> Iterator[None]:
        """Holds a place in the queue; refuses one that is full."""
        if self.active >= limits.queue:
            message = f"{limits.queue} requests are waiting; try again later"
            raise ApiError(503, message, headers={"Retry-After": str(_RETRY_AFTER_S)})
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    def text(self, *, n_open: int, open_mb: float) -> str:
        """Returns all counters in the format of Prometheus."""
        values = {
            "requests_active": self.active,
            "sound_seconds_total": self.sound_s,
            "synthesis_seconds_total": self.synthesis_s,
            "voices_open": n_open,
            "voices_bytes": open_mb * 1e6,
        }
        for status, n in sorted(self.requests.items()):
            values[f'requests_total{{status="{status}"}}'] = n
        return "".join(f"arion_{name} {value}\n" for name, value in values.items())


class Guard:
    """ASGI middleware that refuses what exceeds the limits, and ends work that nobody waits for."""

    def __init__(self, app: ASGIApp, limits: Limits, counters: Counters) -> None:
        self._app = app
        self._limits = limits
        self._counters = counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request, or the messages of a WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        status, start = 0, time.monotonic()

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            if message["type"] == "websocket.accept":
                status = _SWITCHED
            elif message["type"] == "websocket.close":
                status = max(message["code"] - 4000, status) or 404  # no such route
            await send(message)

        try:
            await self._serve(scope, receive, noted)
        except ApiError as error:
            if status == 0:
                await error.response()(scope, receive, send)
            elif scope["type"] == "websocket" and error.status != CLIENT_LEFT:
                await error.end(send)
            # else: the response ends early, which the client notices
            status = error.status
        except WebSocketDisconnect:
            status = CLIENT_LEFT
        finally:
            self._counters.requests[status] += 1
            took_s = time.monotonic() - start
            line = (scope.get("method", "WS"), scope["path"], status, took_s)
            get_logger(__name__).info("%s %r %d, %.2f s", *line)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check_token(scope)
        inbox: asyncio.Queue[Message] = asyncio.Queue()  # of a WebSocket
        given: Receive = inbox.get
        if scope["type"] == "websocket":
            _check_origin(scope)
        else:
            given = _whole(await self._body(receive))
            if scope["method"] != "POST":
                await self._app(scope, given, send)
                return
        with self._counters.place(self._limits):
            await self._run(self._app(scope, given, send), self._until_gone(receive, inbox))

    def _check_token(self, scope: Scope) -> None:
        token = self._limits.token
        if token is None or scope["path"] in _OPEN_PATHS:
            return
        authorization = dict(scope["headers"]).get(b"authorization", b"")
        if not secrets.compare_digest(authorization, f"Bearer {token}".encode()):
            message = "this server needs its token as the API key"
            raise ApiError(401, message, headers={"WWW-Authenticate": "Bearer"})

    async def _body(self, receive: Receive) -> bytes:
        """Returns the whole body."""
        try:
            return await asyncio.wait_for(self._read(receive), self._limits.patience_s)
        except asyncio.TimeoutError:
            message = f"the body did not arrive within {self._limits.patience_s:g} s"
            raise ApiError(408, message, headers={"Connection": "close"}) from None

    async def _read(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ApiError(CLIENT_LEFT, "the client left")
            body += message.get("body", b"")
            if len(body) > self._limits.body_bytes:
                reason = f"the body is longer than {self._limits.body_bytes} bytes"
                raise ApiError(413, reason, headers={"Connection": "close"})
            if not message.get("more_body"):
                return bytes(body)

    async def _until_gone(self, receive: Receive, inbox: asyncio.Queue[Message]) -> None:
        """Passes messages on until the client leaves."""
        n_bytes = 0
        while not (message := await receive())["type"].endswith(".disconnect"):
            n_bytes += len(message.get("text") or message.get("bytes") or "")
            if n_bytes > self._limits.body_bytes:
                raise ApiError(413, f"the messages have over {self._limits.body_bytes} bytes")
            inbox.put_nowait(message)

    async def _run(self, response: Awaitable[None], until_gone: Awaitable[None]) -> None:
        """Runs the app until it ends, its time is over, or the client leaves."""
        work, gone = asyncio.ensure_future(response), asyncio.ensure_future(until_gone)
        try:
            done, _ = await asyncio.wait(
                (work, gone), timeout=self._limits.deadline_s, return_when=asyncio.FIRST_COMPLETED
            )
            if work in done:
                work.result()
            elif gone in done:
                gone.result()
                raise ApiError(CLIENT_LEFT, "the client left")
            else:
                message = f"not done within {self._limits.deadline_s:g} s; send a shorter text"
                raise ApiError(504, message)
        finally:
            work.cancel()
            gone.cancel()


def _whole(body: bytes) -> Receive:
    """Gives the app a body that has arrived; whether the client left is the guard's concern."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop()

    return receive


def _check_origin(scope: Scope) -> None:
    """Refuses pages of other sites, which browsers let open WebSockets."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin")
    if origin is not None and origin.split(b"://")[-1] != headers.get(b"host"):
        raise ApiError(403, "pages of other sites are not served")


def protocol_with_patience(patience_s: float) -> type[H11Protocol]:
    """Returns uvicorn's protocol that ends connections whose headers do not arrive in time."""

    class PatientProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._timer = self.loop.call_later(patience_s, self._give_up)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            is_websocket = self.transport.get_protocol() is not self
            if is_websocket or (self.cycle is not None and not self.cycle.response_complete):
                self._timer.cancel()
            elif self._timer.cancelled():
                self._timer = self.loop.call_later(patience_s, self._give_up)

        def connection_lost(self, exc: Exception | None) -> None:
            self._timer.cancel()
            super().connection_lost(exc)

        def _give_up(self) -> None:
            answer = (
                b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            )
            self.transport.write(answer)
            self.transport.close()

    return PatientProtocol
