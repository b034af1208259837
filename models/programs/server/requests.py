"""Requests for speech, with OpenAI's fields and those of Arion; errors in OpenAI's JSON shape."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.responses import Response
from starlette.types import Send

from config.checks import CONTROL_RANGE, MAX_SEED, MAX_STEPS, MAX_TEMPERATURE
from processors.text.markup import Format

MAX_CHARACTERS = 4096  # as of OpenAI's endpoint
# names that clients send where the voice decides everything
ModelName = Literal["arion", "tts-1", "tts-1-hd", "gpt-4o-mini-tts"]
Request = TypeVar("Request", bound=BaseModel)
_Word = Annotated[str, Field(min_length=1, max_length=100)]
_Said = Annotated[str, Field(min_length=1, max_length=300)]
Factor = Annotated[float, Field(ge=CONTROL_RANGE[0], le=CONTROL_RANGE[1])]


class ApiError(Exception):
    """A request that is refused."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
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
    field = next((part for part in fault["loc"][1:] if isinstance(part, str)), None)
    value = fault.get("input")
    shown = f"; found {str(value)[:80]!r}" if isinstance(value, str | int | float) else ""
    remedy = "; the voice decides how it sounds, so send 'arion'" if field == "model" else ""
    message = f"{field or 'the body'}: {fault['msg']}{shown}{remedy}"
    return ApiError(400, message, param=field)
