"""Speech by espeak-ng with the times of its phones, from the library inside espeakng-loader.

espeak_Synth calls a function with samples and events; types and numbers are those of espeak-ng's
`speak_lib.h`. The library keeps its state in one place: one voice at a time, in one thread.
"""

import ctypes
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from utils.errors import InputError

WORD, PHONE = 1, 7  # types of events
_LAST_EVENT = 0
_SYNCHRONOUS = 2  # espeak_Synth returns after the synthesis
_PHONE_EVENTS, _IN_IPA = 1, 2
_UTF8 = 1


class Event(NamedTuple):
    """A word or phone that begins at a sample.

    Attributes:
        kind: `WORD` or `PHONE`.
        sample: When.
        place: Of a word: of its first character in the text.
        name: Of a phone, in IPA with stress, eight bytes at most; empty: silence.
    """

    kind: int
    sample: int
    place: int
    name: str


class Speech(NamedTuple):
    """Synthesised speech."""

    wav: np.ndarray  # (S,) int16
    sample_rate: int
    events: tuple[Event, ...]


class _Id(ctypes.Union):
    _fields_ = (
        ("number", ctypes.c_int),
        ("name", ctypes.c_void_p),
        ("string", ctypes.c_ubyte * 8),  # without an end where all are needed
    )


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),  # of a character, from 1
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),  # ms
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _Id),
    )


_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)


def speak(text: str, voice: str) -> Speech:
    """Synthesises a text.

    Args:
        text: Of any length.
        voice: Its name, such as "en-us", or with a variant "de+f1".

    Raises:
        InputError: If espeak has no such voice, or does not speak the text.
    """
    library, sample_rate = _library()
    if library.espeak_SetVoiceByName(voice.encode()) != 0:
        raise InputError(f"espeak has no voice '{voice}'")
    pieces: list[np.ndarray] = []
    events: list[Event] = []

    def hear(samples: Any, count: int, first: Any) -> int:
        if count > 0:
            pieces.append(np.ctypeslib.as_array(samples, (count,)).copy())
        events.extend(_read(first))
        return 0

    callback = _Callback(hear)
    library.espeak_SetSynthCallback(callback)
    content = text.encode()
    failed = library.espeak_Synth(content, len(content) + 1, 0, 0, 0, _UTF8, None, None)
    if failed or not pieces:
        raise InputError(f"espeak ({voice}) does not speak {text[:80]!r}")
    return Speech(np.concatenate(pieces), sample_rate, tuple(events))


def _read(events: Any) -> Iterator[Event]:
    """Words and phones of a list of events that ends with one of type 0."""
    for event in events:
        if event.type == _LAST_EVENT:
            return
        if event.type in (WORD, PHONE):
            name = bytes(event.id.string).partition(b"\0")[0] if event.type == PHONE else b""
            yield Event(
                event.type, event.sample, event.text_position - 1, name.decode(errors="ignore")
            )


@cache
def _library() -> tuple[ctypes.CDLL, int]:
    """The library, ready to speak, and its sample rate in Hz."""
    import espeakng_loader

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    sample_rate = library.espeak_Initialize(
        _SYNCHRONOUS, 0, espeakng_loader.get_data_path().encode(), _PHONE_EVENTS | _IN_IPA
    )
    if sample_rate <= 0:
        raise InputError("espeak-ng does not start; install espeakng-loader again")
    return library, sample_rate
