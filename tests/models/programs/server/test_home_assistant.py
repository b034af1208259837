"""The Wyoming protocol, with the client of its package."""

import asyncio
import json
import socket

import numpy as np
import pytest
from wyoming.audio import AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

from models.programs.server.requests import Limits
from models.synthesizer.synthesizer import Synthesizer
from processors.text.markup.ssml import Ssml
from tests.models.programs.server.servers import running, wait_until
from tests.models.programs.server.test_requests import endless  # noqa: F401  (a fixture)
from tests.models.programs.server.test_speech import bytes_of
from tests.models.programs.server.test_streams import samples


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()


@pytest.fixture(scope="module")
def address(folders):
    address = free_address()
    with running(folders, wyoming=address):
        yield address


def talk(address, *messages, n_answers):
    """The answers to messages; the chunks of a sound are one."""

    async def conversation():
        async with AsyncTcpClient(*address, read_timeout=30) as client:
            for message in messages:
                await client.write_event(message if isinstance(message, Event) else message.event())
            events = []
            while len(events) < n_answers:
                event = await client.read_event()
                if events and event.type == events[-1].type == "audio-chunk":
                    events[-1].payload += event.payload
                    continue
                events.append(event)
            return events

    return asyncio.run(conversation())


def spoken(address, text, **fields):
    """The sound of a text."""
    start, chunk, stop = talk(address, Synthesize(text, **fields), n_answers=3)
    assert AudioStop.is_type(stop.type)
    sound = AudioStart.from_event(start)
    assert (sound.rate, sound.width, sound.channels) == (24000, 2, 1)
    return chunk.payload


def test_it_describes_each_voice_and_each_speaker(address):
    (event,) = talk(address, Describe(), n_answers=1)
    (program,) = Info.from_event(event).tts
    assert (program.name, program.supports_synthesize_streaming) == ("arion", True)
    british = ("three/bert", "three/carl", "two", "two/carl", "two/bert")
    assert {voice.name: voice.languages for voice in program.voices} == {
        **{"tiny": ["en_US"], "three": ["en_GB", "en_US"], "three/anna": ["en_US"]},
        **{name: ["en_GB"] for name in british},
    }
    three = next(voice for voice in program.voices if voice.name == "three")
    assert [speaker.name for speaker in three.speakers] == ["anna", "bert", "carl"]


def test_a_text_is_the_speech_of_python(address, voice):
    assert spoken(address, "It was so. Was it?") == bytes_of(voice, "It was so. Was it?", "pcm")
    ssml = "<speak>One. <break time='1s'/> Two.</speak>"
    assert spoken(address, ssml, text_format="ssml") == bytes_of(voice, Ssml(ssml), "pcm")


@pytest.mark.parametrize(
    ("asked", "name", "speaker"),
    [
        (SynthesizeVoice("three", speaker="carl"), "three", "carl"),
        (SynthesizeVoice("three/bert"), "three", "bert"),
        (SynthesizeVoice("two"), "two", "bert"),
        (SynthesizeVoice(language="en_GB"), "three", "bert"),
        (SynthesizeVoice(language="en-gb"), "three", "bert"),
        (SynthesizeVoice(language="en_US"), "tiny", None),
        (SynthesizeVoice(language="en_AU"), "tiny", None),
        (None, "tiny", None),
    ],
)
def test_name_speaker_and_language_choose_the_voice(address, folders, asked, name, speaker):
    expected = bytes_of(Synthesizer(folders[name]), "Yes.", "pcm", speaker=speaker)
    assert spoken(address, "Yes.", voice=asked) == expected


def test_a_text_that_streams_in_is_spoken_sentence_by_sentence(address, folders):
    voice, chosen = Synthesizer(folders["three"]), SynthesizeVoice("three/bert")

    async def conversation():
        async with AsyncTcpClient(*address, read_timeout=30) as client:

            async def sentence_of(*messages):
                for message in messages:
                    await client.write_event(message.event())
                events = [await client.read_event()]
                while not AudioStop.is_type(events[-1].type):
                    events.append(await client.read_event())
                return b"".join(event.payload or b"" for event in events)

            begun = SynthesizeStart(chosen), SynthesizeChunk("It w"), SynthesizeChunk("as so. Was ")
            first = await sentence_of(*begun)  # before the second is written
            whole = Synthesize("It was so. Was it?")
            second = await sentence_of(SynthesizeChunk("it?"), whole, SynthesizeStop())
            return first, second, await client.read_event()

    first, second, last = asyncio.run(conversation())
    assert first == bytes_of(voice, "It was so.", "pcm", speaker="bert")
    n = len(bytes_of(voice, "Was it?", "pcm", speaker="bert"))
    assert len(second) - n == pytest.approx(2 * 24000 * 0.25, rel=0.05)  # with the pause before it
    assert np.abs(samples(second[:11000])).max() <= 1  # resampled
    assert SynthesizeStopped.is_type(last.type)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Synthesize("..."), "there is no word to say in '...'"),
        (Synthesize("a" * 4097), "input: String should have at most 4096 characters"),
        (Synthesize("Yes.", voice=SynthesizeVoice("nobody")), "no voice 'nobody'"),
        (Synthesize("Yes.", voice=SynthesizeVoice(language="de")), "no voice speaks 'de'"),
        (Synthesize("Yes.", text_format="rtf"), "format: Input should be"),
        (Event("synthesize", {}), "synthesize: 'text' is missing"),
    ],
)
def test_errors_are_answers_and_the_connection_goes_on(address, message, text):
    error, info = talk(address, message, Describe(), n_answers=2)
    assert text in Error.from_event(error).text
    assert Info.is_type(info.type)


def test_what_is_too_long_or_no_event_ends_the_connection(address, caplog):
    for line in (b'{"type": "describe", "data_length": 70000}', b"[]", b"{", b"a" * 70000):
        with socket.create_connection(address, timeout=30) as client:
            client.sendall(line + b"\n")
            assert client.recv(100) == b""
    assert not any("never retrieved" in record.getMessage() for record in caplog.records)


def test_deadline_queue_and_clients_that_leave(folders, endless):  # noqa: F811
    address = free_address()
    with running(folders, Limits(queue=1, deadline_s=1), address) as server:
        start, _, error = talk(address, Synthesize("Yes."), n_answers=3)
        assert AudioStart.is_type(start.type)
        assert "not done within 1 s" in Error.from_event(error).text
        with socket.create_connection(address, timeout=30) as client:
            client.sendall(json.dumps({"type": "synthesize", "data": {"text": "Yes."}}).encode())
            client.sendall(b"\n")
            assert client.recv(100)
            (full,) = talk(address, Synthesize("Yes."), n_answers=1)
            assert "1 requests are waiting" in Error.from_event(full).text
        wait_until(lambda: server.metric("arion_requests_active") == 0, seconds=1)
