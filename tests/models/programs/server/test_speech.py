"""Speech over HTTP, as the openai package asks for it, is the speech of Python."""

import base64
import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import openai
import pytest
import soundfile
import soxr

from models.programs.server.voices import VoiceStore
from models.synthesizer.synthesizer import Synthesizer
from processors.audio.streams import encoded
from processors.durations.subtitles import subtitles
from processors.records import later
from processors.text.markup.formats import Markup
from processors.text.markup.ssml import Ssml
from processors.text.pronunciations import dictionary_of
from tests.models.programs.server.servers import running
from tests.models.synthesizer.test_synthesizer import make_voice

TEXT = "It was so. Was it? Yes, in 1813."
RATE = 22050


def bytes_of(voice, text=TEXT, format="wav", **settings):
    return b"".join(encoded(voice.generate(text, **settings), format, RATE, voice.tag))


def speak(server, text=TEXT, voice="tiny", format="wav", **fields):
    response = server.client().audio.speech.create(
        model="tts-1", voice=voice, input=text, response_format=format, **fields
    )
    return response.content


def events_of(server, text, format="pcm", **fields):
    """Returns the events of a request, and the sound in them."""
    extra = {"stream_format": "sse", "extra_body": {"timestamps": True, **fields}}
    with streamed(server, text, format, **extra) as response:
        events = [json.loads(line.removeprefix("data: ")) for line in response.iter_lines() if line]
    return events, b"".join(base64.b64decode(event.get("audio", "")) for event in events)


def streamed(server, text, format, **fields):
    """Returns a response, which is read as it comes."""
    request = {"model": "tts-1", "voice": "tiny", "input": text, "response_format": format}
    create = server.client().audio.speech.with_streaming_response.create
    return create(**request, **fields)


@pytest.mark.parametrize("format", ["wav", "mp3", "opus", "flac", "pcm"])
def test_each_format_holds_the_speech_of_python(server, voice, format):
    assert speak(server, format=format) == bytes_of(voice, format=format)


def test_responses_say_in_a_header_and_in_the_sound_that_their_speech_is_synthetic(server, voice):
    asked = {"model": "arion", "voice": "tiny", "input": TEXT}
    for format in ("wav", "pcm"):
        raw = server.client().audio.speech.with_raw_response
        response = raw.create(**asked, response_format=format, instructions="Sing.")
        assert response.headers["x-arion-synthetic"] == voice.tag
        assert response.headers["x-arion-ignored"] == "instructions"
        assert (response.headers["content-type"] == "audio/wav") == (format == "wav")
        assert (voice.tag.encode() in response.content) == (format == "wav")
        assert response.content == bytes_of(voice, format=format)
    untagged = VoiceStore(lambda: {"tiny": voice.model.home}, memory_mb=1, tagged=False)
    with running({"tiny": voice.model.home}, voices=untagged) as plain:
        raw = plain.client().audio.speech.with_raw_response
        response = raw.create(**asked, response_format="wav")
    assert "x-arion-synthetic" not in response.headers
    assert response.content == b"".join(encoded(voice.generate(TEXT), "wav", RATE))


def test_the_fields_of_prosody_are_the_controls(server, voice):
    factors = {"pitch_control": 1.2, "energy_control": 0.8}
    expected = bytes_of(voice, duration_control=1 / 1.25, **factors, seed=7)
    extra = {"pitch": 1.2, "energy": 0.8, "seed": 7}
    assert speak(server, speed=1.25, extra_body=extra) == expected
    assert expected != bytes_of(voice)


def test_steps_and_temperature_are_those_of_a_voice_with_a_flow(server, tmp_path):
    folder, extra = make_voice(tmp_path / "flow", model="FlowSpeech"), {"steps": 2, "seed": 7}
    expected = bytes_of(Synthesizer(folder), temperature=0.8, **extra)
    with running({"flow": folder}) as flowing:
        found = speak(flowing, voice="flow", extra_body=extra | {"temperature": 0.8})
        usual = speak(flowing, voice="flow", extra_body={"steps": None, "temperature": None})
    assert found == expected
    assert usual == bytes_of(Synthesizer(folder)) != expected
    for field, value in (("steps", 4), ("temperature", 0.3)):
        with pytest.raises(openai.BadRequestError, match=f"FastSpeech2 has no control of {field}"):
            speak(server, extra_body={field: value})


