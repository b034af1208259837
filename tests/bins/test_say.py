"""`arion say`: the text may come from three places, and the sound goes to three."""

import io
import os
import sys
import types
from unittest.mock import MagicMock

import numpy as np
import pytest
import soundfile

from models.synthesizer.synthesizer import Synthesizer
from processors.durations.subtitles import subtitles
from processors.text.markup.formats import Markup
from processors.text.markup.ssml import Ssml
from tests.commands import call
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.processes import Process
from utils.cli import UsageError
from utils.errors import InputError

TEXT = "It was so. Was it?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_voice(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def voice(folder):
    return Synthesizer(folder)


@pytest.fixture
def say(monkeypatch, folder, tmp_path):
    """Runs the command in an empty folder, with something on standard input."""
    monkeypatch.chdir(tmp_path)

    def run(*words, stdin=b"", voice=folder):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        call("say", *words, "--voice", voice)

    return run


def spoken(voice, text=TEXT, **settings):
    return np.concatenate(list(voice.generate(text, **settings)))


def assert_speech(path, expected):
    assert np.abs(soundfile.read(path)[0] - expected).max() < 1e-4


@pytest.mark.parametrize("format", ["wav", "flac", "mp3", "opus", "ogg"])
def test_a_file_holds_the_speech(say, voice, tmp_path, format, capsys):
    say(TEXT, "-o", f"out/a.{format}")
    wav, rate = soundfile.read(tmp_path / "out" / f"a.{format}")
    expected = spoken(voice)
    assert len(wav) / rate == pytest.approx(len(expected) / 22050, abs=0.12)
    if format in ("wav", "flac"):
        assert np.abs(wav - expected).max() < 1e-4
    assert capsys.readouterr().err == f"out/a.{format}\n"


