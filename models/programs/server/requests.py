"""Requests for speech: fields as of OpenAI, errors in its JSON shape, limits, and counters."""

import asyncio
import json
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

import anyio
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol

from config.checks import CONTROL_RANGE, MAX_SEED, MAX_STEPS, MAX_TEMPERATURE
from processors.text.markup import Format
from utils.logging import get_logger

MAX_CHARACTERS = 4096  # as of OpenAI's endpoint
# names that clients send where the voice decides everything
ModelName = Literal["arion", "tts-1", "tts-1-hd", "gpt-4o-mini-tts"]
Request = TypeVar("Request", bound=BaseModel)
Headers = Mapping[str, str] | None  # of a response
_Word = Annotated[str, Field(min_length=1, max_length=100)]
_Said = Annotated[str, Field(min_length=1, max_length=300)]
Factor = Annotated[float, Field(ge=CONTROL_RANGE[0], le=CONTROL_RANGE[1])]
_OPEN_PATHS = ("/", "/speech.js", "/health")  # without a token
_RETRY_AFTER_S = 2
_SWITCHED = 101  # to a WebSocket
CLIENT_LEFT = 499  # the status that nginx logs; it is not sent
_TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class ApiError(Exception):
    """A request that is refused."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, headers: Headers = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self._headers = headers
        kind = "server_error" if status >= 500 else "invalid_request_error"
        self._error = {"message": message, "type": kind, "param": param, "code": None}

    def response(self) -> Response:
        """Returns the error in ASCII, since a request may hold what is no Unicode."""
        body = json.dumps({"error": self._error})
        return Response(body, self.status, self._headers, "application/json")

    async def end(self, send: Send) -> None:
        """Ends a WebSocket with the error; the code of its end is 4000 more than the status."""
        text = json.dumps(self._error | {"type": "error"})
        await send({"type": "websocket.send", "text": text})
        await send({"type": "websocket.close", "code": 4000 + self.status})


class SpeechRequest(BaseModel):
    """What is to be spoken, and how."""

    model_config = ConfigDict(extra="forbid")

    model: ModelName
    input: Annotated[str, Field(max_length=MAX_CHARACTERS)]
    voice: str  # NAME, NAME/SPEAKER, or a SPEAKER that only one voice has
    instructions: str | None = None  # ignored
    response_format: Literal["mp3", "opus", "flac", "wav", "pcm"] = "mp3"
    speed: Annotated[float, Field(ge=0.25, le=4)] = 1.0
    stream_format: Literal["audio", "sse"] = "audio"
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 0
    language: str | None = None  # espeak code: the default or first speaker of this language
    speaker: str | None = None
    pitch: Factor = 1.0
    energy: Factor = 1.0
    # of voices with a flow; null: those of the voice
    steps: Annotated[int | None, Field(ge=1, le=MAX_STEPS)] = None
    temperature: Annotated[float | None, Field(ge=0, le=MAX_TEMPERATURE)] = None
    format: Format = "auto"  # of the input
    ssml: bool = False  # the same as format "ssml"
    strict: bool = False  # refuse SSML that is not understood, instead of mending it
    # words and how they are said, before the entries of --lexicon
    lexicon: Annotated[dict[_Word, _Said], Field(max_length=500)] | None = None
    timestamps: bool = False  # of words, and marks of SSML, in the events of "sse"
    subtitles: Literal["srt", "vtt"] | None = None  # a file's content, in the last event of "sse"

    @model_validator(mode="after")
    def _check(self) -> "SpeechRequest":
        if self.stream_format != "sse" and (self.timestamps or self.subtitles):
            raise ValueError('timestamps and subtitles need stream_format "sse"')
        return self


def validated(kind: type[Request], fields: Mapping[str, object]) -> Request:
    """Returns a request of some fields; raises ApiError for the first that is wrong."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors()]
        raise explained(faults, fields) from error


def explained(faults: list[Any], body: object) -> ApiError:
    """Returns the error for the first fault that FastAPI detected in a body."""
    fault = faults[0]
    if isinstance(fault.get("input"), bytes):  # not read as JSON, so that other sites cannot ask
        return ApiError(400, "the body: send it with the header Content-Type: application/json")
    if fault["type"] == "json_invalid":
        error = json.JSONDecodeError(fault["ctx"]["error"], str(body), fault["loc"][-1])
        return ApiError(400, f"the body is not JSON: {error}")
    names = [part[:40] for part in fault["loc"][1:] if isinstance(part, str)]  # lexicon, its word
    name = next(iter(names), None)
    value = fault.get("input")
    shown = f"; found {str(value)[:80]!r}" if isinstance(value, str | int | float) else ""
    if fault["type"] == "string_too_long":
        shown = f"; found {len(str(value))}"
    remedy = "; the voice decides how it sounds, so send 'arion'" if name == "model" else ""
    message = f"{': '.join(names) or 'the body'}: {fault['msg']}{shown}{remedy}"
    return ApiError(400, message, param=name)


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
    """ASGI middleware that refuses what exceeds the limits, and ends work that no client awaits.

    uvicorn itself reads a body of any size, and waits for a slow client without end.
    """

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
        self._check_client(scope)
        inbox: asyncio.Queue[Message] = asyncio.Queue()  # messages for the app
        if scope["type"] == "http":  # the app gets the whole body
            message = {"type": "http.request", "body": await self._body(receive)}
            inbox.put_nowait(message | {"more_body": False})
        if scope.get("method", "POST") != "POST":
            await self._app(scope, inbox.get, send)
            return
        with self._counters.place(self._limits):
            response = self._app(scope, inbox.get, send)
            await self._run(response, self._until_gone(receive, inbox))

    def _check_client(self, scope: Scope) -> None:
        """Refuses clients without the token, and pages of other sites that open WebSockets."""
        headers, token = dict(scope["headers"]), self._limits.token
        if token is not None and scope["path"] not in _OPEN_PATHS:
            authorization = headers.get(b"authorization", b"")
            if not secrets.compare_digest(authorization, f"Bearer {token}".encode()):
                message = "this server needs its token as the API key"
                raise ApiError(401, message, headers={"WWW-Authenticate": "Bearer"})
        origin = headers.get(b"origin") if scope["type"] == "websocket" else None
        if origin is not None and origin.split(b"://")[-1] != headers.get(b"host"):
            raise ApiError(403, "pages of other sites are not served")

    async def _body(self, receive: Receive) -> bytes:
        body, limits, has_more = bytearray(), self._limits, True
        try:
            with anyio.fail_after(limits.patience_s):
                while has_more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ApiError(CLIENT_LEFT, "the client left")
                    body += message.get("body", b"")
                    if len(body) > limits.body_bytes:
                        reason = f"the body is longer than {limits.body_bytes} bytes"
                        raise ApiError(413, reason, headers={"Connection": "close"})
                    has_more = message.get("more_body", False)
        except TimeoutError:
            reason = f"the body did not arrive within {limits.patience_s:g} s"
            raise ApiError(408, reason, headers={"Connection": "close"}) from None
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
            # their errors are those of a client that left
            await asyncio.gather(work, gone, return_exceptions=True)


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
            self.transport.write(_TIMED_OUT)
            self.transport.close()

    return PatientProtocol
