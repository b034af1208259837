"""Teachers, programs that speak: a function, an endpoint as OpenAI's, a voice of Piper."""

import io
import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import cache, partial
from http.client import HTTPException
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import soundfile

from processors.metrics.recognition.user_models import load_function
from utils.errors import InputError, described, listed
from utils.files import read_json, read_text, user_path
from utils.logging import get_logger

_PAUSES_S = (1, 4, 16, 0)  # after a request that may succeed later
_DEADLINE_S = 600
_HIGHEST = 2  # peak, beyond which samples are of another scale
_URL = re.compile(r"https?://([\w.-]+|\[[\da-f:.]+\])(:\d{1,5})?(/[!-~]*)?", re.ASCII)
_LICENCE = re.compile(r"^.*licen[cs]e.*$", re.MULTILINE | re.IGNORECASE)


class Teacher(NamedTuple):
    """A program that speaks."""

    name: str
    speak: Callable[[str, str], Any]  # text and voice to what `checked_sound` takes, or InputError
    voices: tuple[str, ...] = ()  # where they are known


def find_teacher(reference: str, model: str | None) -> Teacher:
    """Finds `http(s)://host/v1` and its model, `voice.onnx`, or `package.module:function`."""
    if re.match("https?://", reference):
        if not model:
            raise InputError(f"{reference}: an endpoint needs --model NAME")
        if not _URL.fullmatch(reference):
            raise InputError(f"{reference!r} is no URL; expected one as http://localhost:80/v1")
        url = f"{reference.rstrip('/')}/audio/speech"
        return Teacher(f"{model} at {reference}", partial(_request, url, model))
    if model:
        raise InputError(f"{reference}: --model goes with an http(s) endpoint only")
    if not reference.endswith(".onnx"):
        return Teacher(reference, load_function(reference))
    path = user_path(reference).resolve()
    voices = tuple(_piper(path).config.speaker_id_map) or (path.stem,)
    card = path.with_name("MODEL_CARD")
    if card.is_file() and (line := _LICENCE.search(read_text(card))):
        get_logger(__name__).info("%s, perhaps not of the speech: %s", card, line[0].strip())
    return Teacher(f"Piper {path.stem}", partial(_speak_by_piper, path), voices)


def checked_sound(sound: Any) -> tuple[np.ndarray, int]:  # noqa: ANN401  # of the user's program
    """Returns a teacher's samples (S,) float32, with a peak of at most 1 or NaN, and rate."""
    expected = "the teacher must return an array of mono samples in [-1, 1], and their rate in Hz"
    try:
        samples, sample_rate = sound
        wav, rate = np.asarray(samples, dtype=np.float32), float(sample_rate)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        parts = sound if isinstance(sound, tuple) else [sound]
        types = listed([type(part).__name__ for part in parts])
        raise InputError(f"{expected}; found {types or 'an empty tuple'}") from error
    peak = float(np.abs(wav).max(initial=1))
    if wav.ndim != 1 or not 1 <= rate < inf or peak > _HIGHEST:
        raise InputError(f"{expected}; found shape {wav.shape}, peak {peak:g}, {rate:g} Hz")
    return wav / peak, int(rate)


def _request(url: str, model: str, text: str, voice: str) -> tuple[np.ndarray, int]:
    """Asks an endpoint, as OpenAI's API has it; again if it is overloaded or does not answer."""
    fields = {"model": model, "input": text, "voice": voice, "response_format": "wav"}
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("OPENAI_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(url, json.dumps(fields).encode(), headers)
    for pause_s in _PAUSES_S:
        try:
            with urllib.request.urlopen(request, timeout=_DEADLINE_S) as response:
                samples, rate = soundfile.read(io.BytesIO(response.read()), always_2d=True)
                return samples.mean(axis=1), rate  # (S, C) to (S,)
        except soundfile.LibsndfileError as error:
            raise InputError(f"{url}: not answered by a WAV file ({error})") from error
        except urllib.error.HTTPError as error:
            fault = f"{error.code} {error.reason}: {error.read(300).decode(errors='replace')}"
            if error.code != 429 and error.code < 500:
                break
        except (OSError, HTTPException, UnicodeError) as error:  # the last of a name of a host
            fault = described(error)
        time.sleep(pause_s)
    raise InputError(f"{url}: {fault}")


def _speak_by_piper(path: Path, text: str, voice: str) -> tuple[np.ndarray, int]:
    from piper import SynthesisConfig

    piper = _piper(path)
    settings = SynthesisConfig(speaker_id=piper.config.speaker_id_map.get(voice))
    sentences = [chunk.audio_float_array for chunk in piper.synthesize(text, settings)]
    return np.concatenate([*sentences, np.zeros(0)]), piper.config.sample_rate


@cache
def _piper(path: Path) -> Any:  # noqa: ANN401  # a type of a package that may be missing
    try:
        from onnxruntime import InferenceSession, SessionOptions
        from piper import PiperConfig, PiperVoice
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is missing: pip install piper-tts") from error
    config = cast("dict[str, Any]", read_json(Path(f"{path}.json")))
    options = SessionOptions()  # by default as many threads as the machine has cores
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return PiperVoice(InferenceSession(str(path), options), PiperConfig.from_dict(config))
    except Exception as error:
        raise InputError(f"{path}: not a voice of Piper ({described(error)})") from error