def test_the_text_comes_from_arguments_a_file_or_standard_input(say, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8-sig")
    say("It was so.", "Was it?", "-o", "a.wav")
    say("--file", "text.txt", "-o", "b.wav")
    say("-o", "c.wav", stdin=TEXT.encode())
    say("-", "-o", "d.wav", stdin=TEXT.encode())
    sounds = {(tmp_path / f"{name}.wav").read_bytes() for name in "abcd"}
    assert len(sounds) == 1
    with pytest.raises(UsageError, match="exclude each other"):
        say(TEXT, "--file", "text.txt")
    with pytest.raises(InputError, match="not UTF-8 at byte 1"):
        say("-o", "d.wav", stdin=b"a\xff")
    with pytest.raises(InputError, match="standard input: UTF-16; send UTF-8"):
        say("-o", "d.wav", stdin=TEXT.encode("utf-16-le"))


def test_a_dash_speaks_line_by_line_while_its_input_is_written(folder, voice, say, monkeypatch):
    process = Process("-m", "bins.say", "-", "-o", "-", "--voice", folder)
    process.stdin.write("It was so.\n")
    process.stdin.flush()
    first = process.stdout.buffer.read(1000)  # before the second line
    process.stdin.write("Was it?\n")
    process.stdin.close()
    rest = process.stdout.buffer.read()
    assert process.finish().returncode == 0
    out = io.BytesIO()
    monkeypatch.setattr("sys.stdout", types.SimpleNamespace(buffer=out))
    say(TEXT, "-o", "-")
    assert first + rest == out.getvalue()
    assert first[:4] == b"RIFF"
    assert_speech(io.BytesIO(first + rest), spoken(voice))
    assert voice.tag.encode() in first + rest


def test_a_dash_is_plain_text_unless_a_format_is_given(say, voice, tmp_path):
    plan = b"# Plan\n\n[It](http://x.y) was so."
    say("-", "--format", "markdown", "-o", "a.wav", stdin=plan)
    say("-o", "b.wav", stdin=plan)
    say("-", "-o", "c.wav", stdin=plan)
    say("--format", "text", "-o", "d.wav", stdin=plan)
    a, b, c, d = ((tmp_path / f"{name}.wav").read_bytes() for name in "abcd")
    assert a == b != c == d
    with pytest.raises(InputError, match=r"^there is no word in the text$"):
        say("-", "-o", "e.wav")
    assert not (tmp_path / "e.wav").exists()


def test_controls_and_a_dictionary_reach_the_voice_whose_operations_are_bounded(
    say, voice, tmp_path, monkeypatch
):
    variables = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
    for variable in variables:
        monkeypatch.delenv(variable, raising=False)
    flags = ("--pace", "1.25", "--pitch", "1.2", "--energy", "0.8", "--seed", "3")
    say(TEXT, *flags, "-o", "a.wav")
    settings = {"pitch_control": 1.2, "energy_control": 0.8, "seed": 3}
    assert_speech(tmp_path / "a.wav", spoken(voice, duration_control=1 / 1.25, **settings))
    assert [os.environ[variable] for variable in variables] == ["64", "64"]
    (tmp_path / "words.txt").write_text("was = WAHZ-uh\n")
    say(TEXT, "--lexicon", "words.txt", "-o", "b.wav")
    expected = spoken(voice, lexicon={"was": "WAHZ-uh"})
    assert_speech(tmp_path / "b.wav", expected)
    assert len(expected) != len(spoken(voice))


def test_steps_and_temperature_reach_a_voice_with_a_flow_and_are_refused_by_others(say, tmp_path):
    flow = make_voice(tmp_path / "flow", model="FlowSpeech")
    flags = ("--steps", "2", "--temperature", "0.8", "--seed", "3")
    say(TEXT, *flags, "-o", "a.wav", voice=flow)
    expected = spoken(Synthesizer(flow), steps=2, temperature=0.8, seed=3)
    assert_speech(tmp_path / "a.wav", expected)
    assert not np.array_equal(spoken(Synthesizer(flow)), expected)
    with pytest.raises(InputError, match=r"^FastSpeech2 has no control of steps, temperature"):
        say(TEXT, *flags, "-o", "b.wav")
    assert not (tmp_path / "b.wav").exists()
    with pytest.raises(UsageError, match="--steps '0': expected a whole number from 1 to 50"):
        say(TEXT, "--steps", "0", voice=flow)


def test_subtitles_are_written_with_any_output(say, voice, tmp_path, capsysbinary):
    stream = voice.generate(TEXT)
    assert len([*stream]) > 0
    for output in ("a.wav", "-"):
        say(TEXT, "-o", output, "--subtitles", "new/a.vtt")
        written = (tmp_path / "new" / "a.vtt").read_text()
        assert written == subtitles(stream.sentences, stream.words, "vtt")
        (tmp_path / "new" / "a.vtt").unlink()
    assert "It <00:00:" in written
    with pytest.raises(UsageError, match=r"^--subtitles a\.txt: expected a file that ends with"):
        say(TEXT, "--subtitles", "a.txt")


def test_ssml_comes_from_a_file_or_a_flag_its_marks_are_listed_and_errors_name_the_file(
    say, voice, tmp_path, capsys
):
    source = '<speak>One.<break time="1s"/> <mark name="m"/>Two.</speak>'
    (tmp_path / "a.ssml").write_text(source)
    say("--file", "a.ssml", "-o", "a.wav")
    say("--ssml", source, "-o", "b.wav", "--strict")
    say(source, "-o", "c.wav")
    speech = voice(Ssml(source))
    for name in ("a.wav", "b.wav", "c.wav"):
        assert_speech(tmp_path / name, speech.wav)
    listed = f"mark m: {speech.words[1].start_s:.3f} s\n"
    assert capsys.readouterr().err == f"a.wav\n{listed}b.wav\n{listed}c.wav\n{listed}"
    source = source.replace("Two.", "Two.<voice/>")
    (tmp_path / "a.ssml").write_text(source)
    say("--file", "a.ssml", "-o", "d.wav")
    assert (tmp_path / "d.wav").read_bytes() == (tmp_path / "a.wav").read_bytes()
    with pytest.raises(InputError, match=r"^line 1, column 51: unknown tag <voice>"):
        say("--ssml", source, "-o", "e.wav", "--strict")
    with pytest.raises(InputError, match=r"^a\.ssml: line 1, column 51: unknown tag <voice>"):
        say("--file", "a.ssml", "-o", "e.wav", "--strict")
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(InputError, match=r"^empty\.txt: there is no word in the text"):
        say("--file", "empty.txt", "-o", "e.wav")
    with pytest.raises(InputError, match=r"^the model has no speaker 'Bob'"):  # not of the file
        say("--file", "empty.txt", "-o", "e.wav", "--speaker", "Bob")


def test_the_format_of_a_text_is_recognised_named_by_its_file_or_given(say, voice, tmp_path):
    plan = "# Plan\n\n[It](http://x.y) was so."
    (tmp_path / "a.md").write_text(plan)
    (tmp_path / "a.html").write_text("<h1>Plan</h1><p>It was so.")
    (tmp_path / "a.txt").write_text(plan)
    say(plan, "-o", "a.wav")
    say("--file", "a.md", "-o", "b.wav")
    say("--file", "a.html", "-o", "c.wav")
    say("--file", "a.txt", "--format", "markdown", "-o", "d.wav")
    sounds = {(tmp_path / f"{name}.wav").read_bytes() for name in "abcd"}
    assert len(sounds) == 1
    assert [word.text for word in voice(Markup(plan)).words] == ["Plan", "It", "was", "so"]
    say("--format", "text", plan, "-o", "e.wav")
    assert (tmp_path / "e.wav").read_bytes() not in sounds
    wav = voice("One. [pause:1.5] Two.").wav
    assert len(wav) == len(voice(Ssml("<speak>One. <break time='1.5s'/> Two.</speak>")).wav)
    assert voice.phone_names("One. [pause:1.5] Two.") == voice.phone_names("One. Two.")
    with pytest.raises(InputError, match="markup and pauses, and the pitch of each phone"):
        voice("One. [pause:1.5]", pitch=(100.0,))


def test_other_scripts_and_a_long_text_that_ends_like_a_file_name_are_spoken(say, tmp_path):
    say(f"Read this.{' ' * 300}It is in notes.txt", "-o", "c.wav")
    assert (tmp_path / "c.wav").is_file()
    say("Hello, Привет, π and 习近平", "-o", "a.wav")
    say("Hello, Privet, pie and Xi Jin Ping", "-o", "b.wav")
    (a, _), (b, _) = soundfile.read("a.wav"), soundfile.read("b.wav")
    assert np.array_equal(a, b)


def test_files_say_that_they_are_synthetic_unless_told_not_to(say, voice, tmp_path):
    (tmp_path / "tale.txt").write_text("It was so.")
    for words, name in ((("Yes.",), "a.flac"), (("tale.txt",), "book")):
        say(*words, "-o", f"tagged/{name}")
        say(*words, "-o", f"plain/{name}", "--no_tags")
    folders = (tmp_path / "tagged", tmp_path / "plain")
    tagged, plain = (sorted(folder.rglob("*.flac")) for folder in folders)
    assert [path.name for path in tagged] == [path.name for path in plain]
    for one, other in zip(tagged, plain, strict=True):
        assert soundfile.SoundFile(one).comment == voice.tag
        assert soundfile.SoundFile(other).comment == ""
        assert np.array_equal(soundfile.read(one)[0], soundfile.read(other)[0])
    assert len(tagged) == 2


def test_without_sound_it_writes_a_new_file_and_names_it(say, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "sounddevice", None)  # PortAudio is not installed
    say(TEXT)
    say(TEXT)
    assert capsys.readouterr().err == "speech.wav\nspeech-2.wav\n"
    assert (tmp_path / "speech.wav").read_bytes() == (tmp_path / "speech-2.wav").read_bytes()


def test_with_a_sound_device_it_plays_piece_by_piece(say, voice, monkeypatch, tmp_path):
    device = MagicMock(PortAudioError=RuntimeError)
    monkeypatch.setitem(sys.modules, "sounddevice", device)
    say(TEXT)
    device.OutputStream.assert_called_once_with(22050, channels=1, dtype="float32")
    written = device.OutputStream.return_value.__enter__.return_value.write.call_args_list
    assert len(written) == 3  # two sentences and a pause
    played = np.concatenate([call.args[0] for call in written])
    assert np.array_equal(played[:, 0], spoken(voice))
    assert list(tmp_path.iterdir()) == []


def test_a_book_becomes_a_folder(say, tmp_path, capsys):
    (tmp_path / "tale.md").write_text("# One\n\nIt was so.\n\n# Two\n\nWas it?\n")
    say("tale.md", "-o", "out", "--book_format", "mp3", "--pace", "2")
    names = ["01_One.mp3", "02_Two.mp3", "manifest.json", "playlist.m3u8"]
    assert sorted(path.name for path in (tmp_path / "out").glob("[!.]*")) == names
    assert capsys.readouterr().err.splitlines()[-1] == "out"
    with pytest.raises(InputError, match="different settings; choose another folder"):
        say("tale.md", "-o", "out", "--book_format", "mp3")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tale.txt"], r"tale\.txt is a book: -o needs a folder"),
        (["tale.txt", "-o", "a.mp3"], r"tale\.txt is a book: -o needs a folder"),
        (["tale.txt", "-o", "out", "--ssml"], "--format and --ssml go with a text, not"),
        (["tale.txt", "-o", "out", "--format", "html"], "--format and --ssml go with a text"),
        (["tale.txt", "-o", "out", "--subtitles", "a.srt"], "--subtitles, --format and --ssml"),
        (["tale.txt", "-o", "out", "--subtitles", "a.txt"], "--subtitles, --format and --ssml"),
        (["no.epub", "-o", "out"], r"no\.epub: no such file"),
        (["no.txt", "-o", "a.mp3"], r"no\.txt: no such file"),
        (["a.ssml", "-o", "a.mp3"], r"a\.ssml is a file of SSML: read it with --file"),
        (["a.pdf", "-o", "out"], r"a\.pdf: \.pdf is no format of a book \(\.txt, \.md, \.epub\)"),
        (["--file", "tale.epub", "-o", "a.mp3"], r"tale\.epub is a book: give it as TEXT"),
        ([TEXT, "-o", "out"], r"out: expected .* a folder goes with the file of a book"),
        ([TEXT, "-o", "a.mp3", "--book_format", "mp3"], "--book_format goes with a book"),
        ([TEXT, "-o", "a.mp3", "--format", "mp3"], "--format 'mp3': expected auto, text"),
        (["no.html", "-o", "a.mp3"], r"no\.html: no such file"),
        ([TEXT, "-o", "a.txt"], r"a\.txt: expected -, or one of \.wav"),
    ],
)
def test_flags_of_books_and_texts_do_not_mix(say, tmp_path, monkeypatch, words, message):
    monkeypatch.setattr(Synthesizer, "__init__", None)
    for name in ("tale.txt", "tale.epub", "a.ssml", "a.pdf"):
        (tmp_path / name).write_text(TEXT)
    with pytest.raises(UsageError, match=message):
        say(*words)


def test_a_reader_that_leaves_ends_the_command_without_a_word(folder):
    process = Process("-m", "bins.say", TEXT, "-o", "-", "--voice", folder)
    assert process.stdout.buffer.read(4) == b"RIFF"
    process.stdout.close()
    done = process.finish()
    assert (done.returncode, done.stderr) == (0, "")
