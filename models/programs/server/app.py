"""The server and its routes: speech, models, voices, health, metrics, and the page."""

import asyncio
import base64
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, get_args

import numpy as np
import torch
import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp
from starlette.websockets import WebSocket
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from models.programs.page import PAGE
from models.programs.server.requests import (
    ApiError,
    Counters,
    Guard,
    Limits,
    ModelName,
    SpeechRequest,
    explained,
    protocol_with_patience,
)
from models.programs.server.streams import Address, speak_stream, wyoming_server
from models.programs.server.voices import VoiceStore, named_references
from models.synthesizer.settings import Settings
from models.synthesizer.speech import SpeechStream
from models.synthesizer.synthesizer import Synthesizer
from processors.audio.streams import FORMATS, encoded, stream_delay_s
from processors.durations.subtitles import subtitles
from processors.records import later
from processors.text.markup.formats import Markup
from processors.text.pronunciations import Dictionary
from utils.errors import InputError
from utils.logging import get_logger

T = TypeVar("T")
_SPEECH = Path(__file__).with_name("static") / "speech.js"
_HEADERS = {  # of the page
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; media-src blob:;"
    " script-src 'self' 'unsafe-inline'; connect-src 'self' blob:; img-src data:",
    "X-Frame-Options": "DENY",
}


def build_app(voices: VoiceStore, limits: Limits, wyoming: Address | None = None) -> ASGIApp:
    """Builds the server, which also speaks the Wyoming protocol at another address if given."""
    counters = Counters()
    synthesis = _Synthesis(voices, counters)

    @asynccontextmanager
    async def lifespan(_api: FastAPI) -> AsyncIterator[None]:
        async with wyoming_server(wyoming, voices, synthesis.speak, limits, counters):
            yield

    api = FastAPI(title="Arion", docs_url=None, redoc_url=None, lifespan=lifespan)
    _add_speech(api, voices, synthesis, limits.patience_s)
    _add_descriptions(api, voices, counters)
    for error in (ApiError, InputError, RequestValidationError, HTTPException, Exception):
        api.add_exception_handler(error, _refused)
    return Guard(api, limits, counters)


def _add_speech(
    api: FastAPI, voices: VoiceStore, synthesis: "_Synthesis", patience_s: float
) -> None:
    @api.post("/v1/audio/speech")
    async def speech(request: SpeechRequest) -> Response:
        """Streams the speech of a request."""
        request = voices.resolved(request)
        # held to the end of the request: what still speaks counts as memory
        voice = await synthesis.in_thread(voices.get, request.voice)
        sound = synthesis.speak(request)
        first = await anext(sound)  # wrong texts are refused before the response begins
        headers = {} if request.instructions is None else {"X-Arion-Ignored": "instructions"}
        if voice.tag:
            headers["X-Arion-Synthetic"] = voice.tag
        sse = request.stream_format == "sse"
        media_type = "text/event-stream" if sse else FORMATS[request.response_format].media_type

        async def body() -> AsyncIterator[bytes]:
            yield first
            async for part in sound:
                yield part

        return StreamingResponse(body(), 200, headers, media_type)

    @api.websocket("/v1/audio/speech/stream")
    async def speech_stream(socket: WebSocket) -> None:
        try:
            await speak_stream(socket, voices, synthesis.speak, patience_s)
        except (ApiError, InputError) as error:
            refusal = error if isinstance(error, ApiError) else ApiError(400, str(error))
            await refusal.end(socket.send)