def test_entries_of_a_request_come_before_those_of_the_server(server, folders, voice, caplog):
    first, second = {"it": "IHT-uh"}, {"it": "EET-uh", "was": "WAHZ-uh"}
    both = bytes_of(voice, lexicon=second | first)
    with running({"tiny": folders["tiny"]}, lexicon=dictionary_of(second)) as corrected:
        assert speak(corrected) == bytes_of(voice, lexicon=second)
        assert speak(corrected, extra_body={"lexicon": first}) == both
    assert speak(server, extra_body={"lexicon": second | first}) == both != bytes_of(voice)
    wrong = dictionary_of({"it": "{QQ}"})  # the server's own fault
    refused = pytest.raises(openai.InternalServerError, match="the voice tiny cannot be opened")
    with running({"tiny": folders["tiny"]}, lexicon=wrong) as other, refused:
        speak(other)
    assert "no phone of ARPAbet: QQ" in caplog.text


@pytest.mark.parametrize(
    ("id", "extra", "speaker"),
    [
        ("three", {"speaker": "anna"}, "three/anna"),
        ("three", {"language": "en-gb"}, "three/bert"),
        ("three", {"language": "en-gb", "speaker": "carl"}, "three/carl"),
        ("three/anna", {}, "three/anna"),
        ("anna", {}, "three/anna"),  # only that voice has it
        ("three/carl", {"speaker": "carl", "language": "en-gb"}, "three/carl"),
        ("two", {}, "two/bert"),  # its default
        ("two", {"language": "en-gb"}, "two/bert"),  # not the first one of the language
        ("two/carl", {"language": "en-gb"}, "two/carl"),
        ("tiny/one", {}, "tiny/one"),
    ],
)
def test_name_speaker_and_language_choose_the_speaker(server, folders, id, extra, speaker):
    voice, _, name = speaker.partition("/")
    expected = bytes_of(Synthesizer(folders[voice]), "Yes.", speaker=name)
    assert speak(server, "Yes.", voice=id, extra_body=extra) == expected


def test_events_hold_the_sound_and_the_times_of_its_words(server, voice):
    (*deltas, done), sound = events_of(server, TEXT, subtitles="vtt")
    assert sound == bytes_of(voice, format="pcm")
    words, speech = [word for delta in deltas for word in delta["words"]], voice(TEXT)
    assert [(word["word"], word["start"], word["end"]) for word in words] == [*speech.words]
    written = [TEXT[slice(*word["span"])] for word in words]
    assert written == ["It", "was", "so", "Was", "it", "Yes", "in", *["1813"] * 2]
    assert [word["word"] for word in deltas[0]["words"]] == ["It", "was", "so"]
    assert (done["type"], done["usage"]["input_tokens"]) == ("speech.audio.done", len(TEXT))
    assert done["subtitles"] == subtitles(speech.sentences, speech.words, "vtt")


