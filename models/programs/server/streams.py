"""Text that streams in, spoken sentence by sentence: over a WebSocket, and by the Wyoming protocol.

The messages of the WebSocket are those of vllm-omni and sglang-omni. By the Wyoming protocol, Home
Assistant asks for speech over TCP; a text may also come whole.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Literal, Protocol

import anyio
from starlette.websockets import WebSocket
from wyoming import tts
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, Eventable
from wyoming.info import Attribution, Describe, Info, TtsProgram, TtsVoice, TtsVoiceSpeaker
from wyoming.server import AsyncEventHandler, AsyncTcpServer

from models.programs.server.requests import (
    MAX_CHARACTERS,
    ApiError,
    Counters,
    Limits,
    ModelName,
    SpeechRequest,
    validated,
)
from models.programs.server.voices import VoiceStore
from processors.audio.streams import FORMATS
from processors.text.reading import SentenceStream
from utils import __version__
from utils.errors import InputError
from utils.logging import get_logger

_FIRST = '{"type": "session.config", "voice": "..."} first'
_EXPECTED = '{"type": "input.text", "text": "..."} or {"type": "input.done"}'
Address = tuple[str, int]  # host and port
_SOUND: dict[str, Any] = {"rate": FORMATS["pcm"].rates[0], "width": 2, "channels": 1}
_ORIGIN: dict[str, Any] = {
    "attribution": Attribution("Arion", ""),
    "installed": True,
    "version": __version__,
}


class Speak(Protocol):
    """Speaks a request, after a pause between sentences or without."""

    def __call__(self, request: SpeechRequest, *, pause: bool = False) -> AsyncIterator[bytes]:
        """Yields the sound in the format of the request."""


class SessionConfig(SpeechRequest):
    """The first message: a request without its text, which is plain."""

    type: Literal["session.config"]
    model: ModelName = "arion"
    input: Literal[""] = ""  # text comes in messages input.text
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
    try:
        with anyio.fail_after(patience_s):  # wait_for can lose a cancellation before Python 3.12
            message = await _message(socket, _FIRST)
    except TimeoutError:
        raise ApiError(408, f"no session.config arrived within {patience_s:g} s") from None
    if message.get("type") != "session.config":
        raise ApiError(400, f"the message {str(message)[:80]!r} is too early; expected {_FIRST}")
    config, sentences = validated(SessionConfig, message), StreamedText()
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


async def _message(socket: WebSocket, expected: str = _EXPECTED) -> dict[str, Any]:
    text = (await socket.receive()).get("text")
    if text is None:
        raise ApiError(400, f"a binary message; expected {expected}")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise ApiError(400, f"the message {text[:80]!r} is no JSON object; expected {expected}")
    return message


def _text(message: dict[str, Any]) -> str | None:
    """Returns the text of a message; None at its end."""
    match message:
        case {"type": "input.text", "text": str(text)}:
            return text
        case {"type": "input.done"}:
            return None
    raise ApiError(400, f"the message {str(message)[:80]!r} is unknown; expected {_EXPECTED}")


@asynccontextmanager
async def wyoming_server(
    address: Address | None, voices: VoiceStore, speak: Speak, limits: Limits, counters: Counters
) -> AsyncIterator[None]:
    """Serves voices at an address, if there is one, until the end of the block."""
    if address is None:
        yield
        return
    server = AsyncTcpServer(*address)
    await server.start(partial(_Handler, voices, speak, limits, counters))
    get_logger(__name__).info("Wyoming protocol on %s, port %d", *address)
    try:
        yield
    finally:
        await server.stop()


class _LimitedReader(asyncio.StreamReader):
    """A reader of events that are no longer than the body of a request."""

    def __init__(self, reader: asyncio.StreamReader, limit: int) -> None:
        self._reader, self._most = reader, limit

    async def readline(self) -> bytes:
        return await self._reader.readline()

    async def readexactly(self, n: int) -> bytes:
        if n > self._most:
            raise ValueError  # which ends the connection
        return await self._reader.readexactly(n)

    def feed_eof(self) -> None:
        self._reader.feed_eof()


class _Handler(AsyncEventHandler):
    """Answers the events of one client."""

    def __init__(
        self,
        voices: VoiceStore,
        speak: Speak,
        limits: Limits,
        counters: Counters,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        super().__init__(_LimitedReader(reader, limits.body_bytes), writer)
        self._voices, self._speak = voices, speak
        self._limits, self._counters = limits, counters
        self._text: StreamedText | None = None  # that streams in
        self._voice: tts.SynthesizeVoice | None = None  # that speaks it
        self._n_sentences = 0  # of it that were spoken

    async def run(self) -> None:
        """Answers until the client leaves, or sends what are no events."""
        with suppress(ConnectionError, EOFError, AttributeError, TypeError):
            await super().run()

    async def handle_event(self, event: Event) -> bool:
        """Answers an event; an error is an answer, too."""
        try:
            await asyncio.wait_for(self._answer(event), self._limits.deadline_s)
            return True
        except asyncio.TimeoutError:
            message = f"not done within {self._limits.deadline_s:g} s; send a shorter text"
        except (ApiError, InputError) as error:
            message = str(error)
        except KeyError as error:
            message = f"{event.type}: {error} is missing"
        self._text = None
        await self._send(Error(message))
        return True

    async def _answer(self, event: Event) -> None:
        if Describe.is_type(event.type):
            await self._send(self._info())
        # a text that streams in comes as a whole, too, for servers that cannot stream
        elif tts.Synthesize.is_type(event.type) and self._text is None:
            asked = tts.Synthesize.from_event(event)
            await self._say(asked.voice, asked.text, event.data.get("text_format") or "auto")
        elif tts.SynthesizeStart.is_type(event.type):
            self._voice = tts.SynthesizeStart.from_event(event).voice
            self._text, self._n_sentences = StreamedText(), 0
        elif tts.SynthesizeChunk.is_type(event.type) and self._text is not None:
            await self._say_all(self._text.add(tts.SynthesizeChunk.from_event(event).text))
        elif tts.SynthesizeStop.is_type(event.type) and self._text is not None:
            await self._say_all(self._text.add(None))
            self._text = None
            await self._send(tts.SynthesizeStopped())

    async def _say_all(self, sentences: list[str]) -> None:
        for sentence in sentences:
            await self._say(self._voice, sentence, "text", pause=self._n_sentences > 0)
            self._n_sentences += 1

    async def _say(
        self, voice: tts.SynthesizeVoice | None, text: str, format: str, *, pause: bool = False
    ) -> None:
        fields = self._speaker(voice or tts.SynthesizeVoice()) | {"input": text, "format": format}
        fields |= {"model": "arion", "response_format": "pcm"}
        request = self._voices.resolved(validated(SpeechRequest, fields))
        with self._counters.place(self._limits):
            sound = self._speak(request, pause=pause)
            part = await anext(sound, None)  # wrong texts are refused before the sound begins
            await self._send(AudioStart(**_SOUND))
            while part is not None:
                await self._send(AudioChunk(**_SOUND, audio=part))
                part = await anext(sound, None)
            await self._send(AudioStop())

    def _speaker(self, asked: tts.SynthesizeVoice) -> dict[str, str | None]:
        """Returns the fields of a request that choose the voice: a named one, or the first.

        Of a language that no voice speaks, it is the first of another region.
        """
        if asked.name is not None:
            return {"voice": asked.name, "speaker": asked.speaker}
        language = asked.language or ""
        voices = self._voices.descriptions
        choices = [(name, code) for name in voices for code in voices[name].languages]
        exact = [choice for choice in choices if language in ("", choice[1], _tag(choice[1]))]
        base = _base(language)
        if not (choices := exact or [choice for choice in choices if _base(choice[1]) == base]):
            raise ApiError(400, f"no voice speaks {language!r}; describe lists languages")
        name, code = choices[0]
        return {"voice": name, "language": code if language or not voices[name].speaker else None}

    def _info(self) -> Info:
        """Describes the voices, and each speaker of several as a voice of its own."""
        voices = []
        for row in map(dict[str, Any], self._voices.rows()):
            about = {"name": row["id"], "description": row["id"], **_ORIGIN}
            about["languages"] = sorted({*map(_tag, row["languages"])})
            about["speakers"] = [*map(TtsVoiceSpeaker, row["speakers"])]
            voices.append(TtsVoice(**about))
        program = TtsProgram(name="arion", description="Arion", **_ORIGIN, voices=voices)
        program.supports_synthesize_streaming = True
        return Info(tts=[program])

    async def _send(self, message: Eventable) -> None:
        await self.write_event(message.event())


def _tag(code: str) -> str:
    """Returns espeak's code of a language as Home Assistant writes it: en-us is en_US."""
    language, _, region = code.partition("-")
    return f"{language}_{region[:2].upper()}" if region else language


def _base(language: str) -> str:
    """Returns a language without its region."""
    return language.replace("_", "-").partition("-")[0].lower()