def _add_descriptions(api: FastAPI, voices: VoiceStore, counters: Counters) -> None:
    page, script = (path.read_text(encoding="utf-8") for path in (PAGE, _SPEECH))

    @api.get("/")
    async def show_page() -> Response:
        return HTMLResponse(page, headers=_HEADERS)

    @api.get("/speech.js")
    async def show_script() -> Response:
        return Response(script, media_type="text/javascript")

    @api.get("/v1/models")
    async def models() -> dict[str, Any]:
        row = {"object": "model", "created": 0, "owned_by": "arion"}
        return {"object": "list", "data": [{"id": name, **row} for name in get_args(ModelName)]}

    @api.get("/v1/audio/voices")
    async def list_voices() -> dict[str, Any]:
        return {"object": "list", "data": [*voices.rows()]}

    @api.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @api.get("/metrics")
    async def show_metrics() -> Response:
        text = counters.text(n_open=voices.n_open, open_mb=voices.open_mb)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


async def _refused(_request: Request, error: Exception) -> Response:
    """Returns the response to a request that failed."""
    match error:
        case RequestValidationError():
            error = explained(list(error.errors()), error.body)
        case InputError():
            error = ApiError(400, str(error))
        case HTTPException():
            error = ApiError(error.status_code, error.detail, headers=error.headers)
    if not isinstance(error, ApiError):
        error = ApiError(500, "internal error; the server's log has the reason")
    return error.response()


class _Synthesis:
    """Synthesises for all requests in few threads, piece by piece in turn.

    On a CPU one thread leaves cores idle between the operations of PyTorch, and two give more sound
    per second. A GPU computes for one at a time. A request that no one waits for any more is
    dropped after its current piece.
    """

    def __init__(self, voices: VoiceStore, counters: Counters) -> None:
        self._voices = voices
        self._counters = counters
        self._lock = Lock()  # of the counters
        n_threads = 1 if torch.cuda.is_available() else 2
        self._threads = ThreadPoolExecutor(n_threads, "synthesis")

    async def speak(self, request: SpeechRequest, *, pause: bool = False) -> AsyncIterator[bytes]:
        """Yields the body of the response."""
        # held to the end of the request: what still speaks counts as memory
        voice = await self.in_thread(self._voices.get, request.voice)
        parts = await self.in_thread(self._parts, voice, request, pause)
        while (part := await self.in_thread(next, parts, None)) is not None:
            if part:
                yield part

    async def in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        def timed() -> T:
            start = time.monotonic()
            try:
                return function(*arguments)
            finally:
                with self._lock:
                    self._counters.synthesis_s += time.monotonic() - start

        return await asyncio.get_running_loop().run_in_executor(self._threads, timed)

    def _parts(self, voice: Synthesizer, request: SpeechRequest, pause: bool) -> Iterator[bytes]:
        """Returns parts of the body, each after a piece of the wav; some are empty."""
        format = "ssml" if request.ssml else request.format
        text = Markup(request.input, format, request.strict)
        pieces = voice.generate(text, _settings(request, voice))
        mel, sample_rate = voice.model.mel, voice.model.mel.sample_rate
        pause_s = voice.config.inference.sentence_pause_s / request.speed if pause else 0
        silence = np.zeros(round(pause_s / mel.frame_s) * mel.hop_length, dtype=np.float32)
        counted = self._counted(chain([silence] if pause else [], pieces), sample_rate)
        data = encoded(counted, request.response_format, sample_rate, voice.tag)
        delay_s = stream_delay_s(request.response_format, sample_rate)
        return _events(data, pieces, request, delay_s) if request.stream_format == "sse" else data

    def _counted(self, pieces: Iterator[np.ndarray], sample_rate: int) -> Iterator[np.ndarray]:
        for piece in pieces:
            with self._lock:
                self._counters.sound_s += len(piece) / sample_rate
            yield piece


def _settings(request: SpeechRequest, voice: Synthesizer) -> Settings:
    speaker = request.speaker
    if request.language is not None:
        speakers = [s for s in voice.speakers if request.speaker in (None, s.name)]
        spoken = [s.name for s in speakers if s.language == request.language]
        if not spoken:
            languages = ", ".join(sorted({s.language for s in speakers}))
            message = f"language: not {request.language!r}; this voice speaks {languages}"
            raise ApiError(400, message, param="language")
        speaker = voice.default_speaker if voice.default_speaker in spoken else spoken[0]
    return Settings(
        speaker=speaker,
        pitch_control=request.pitch,
        energy_control=request.energy,
        steps=request.steps,
        temperature=request.temperature,
        lexicon=request.lexicon,
        duration_control=1 / request.speed,
        seed=request.seed,
    )