@pytest.mark.parametrize("format", ["mp3", "opus", "flac", "wav"])
def test_words_have_their_times_in_the_decoded_sound(server, voice, format):
    text = '<speak><mark name="a"/>Yes. <mark name="b"/>It was so.</speak>'
    events, sound = events_of(server, text, format, ssml=True, subtitles="srt")
    wav, rate = soundfile.read(io.BytesIO(sound))
    speech = voice(Ssml(text))
    expected = soxr.resample(speech.wav, RATE, rate)
    n = 2 ** int(np.log2(len(wav) + len(expected)) + 1)
    correlation = np.fft.irfft(np.fft.rfft(wav, n) * np.fft.rfft(expected, n).conj())
    delay_s = correlation[: rate // 2].argmax() / rate  # of the sound
    words = [word for event in events for word in event.get("words", ())]
    marks = [mark for event in events for mark in event.get("marks", ())]
    for name in ("start", "end"):
        times = [getattr(word, f"{name}_s") + delay_s for word in speech.words]
        assert [word[name] for word in words] == pytest.approx(times, abs=1e-3)
    times = [mark.time_s + delay_s for mark in speech.marks]
    assert [mark["time"] for mark in marks] == pytest.approx(times, abs=1e-3)
    sentences, spoken = later(speech.sentences, delay_s), later(speech.words, delay_s)
    assert events[-1]["subtitles"] == subtitles(sentences, spoken, "srt")


def test_ssml_is_spoken_as_in_python_with_the_times_of_its_marks(server, voice):
    source = (
        '<speak><mark name="a"/>One, <prosody rate="50%">two</prosody>.<break time="1s"/>'
        '<mark name="b"/>Three.<voice/><break time="1s"/><mark name="c"/></speak>'
    )
    events, sound = events_of(server, source, ssml=True)
    marks = [tuple(mark.values()) for event in events for mark in event.get("marks", ())]
    assert marks == list(voice(Ssml(source)).marks)
    assert sound == bytes_of(voice, Ssml(source), format="pcm")
    message = f"column {source.index('<voice') + 1}: unknown"
    with pytest.raises(openai.BadRequestError, match=message):
        speak(server, source, extra_body={"format": "ssml", "strict": True})
    assert speak(server, "A <b> c.") == bytes_of(voice, "A <b> c.")


def test_markdown_is_recognised_or_its_format_is_given(server, voice):
    plan, read = "# Plan\n\n[It](http://x.y) was so.", "Plan. [pause:0.75] It was so."
    sound = speak(server, plan)
    assert sound == bytes_of(voice, Markup(plan)) == speak(server, read)
    html = "<h1>Plan</h1>It was so."
    assert speak(server, html, extra_body={"format": "html"}) == sound
    assert speak(server, plan, extra_body={"format": "text"}) == bytes_of(voice, plan) != sound
    with pytest.raises(openai.BadRequestError, match="format: Input should be 'auto', 'text'"):
        speak(server, plan, extra_body={"format": "rst"})


def test_the_first_sentence_comes_before_the_last_is_synthesised(server, voice, monkeypatch):
    may_go_on, generate = threading.Event(), Synthesizer.generate

    def halting(self, *arguments, **named):
        for piece in generate(self, *arguments, **named):
            yield piece
            assert may_go_on.wait(20)

    expected = bytes_of(voice)
    monkeypatch.setattr(Synthesizer, "generate", halting)
    with streamed(server, TEXT, "wav") as response:
        parts = response.iter_bytes()
        first = next(parts)
        may_go_on.set()
        assert 44 < len(first) < len(expected) / 2
        assert first + b"".join(parts) == expected


def test_a_short_text_does_not_wait_for_the_end_of_a_long_one(server, voice, monkeypatch):
    generate = Synthesizer.generate

    def endless(self, text, *arguments, **named):
        while text == "Endless.":
            yield np.ones(10_000, dtype=np.float32)
        yield from generate(self, text, *arguments, **named)

    monkeypatch.setattr(Synthesizer, "generate", endless)
    with streamed(server, "Endless.", "pcm") as response:
        parts = response.iter_bytes()
        next(parts)
        assert speak(server) == b"".join(encoded(generate(voice, TEXT), "wav", RATE, voice.tag))
        assert next(parts)


def test_one_seed_gives_the_same_bytes_whoever_else_is_served(server, voice):
    texts = [f"Was it {word}? Yes." for word in ("so", "you", "good", "late")]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: speak(server, text), texts * 2))
    assert found == [bytes_of(voice, text) for text in texts] * 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"voice": "tinny"}, "did you mean tiny"),
        ({"voice": "alloy"}, "; to serve one by this name: arion serve alloy=tiny"),
        ({"voice": "bert"}, r"several .* 'bert' \(expected one of three/bert, two/bert\)"),
        ({"voice": "three/berta"}, "did you mean three/bert"),
        ({"voice": "Anna"}, "no voice 'Anna'"),
        ({"voice": "three"}, "3 speakers; choose one"),
        ({"voice": "anna", "speaker": "carl"}, "'carl', but the voice 'anna' is that of 'anna'"),
        ({"voice": "three/anna", "language": "en-gb"}, "not 'en-gb'; this voice speaks en-us"),
        ({"model": "gpt"}, "model: .*'tts-1'.*found 'gpt'; .* send 'arion'"),
        ({"response_format": "aac"}, "'mp3', 'opus'.*found 'aac'"),
        ({"speed": 4.5}, "speed: .* 4"),
        ({"input": "a" * 4097}, "input: .* 4096 characters; found 4097"),
        ({"input": "..."}, "no word"),
        ({"pitch": 11}, "pitch: .* 10"),
        ({"seed": -1}, "seed"),
        ({"steps": 51}, "steps: .* 50"),
        ({"temperature": 2.5}, "temperature: .* 2"),
        ({"lexicon": {"it": "{QQ}"}}, "lexicon: 'it' = '{QQ}': no phone of ARPAbet: QQ"),
        ({"lexicon": {"it": ""}}, "lexicon: it: .*1 char"),
        ({"lexicon": {"it": "a" * 301}}, "lexicon: it: .* 300 characters; found 301"),
        ({"lexicon": {f"w{n}": "a" for n in range(501)}}, "lexicon: .* 500 items"),
        ({"sped": 1}, "sped"),
        ({"timestamps": True}, "stream_format"),
        ({"subtitles": "srt"}, "stream_format"),
        ({"subtitles": "txt"}, "subtitles: .* 'srt'"),
        ({"language": "de"}, "speaks en-us"),
        ({"speaker": "eve"}, "eve"),
    ],
)
def test_wrong_requests_are_refused_in_the_shape_of_openai(server, fields, message):
    request = {"model": "tts-1", "voice": "tiny", "input": TEXT}
    with pytest.raises(openai.BadRequestError, match=message) as caught:
        server.client().audio.speech.create(**request, extra_body=fields)
    assert set(caught.value.body) == {"message", "type", "param", "code"}
    assert caught.value.type == "invalid_request_error"


