"""Text that streams in over a WebSocket: each sentence sounds as a request for it."""

import json
import time

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect

from models.programs.server.requests import Limits
from tests.models.programs.server.servers import running, wait_until
from tests.models.programs.server.test_requests import endless  # noqa: F401  (a fixture)
from tests.models.programs.server.test_speech import RATE, bytes_of

CONFIG = {"type": "session.config", "voice": "tiny"}
DONE = {"type": "input.done"}
PAUSE = round(0.25 * RATE / 256) * 256  # samples between sentences


def opened(server, *messages, **options):
    url = f"ws://127.0.0.1:{server.port}/v1/audio/speech/stream"
    socket = connect(url, open_timeout=30, **options)
    send(socket, *messages)
    return socket


def send(socket, *messages):
    for message in messages:
        socket.send(message if isinstance(message, str | bytes) else json.dumps(message))


def text(*parts):
    return [{"type": "input.text", "text": part} for part in parts]


def next_of(socket):
    message = socket.recv(30)
    return message if isinstance(message, bytes) else json.loads(message)


def samples(data):
    return np.frombuffer(data, dtype="<i2")


def sound_of(wav: bytes) -> bytes:
    return wav[wav.index(b"data") + 8 :]


def test_a_sentence_is_spoken_before_the_next_is_written(server, voice):
    with opened(server, CONFIG, *text("It w", "as so", ". Was ")) as socket:
        about = {"sentence_index": 0, "sentence_text": "It was so."}
        start = {"type": "audio.start", **about, "format": "wav", "sample_rate": RATE}
        assert next_of(socket) == start
        first = next_of(socket)
        assert first == bytes_of(voice, "It was so.")
        done = {"type": "audio.done", "sentence_index": 0, "total_bytes": len(first)}
        assert next_of(socket) == done
        send(socket, *text("it? "), DONE)
        assert next_of(socket)["sentence_text"] == "Was it?"
        second = samples(sound_of(next_of(socket)))
        assert not second[:PAUSE].any()  # together they sound as the text does
        assert np.array_equal(second[PAUSE:], samples(sound_of(bytes_of(voice, "Was it?"))))
        assert next_of(socket)["type"] == "audio.done"
        assert next_of(socket) == {"type": "session.done", "total_sentences": 2}


def test_sound_streams_too_where_it_is_asked_for_and_without_a_word_there_is_none(server, voice):
    config = CONFIG | {"stream_audio": True, "response_format": "pcm", "speed": 1.25, "seed": 7}
    sentence = "It was so, as they said, and it was to be so for a long time."
    with opened(server, config, *text(sentence), DONE) as socket:
        assert next_of(socket)["sample_rate"] == 24000
        frames = []
        while isinstance(frame := next_of(socket), bytes):
            frames.append(frame)
        assert b"".join(frames) == bytes_of(voice, sentence, "pcm", duration_control=0.8, seed=7)
        assert frame["total_bytes"] == sum(map(len, frames))
    for messages in ([], text("...", "!")):
        with opened(server, CONFIG, *messages, DONE) as socket:
            assert next_of(socket) == {"type": "session.done", "total_sentences": 0}


@pytest.mark.parametrize(
    ("messages", "status", "message"),
    [
        (["{"], 400, 'is no JSON object; expected {"type": "session.config"'),
        ([CONFIG, "{"], 400, 'is no JSON object; expected {"type": "input.text"'),
        ([b"RIFF"], 400, 'a binary message; expected {"type": "session.config"'),
        (["[" * 60000], 400, "is no JSON object"),
        ([DONE], 400, 'too early; expected {"type": "session.config", "voice": "..."}'),
        ([CONFIG | {"voice": None}], 400, "voice: Input should be a valid string"),
        ([CONFIG | {"voice": "nobody"}], 400, "no voice 'nobody'"),
        ([CONFIG | {"speed": 9}], 400, "speed: Input should be less than or equal to 4"),
        ([CONFIG | {"input": "One."}], 400, "input: Input should be ''"),
        ([CONFIG | {"ssml": True}], 400, "ssml: Input should be False"),
        ([CONFIG | {"task_type": "x"}], 400, "task_type: Extra inputs are not permitted"),
        ([CONFIG, {"type": "input.txt"}], 400, "input.txt"),
        ([CONFIG, {"type": "input.text", "text": 5}], 400, "is unknown; expected"),
        ([CONFIG, *text("One\x1b.")], 400, "control characters"),
        ([CONFIG, *text("a" * 4000, "a" * 97)], 400, "input: more than 4096 characters"),
        ([CONFIG, *[text("")[0] | {"other": "a" * 8000}] * 9], 413, "65536 bytes"),
    ],
)
def test_wrong_messages_end_the_session(server, messages, status, message):
    with opened(server, *messages) as socket:
        while (found := next_of(socket))["type"] != "error":
            pass
        assert message in found["message"]
        with pytest.raises(ConnectionClosedError) as closed:
            socket.recv(30)
    assert closed.value.rcvd.code == 4000 + status


def test_pages_of_other_sites_and_clients_without_the_token_are_refused(folders, caplog):
    with running(folders, Limits(token="secret")) as server:
        caplog.set_level("ERROR", "uvicorn.error")
        given = {"Authorization": "Bearer secret"}
        evil = {"additional_headers": given, "origin": "http://evil.example"}
        for options, status in (({}, 401), (evil, 403)):
            with pytest.raises(InvalidStatus) as refused:
                opened(server, **options)
            assert refused.value.response.status_code == status
            assert b'"error"' in refused.value.response.body
        with opened(server, DONE, additional_headers=given, origin=server.url) as socket:
            assert next_of(socket)["type"] == "error"
        assert caplog.messages == []


def test_a_session_has_a_deadline_and_a_place_in_the_queue(folders, endless):  # noqa: F811
    config = CONFIG | {"stream_audio": True}
    with running(folders, Limits(queue=1, deadline_s=1)) as server:
        with opened(server, config, *text("Yes."), DONE) as socket:
            with pytest.raises(InvalidStatus) as refused:
                opened(server)
            assert refused.value.response.status_code == 503
            with pytest.raises(ConnectionClosedError) as closed:
                list(iter(socket.recv, None))
        assert closed.value.rcvd.code == 4504
        wait_until(lambda: server.metric("arion_requests_active") == 0, seconds=1)
        assert server.metric('arion_requests_total{status="504"}') == 1


def test_work_for_a_client_that_leaves_ends_within_a_second(folders, endless):  # noqa: F811
    with running(folders) as server:
        with opened(server, CONFIG | {"stream_audio": True}, *text("Yes."), DONE) as socket:
            assert next_of(socket)["type"] == "audio.start"
            socket.recv(30)
        left = time.monotonic()
        wait_until(lambda: server.metric("arion_requests_active") == 0, seconds=1)
        assert server.metric('arion_requests_total{status="499"}') == 1
        wait_until(lambda: time.monotonic() > left + 0.5)
        assert endless[-1] < left + 0.5


def test_the_first_message_is_due_and_later_ones_may_come_late(folders):
    with running(folders, Limits(patience_s=0.3)) as server:
        with opened(server) as socket:
            assert "no session.config arrived within 0.3 s" in next_of(socket)["message"]
        with opened(server, CONFIG) as socket:
            time.sleep(0.5)
            send(socket, DONE)
            assert next_of(socket)["type"] == "session.done"