def _events(
    data: Iterator[bytes], stream: SpeechStream, request: SpeechRequest, delay_s: float
) -> Iterator[bytes]:
    """Yields server-sent events: sound in base64, and the words that begin in it if asked for."""
    n_words = n_marks = 0  # that were sent
    for sound in data:
        event: dict[str, Any] = {"type": "speech.audio.delta"}
        event["audio"] = base64.b64encode(sound).decode()
        if request.timestamps:
            words, spans = later(stream.words[n_words:], delay_s), stream.spans[n_words:]
            n_words = len(stream.words)
            event["words"] = [{"word": w.text, "start": w.start_s, "end": w.end_s} for w in words]
            for row, span in zip(event["words"], spans, strict=False):
                row["span"] = span
            event |= _marks(stream, n_marks, delay_s)
            n_marks = len(stream.marks)
        yield _event(event) if sound or event.get("words") or event.get("marks") else b""
    n = len(request.input)  # characters: there are no tokens
    usage = {"input_tokens": n, "output_tokens": 0, "total_tokens": n}
    done: dict[str, Any] = {"type": "speech.audio.done", "usage": usage}
    if request.timestamps:
        done |= _marks(stream, n_marks, delay_s)
    if request.subtitles is not None:
        times = later(stream.sentences, delay_s), later(stream.words, delay_s)
        done["subtitles"] = subtitles(*times, request.subtitles)
    yield _event(done)


def _marks(stream: SpeechStream, n_sent: int, delay_s: float) -> dict[str, Any]:
    rows = [{"mark": mark.name, "time": mark.time_s + delay_s} for mark in stream.marks[n_sent:]]
    return {"marks": rows} if rows else {}


def _event(event: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()


class _WebSockets(WebSocketsSansIOProtocol):
    """WebSocket protocol of uvicorn that logs no error after a refused handshake."""

    async def send(self, message: Any) -> None:  # noqa: ANN401  (as of uvicorn)
        await super().send(message)
        self.handshake_complete |= message["type"] == "websocket.http.response.body"


def server_config(
    voices: VoiceStore, limits: Limits, host: str, port: int, wyoming: Address | None = None
) -> uvicorn.Config:
    """Returns the configuration of uvicorn."""
    return uvicorn.Config(
        build_app(voices, limits, wyoming),
        host,
        port,
        http=protocol_with_patience(limits.patience_s),
        ws=_WebSockets,
        ws_max_size=limits.body_bytes,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=round(limits.deadline_s),
    )


def serve(
    voices: Sequence[str],
    limits: Limits,
    *,
    host: str,
    port: int,
    memory_mb: float,
    wyoming: Address | None = None,
    lexicon: Dictionary | None = None,
    tagged: bool = True,
) -> None:
    """Serves voices; SIGTERM and SIGINT let running requests end first."""
    _check_free(host, port, "--port or --host")
    if wyoming is not None:
        _check_free(*wyoming, "--wyoming")
    store = VoiceStore(partial(named_references, voices), memory_mb, lexicon, tagged=tagged)
    get_logger(__name__).info("voices: %s", ", ".join(store.descriptions))
    # the log has no word of what clients send, and a damaged voice is named at the start only
    for room in ("models.voices", "models.synthesizer", "processors"):
        get_logger(room).setLevel(logging.ERROR)
    logging.getLogger("uvicorn.error").setLevel(logging.INFO)  # where it listens
    uvicorn.Server(server_config(store, limits, host, port, wyoming)).run()


def _check_free(host: str, port: int, flags: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another {flags}"
        ) from error
