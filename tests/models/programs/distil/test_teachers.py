"""Programs that speak are found, asked, and what they return is checked."""

import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import soundfile
import torch

from models.programs.distil import teachers
from models.programs.distil.teachers import checked_sound, find_teacher
from utils.errors import InputError

TOY = "tests.models.programs.distil.toy_teacher:speak"


class SpeechServer(ThreadingHTTPServer):
    """An endpoint as OpenAI's on this machine: a sine whose length follows from the text.

    Attributes:
        requests: Path, headers and body of each request.
        faults: Codes of the next responses; then come sounds.
        missing: Bytes that the next responses announce and do not send.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list = []
        self.faults: list[int] = []
        self.missing: list[int] = []
        self.sound: bytes | None = None
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: SpeechServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers), body))
        code = self.server.faults.pop(0) if self.server.faults else 200
        content = wav_of(body["input"]) if self.server.sound is None else self.server.sound
        content = content if code == 200 else b'{"error": {"message": "no luck"}}'
        self.send_response(code)
        n_missing = self.server.missing.pop(0) if self.server.missing else 0
        self.send_header("Content-Length", str(len(content) + n_missing))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_words) -> None:
        pass


def wav_of(text: str) -> bytes:
    file = io.BytesIO()
    sine = 0.5 * np.sin(np.arange(800 * len(text)) / 10)
    soundfile.write(file, np.stack([sine, sine], 1), 16000, format="WAV")
    return file.getvalue()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(teachers, "_PAUSES_S", (0, 0))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with SpeechServer() as speech_server:
        thread = threading.Thread(target=speech_server.serve_forever, args=(0.01,))
        thread.start()
        yield speech_server
        speech_server.shutdown()
        thread.join()


def test_an_endpoint_is_asked_as_openais_and_without_a_key_none_is_sent(server, monkeypatch):
    find_teacher(server.url, "m").speak("Hello.", "alloy")
    assert "Authorization" not in server.requests.pop()[1]
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    teacher = find_teacher(f"{server.url}/", "tts-1")
    assert teacher.name == f"tts-1 at {server.url}/"
    wav, rate = checked_sound(teacher.speak("Hello.", "alloy"))
    assert (wav.shape, wav.dtype, rate) == ((4800,), np.float32, 16000)
    assert np.abs(wav).max() == pytest.approx(0.5, abs=1e-3)
    ((path, headers, body),) = server.requests
    assert path == "/v1/audio/speech"
    assert headers["Authorization"] == "Bearer secret"
    fields = {"model": "tts-1", "input": "Hello.", "voice": "alloy", "response_format": "wav"}
    assert body == fields


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_server_is_asked_again(server, code):
    server.faults = [code]
    assert len(find_teacher(server.url, "m").speak("Hi.", "alloy")[0]) == 2400
    assert len(server.requests) == 2


def test_a_server_that_stays_busy_refuses_or_is_gone_is_an_error(server):
    speak = find_teacher(server.url, "m").speak
    for code, fault, n_requests in ((503, "Service Unavailable", 2), (401, "Unauthorized", 1)):
        server.faults, server.requests = [code] * 3, []
        message = f"{server.url}/audio/speech: {code} {fault}: .*no luck"
        with pytest.raises(InputError, match=message):
            speak("Hi.", "alloy")
        assert len(server.requests) == n_requests  # a refusal is not asked for again
    server.faults, server.sound = [], b"ID3 this is no sound"
    with pytest.raises(InputError, match="not answered by a WAV file"):
        speak("Hi.", "alloy")
    server.server_close()
    with pytest.raises(InputError, match=r"/v1/audio/speech: .*refused"):
        speak("Hi.", "alloy")


def test_an_answer_that_is_cut_off_is_asked_for_again(server):
    server.missing = [7, 7]
    message = r"IncompleteRead: IncompleteRead\(\d+ bytes read, 7 more expected\)"
    with pytest.raises(InputError, match=f"{server.url}/audio/speech: {message}"):
        find_teacher(server.url, "m").speak("Hi.", "alloy")
    server.missing = [7]
    assert len(find_teacher(server.url, "m").speak("Hi.", "alloy")[0]) == 2400
    assert len(server.requests) == 4


def test_a_name_of_a_host_that_cannot_be_is_an_error(monkeypatch):
    monkeypatch.setattr(teachers, "_PAUSES_S", (0,))
    message = r"http://a\.\.b/v1/audio/speech: Unicode(?:Encode)?Error: "
    with pytest.raises(InputError, match=message):
        find_teacher("http://a..b/v1", "m").speak("Hi.", "alloy")


def test_a_function_is_found_by_its_name():
    teacher = find_teacher(TOY, None)
    wav, rate = checked_sound(teacher.speak("a b", "anna"))
    assert (len(wav), rate) == (2 * 800 + 2 * 480 + 400, 8000)
    assert (teacher.name, teacher.voices) == (TOY, ())
    with pytest.raises(InputError, match=rf"{TOY} fails: RuntimeError: no such word \(.*toy_teac"):
        teacher.speak("raise", "anna")


@pytest.mark.parametrize(
    ("reference", "model", "message"),
    [
        ("http://localhost/v1", None, "an endpoint needs --model NAME"),
        (TOY, "tts-1", r"--model goes with an http\(s\) endpoint only"),
        ("no_module:speak", None, "no_module:speak: cannot be imported"),
        ("speak", None, "speak"),
        ("http://local host/v1", "m", "'http://local host/v1' is no URL; expected one as http"),
        ("http://localhost:port/v1", "m", "is no URL"),
        ("http://[::1/v1", "m", "is no URL"),
        ("https:///v1", "m", "is no URL"),
    ],
)
def test_a_wrong_teacher_is_refused(reference, model, message):
    with pytest.raises(InputError, match=message):
        find_teacher(reference, model)


@pytest.mark.parametrize(
    ("sound", "message"),
    [
        (None, "found NoneType$"),
        ((), "found an empty tuple$"),
        (np.zeros(5), "found ndarray$"),
        ((np.zeros((2, 5)), 8000), r"found shape \(2, 5\)"),
        ((np.full(5, 20000), 8000), "peak 20000"),
        ((np.zeros(5), 0), "0 Hz"),
        ((["a"], 8000), "found list, int$"),
        ((np.zeros(5), float("inf")), "inf Hz"),
        ((np.zeros(5), 8000, "anna"), "found ndarray, int, str$"),
        ((torch.zeros(5, requires_grad=True), 8000), "found Tensor, int$"),
    ],
)
def test_other_returns_than_samples_and_their_rate_are_refused(sound, message):
    expected = r"an array of mono samples in \[-1, 1\], and their rate in Hz"
    with pytest.raises(InputError, match=f"{expected}; .*{message}"):
        checked_sound(sound)


def test_a_peak_just_beyond_full_scale_is_scaled_down():
    wav, _ = checked_sound((np.array([0.75, -1.5]), 8000))
    assert wav.tolist() == [0.5, -1.0]
