import json
import logging
import time

import numpy as np
import openai
import pytest

from models.programs.server.requests import Limits
from models.synthesizer.synthesizer import Synthesizer
from tests.models.programs.server.servers import running, wait_until

SPEECH = "/v1/audio/speech"
BODY = {"model": "tts-1", "voice": "tiny", "input": "Yes."}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def endless(monkeypatch):
    """All speech becomes silence without end; counts its pieces."""
    pieces = []

    def generate(_self, *_arguments, **_named):
        while True:
            time.sleep(0.01)
            pieces.append(time.monotonic())
            yield np.zeros(10_000, dtype=np.float32)

    monkeypatch.setattr(Synthesizer, "generate", generate)
    return pieces


def begun(server, **options):
    """A response that is read as it comes."""
    return server.client(**options).audio.speech.with_streaming_response.create(**BODY)


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
        b"POST /v1/audio/speech HTTP/1.1\r\nHo",
        b"",
    ],
)
def test_a_client_that_sends_too_slowly_is_refused(folders, sent):
    with running(folders, Limits(patience_s=0.3)) as server, server.socket() as client:
        assert_given_up(client, sent)


def assert_given_up(client, sent):
    client.sendall(sent)
    start, answer = time.monotonic(), b""
    while block := client.recv(4096):
        answer += block
    assert answer.startswith(b"HTTP/1.1 408")
    assert 0.2 < time.monotonic() - start < 3


def test_a_connection_lasts_between_requests_but_not_with_half_of_one(folders):
    with running(folders, Limits(patience_s=0.3)) as server, server.socket() as client:
        for _ in range(3):
            client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b'"ok"}'):
                answer += client.recv(4096)
            time.sleep(0.2)
        assert_given_up(client, b"GET /hea")


def test_a_full_queue_is_named_and_the_client_tries_again(folders, endless):
    with running(folders, Limits(queue=1)) as server:
        with begun(server) as response:
            parts = response.iter_bytes()  # ends the request when it is collected
            assert next(parts)
            with pytest.raises(openai.InternalServerError, match="1 requests") as caught:
                server.client().audio.speech.create(**BODY)
            assert caught.value.status_code == 503
            assert caught.value.response.headers["retry-after"] == "2"
            assert server.request("GET", "/health")[0] == 200
            assert next(parts)
        with begun(server, max_retries=2) as response:
            assert next(response.iter_bytes())


def test_work_without_a_listener_ends_within_a_second(folders, endless):
    with running(folders) as server:
        with begun(server) as response:
            next(response.iter_bytes())
        left = time.monotonic()
        wait_until(lambda: server.metric("arion_requests_active") == 0, seconds=1)
        assert server.metric('arion_requests_total{status="499"}') == 1  # not 200, as it began
        wait_until(lambda: time.monotonic() > left + 1)
        assert endless[-1] < left + 1


def test_a_client_that_leaves_before_the_first_sound_is_noticed(folders, endless):
    with running(folders) as server:
        body = json.dumps(BODY | {"response_format": "flac"}).encode()  # which comes at the end
        with server.socket() as client:
            header = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            client.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\n" + header + body)
            wait_until(lambda: len(endless) > 3)
        left = time.monotonic()
        wait_until(lambda: server.metric("arion_requests_active") == 0, seconds=1)
        wait_until(lambda: time.monotonic() > left + 0.5)
        assert endless[-1] < left + 0.5


def test_a_deadline_ends_requests(folders, endless):
    with running(folders, Limits(deadline_s=0.5)) as server:
        late = server.client().audio.speech.with_raw_response
        with pytest.raises(openai.InternalServerError, match=r"0\.5 s") as caught:
            late.create(**BODY, response_format="flac")
        assert caught.value.status_code == 504
        with begun(server) as response, pytest.raises(Exception, match=r"incomplete|closed"):
            list(response.iter_bytes())  # it has begun: the connection ends
        wait_until(lambda: server.metric("arion_requests_active") == 0, seconds=1)
        assert server.metric('arion_requests_total{status="504"}') == 2


def test_a_token_is_needed_for_all_but_the_page_and_health(folders):
    with running(folders, Limits(token="secret ä")) as server:
        for path in ("/v1/models", "/v1/audio/voices", "/metrics", "/openapi.json"):
            assert server.request("GET", path)[0] == 401
        assert server.request("GET", "/health")[0] == server.request("GET", "/")[0] == 200
        given = {"Authorization": "Bearer secret ä".encode().decode("latin-1")}
        assert server.request("GET", "/metrics", **given)[0] == 200
        with pytest.raises(openai.AuthenticationError, match="token"):
            server.client("secre").models.list()
    with running(folders, Limits(token="secret")) as server:
        assert server.client("secret").models.list().data


def test_the_log_has_no_word_of_a_request_and_no_raw_control_characters(folders, caplog):
    caplog.set_level(logging.INFO, "arion.models.programs.server")
    with running(folders) as server:
        server.request("GET", "/a%0Ab%1B[31m")
        with pytest.raises(openai.BadRequestError):
            server.client().audio.speech.create(
                model="tts-1", voice="tiny", input="Zanzibar.", extra_body={"speaker": "Zebedee"}
            )
        server.client().audio.speech.create(model="tts-1", voice="tiny", input="Zanzibar €.")
    messages = [record.getMessage() for record in caplog.records if "server" in record.name]
    assert messages[0].startswith(r"GET '/a\nb\x1b[31m' 404")
    assert not any("Zan" in message or "Zeb" in message for message in messages)


def test_wrong_json_long_bodies_and_unknown_routes_are_refused(server):
    curl = {"Content-Type": "application/x-www-form-urlencoded"}
    place, header = "line 2 column 11", "send it with the header Content-Type: application/json"
    broken = (json.dumps(BODY | {field: "x\ud800"}) for field in ("voice", "input", "speaker"))
    for method, path, body, headers, status, message in (
        *(("POST", SPEECH, body, JSON, 400, "") for body in broken),  # no Unicode
        ("POST", SPEECH, '{"model": "tts-1",\n "voice": tiny}', JSON, 400, place),
        ("POST", SPEECH, "[" * 60000, JSON, 400, "parsing the body"),
        ("POST", SPEECH, json.dumps(BODY | {"input": "a" * 65536}), JSON, 413, "65536 bytes"),
        ("POST", SPEECH, json.dumps(BODY), curl, 400, header),
        ("POST", SPEECH, json.dumps(BODY), {}, 400, header),
        ("GET", SPEECH, "", {}, 405, "Method Not Allowed"),
        ("GET", "/../../etc/passwd", "", {}, 404, "Not Found"),
    ):
        found, text = server.request(method, path, body, **headers)
        assert found == status
        assert set(json.loads(text)) == {"error"}
        assert message in json.loads(text)["error"]["message"]
