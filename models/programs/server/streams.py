"""Text that streams in over a WebSocket, spoken sentence by sentence.

The messages are those of vllm-omni and sglang-omni.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Literal, Protocol

from starlette.websockets import WebSocket

from models.programs.server.requests import (
    MAX_CHARACTERS,
    ApiError,
    ModelName,
    SpeechRequest,
    validated,
)
from models.programs.server.voices import VoiceStore
from processors.audio.streams import FORMATS
from processors.text.reading import SentenceStream

_EXPECTED = '{"type": "input.text", "text": "..."} or {"type": "input.done"}'


class Speak(Protocol):
    """Speaks a request, after a pause between sentences or without."""

    def __call__(self, request: SpeechRequest, *, pause: bool = False) -> AsyncIterator[bytes]:
        """Yields the sound in the format of the request."""


class SessionConfig(SpeechRequest):
    """The first message: a request without its text, which is plain."""

    type: Literal["session.config"]
    model: ModelName = "arion"
    input: str = ""
    response_format: Literal["mp3", "opus", "flac", "wav", "pcm"] = "wav"
    stream_format: Literal["audio"] = "audio"
    format: Literal["text"] = "text"
    ssml: Literal[False] = False
    stream_audio: bool = False  # several frames for each sentence, instead of one
    split_granularity: Literal["sentence"] = "sentence"


class StreamedText:
    """The sentences of a text in parts, which may be as long as that of a request."""

    def __init__(self) -> None:
        self._stream = SentenceStream()
        self._n_characters = 0

    def add(self, text: str | None) -> list[str]:
        """Returns the sentences that a part of the text, or its end (None), completes."""
        if text is None:
            return self._stream.rest()
        self._n_characters += len(text)
        if self._n_characters > MAX_CHARACTERS:
            raise ApiError(400, f"input: more than {MAX_CHARACTERS} characters", param="input")
        return self._stream.add(text)


async def speak_stream(
    socket: WebSocket, voices: VoiceStore, speak: Speak, patience_s: float
) -> None:
    """Speaks the text that a client sends, until it is done; the first message is due in time."""
    await socket.accept()
    config, sentences = await _config(socket, patience_s), StreamedText()
    request = voices.resolved(config)
    rates = FORMATS["pcm"].rates if config.response_format == "pcm" else ()
    rate = rates[0] if rates else voices.descriptions[request.voice].sample_rate
    n_sentences = 0
    text: str | None = ""
    while text is not None:
        text = _text(await _message(socket))
        for sentence in sentences.add(text):
            about = {"sentence_index": n_sentences, "sentence_text": sentence}
            start = {"type": "audio.start", **about, "format": config.response_format}
            await socket.send_json({**start, "sample_rate": rate})
            sound = speak(request.model_copy(update={"input": sentence}), pause=n_sentences > 0)
            n_bytes = 0
            async for frame in sound if config.stream_audio else _in_one(sound):
                await socket.send_bytes(frame)
                n_bytes += len(frame)
            done = {"type": "audio.done", "sentence_index": n_sentences, "total_bytes": n_bytes}
            await socket.send_json(done)
            n_sentences += 1
    await socket.send_json({"type": "session.done", "total_sentences": n_sentences})
    await socket.close()


async def _in_one(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield b"".join([part async for part in parts])


async def _config(socket: WebSocket, patience_s: float) -> SessionConfig:
    """Receives the first message."""
    try:
        message = await asyncio.wait_for(_message(socket), patience_s)
    except asyncio.TimeoutError:
        raise ApiError(408, f"no session.config arrived within {patience_s:g} s") from None
    return validated(SessionConfig, message)


async def _message(socket: WebSocket) -> dict[str, Any]:
    text = (await socket.receive()).get("text") or ""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise ApiError(400, f"the message {text[:80]!r} is no JSON object; expected {_EXPECTED}")
    return message


def _text(message: dict[str, Any]) -> str | None:
    """Returns the text of a message; None at its end."""
    match message:
        case {"type": "input.text", "text": str(text)}:
            return text
        case {"type": "input.done"}:
            return None
    raise ApiError(400, f"the message {str(message)[:80]!r} is unknown; expected {_EXPECTED}")