def test_models_voices_health_and_metrics(server):
    assert "tts-1" in [model.id for model in server.client().models.list()]
    rows = json.loads(server.request("GET", "/v1/audio/voices")[1])["data"]
    voices = {row["id"]: row for row in rows}
    two = {"two": "bert", "two/carl": "carl", "two/bert": "bert"}
    three = {"three": None} | {f"three/{name}": name for name in ("anna", "bert", "carl")}
    assert {id: row["speaker"] for id, row in voices.items()} == {"tiny": "one"} | three | two
    assert voices["three"]["speakers"] == ["anna", "bert", "carl"]
    assert voices["three/carl"]["speakers"] == ["carl"]
    assert voices["three/carl"]["languages"] == ["en-gb"]
    assert voices["three/carl"]["sample_rate"] == RATE
    assert voices["three/carl"]["licence"] == voices["tiny"]["licence"] == "unknown"
    assert server.request("GET", "/health") == (200, '{"status":"ok"}')
    before = server.metric("arion_sound_seconds_total")
    samples = np.frombuffer(speak(server, format="pcm"), dtype="<i2")
    seconds = server.metric("arion_sound_seconds_total") - before
    assert seconds == pytest.approx(len(samples) / 24000, abs=1e-4)
    assert server.metric('arion_requests_total{status="200"}') >= 3
    assert server.metric("arion_requests_active") == 0


def test_a_voice_that_cannot_be_opened_is_an_error_without_its_path(folders, monkeypatch, caplog):
    with running(folders) as server:
        hidden = folders["tiny"] / "hidden"
        (folders["tiny"] / "model.safetensors").rename(hidden)
        try:
            with pytest.raises(openai.InternalServerError, match="cannot be opened") as caught:
                speak(server)
        finally:
            hidden.rename(folders["tiny"] / "model.safetensors")
        assert str(folders["tiny"]) not in str(caught.value)
        assert str(folders["tiny"]) in caplog.text
        assert speak(server)
