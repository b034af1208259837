"""A book becomes files: even loudness, times, and the same bytes after a run that was killed."""

import json
import re
import signal
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import soundfile

from models.base.assets import Speaker
from models.programs.books.reading import Book, Chapter
from models.programs.books.speaking import file_names, speak_book
from models.synthesizer.settings import Settings
from models.synthesizer.synthesizer import Synthesizer
from processors.audio.loudness import loudness
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.models.synthesizer.test_vocoders import make_vocoder
from tests.processes import Process
from utils.errors import InputError

ONE = Chapter("One: the start", ("One.", "It was so. Was it?", "It was."))
BOOK = Book("A tale", (ONE, Chapter("Two", ("Two.", "So it is. And so it was."))))
N_SENTENCES = 7
NAMES = ["01_One_the_start.flac", "02_Two.flac"]


@pytest.fixture(scope="module")
def voice(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    return Synthesizer(make_voice(folder / "a"), make_vocoder(folder / "vocoder"))


@pytest.fixture
def loud(monkeypatch, voice):
    """A voice of 8 dB less in the second chapter, and the sentences that it was asked for."""
    sentences = []

    def generate(text, _settings):
        sentences.append(text)
        generator = np.random.default_rng(len(text))
        level = 0.04 if re.match("Two|So|And", text) else 0.1
        yield (level * generator.standard_normal(22050)).astype(np.float32)

    monkeypatch.setattr(voice, "generate", generate)
    return sentences


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


def speak(voice, folder, book=BOOK, format="flac", **settings):
    speak_book(book, folder, voice, Settings(**settings), format)


def test_a_folder_holds_chapters_a_playlist_and_the_times_of_sentences(voice, tmp_path):
    speak(voice, tmp_path)
    files = files_of(tmp_path)
    assert sorted(files) == sorted([*NAMES, "manifest.json", "playlist.m3u8"])
    manifest = json.loads(files["manifest.json"])
    assert [chapter["file"] for chapter in manifest["chapters"]] == NAMES
    first, second = manifest["chapters"]
    assert (first["start"], second["start"]) == (0, first["seconds"])
    texts = [[s["text"] for s in p["sentences"]] for p in first["paragraphs"]]
    assert texts == [["One."], ["It was so.", "Was it?"], ["It was."]]

    wav, rate = soundfile.read(tmp_path / NAMES[0])
    assert first["seconds"] == pytest.approx(len(wav) / rate, abs=1e-3)
    for paragraph in first["paragraphs"]:
        for sentence in paragraph["sentences"]:
            expected = voice(sentence["text"]).wav
            assert sentence["end"] - sentence["start"] == pytest.approx(len(expected) / rate, 2e-3)
            start = round(sentence["start"] * rate)
            found = np.pad(wav, 50)[start : start + len(expected) + 100]
            match = np.correlate(found, expected).max()
            assert match > 0.99 * np.linalg.norm(found) * np.linalg.norm(expected)
    edges = [sentence for p in first["paragraphs"] for sentence in p["sentences"]]
    pauses = [after["start"] - before["end"] for before, after in pairwise(edges)]
    assert pauses == pytest.approx([0.5, 0.25, 0.5], abs=2e-3)
    assert first["seconds"] - edges[-1]["end"] == pytest.approx(1, abs=2e-3)

    lines = files["playlist.m3u8"].decode().splitlines()
    seconds = [round(chapter["seconds"]) for chapter in manifest["chapters"]]
    assert lines[:2] == ["#EXTM3U", "#PLAYLIST:A tale"]
    assert lines[2:4] == [f"#EXTINF:{seconds[0]},One: the start", NAMES[0]]


def test_the_default_speaker_and_its_name_are_the_same_book(voice, tmp_path):
    speakers = Speaker("anna", "en-us"), Speaker("bert", "en-us")
    home = make_voice(tmp_path / "two", *speakers, default="bert")
    two = Synthesizer(home, voice.vocoder_name)
    speak(two, tmp_path / "book")
    files = files_of(tmp_path / "book")
    speak(two, tmp_path / "book", speaker="bert")
    assert files_of(tmp_path / "book") == files
    other = Synthesizer(home, voice.vocoder_name, overrides=["inference.speaker=anna"])
    with pytest.raises(InputError, match="different settings; choose another folder"):
        speak(other, tmp_path / "book")


def test_chapters_of_different_levels_have_one_loudness(voice, loud, tmp_path):
    speak(voice, tmp_path)
    found = [loudness([soundfile.read(tmp_path / name)[0]], 22050)[0] for name in NAMES]
    assert found == pytest.approx([-23, -23], abs=0.1)
    chapters = json.loads((tmp_path / "manifest.json").read_text())["chapters"]
    assert [chapter["loudness_lufs"] for chapter in chapters] == [-23, -23]


def test_peaks_beyond_full_scale_keep_a_chapter_softer_with_a_warning(
    voice, monkeypatch, tmp_path, caplog
):
    clicks = np.where(np.arange(22050) % 2205 == 0, 1, 1e-3).astype(np.float32)
    monkeypatch.setattr(voice, "generate", lambda *_: [clicks])
    speak(voice, tmp_path)
    wav, _ = soundfile.read(tmp_path / NAMES[0])
    assert np.abs(wav).max() == pytest.approx(10 ** (-1 / 20), abs=1e-3)
    assert f"{NAMES[0]} stays at -32.5 LUFS" in caplog.text
    assert "at -23 LUFS, its sample peak would exceed -1 dB of full scale" in caplog.text


def test_a_chapter_too_short_to_measure_keeps_its_level(voice, monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(voice, "generate", lambda *_: [np.ones(100, dtype=np.float32)])
    speak(voice, tmp_path, Book("B", (Chapter("One", ("So.",)),)), "wav", duration_control=0.1)
    wav, _ = soundfile.read(tmp_path / "01_One.wav")
    assert wav.max() > 0.99
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    chapters = json.loads((tmp_path / "manifest.json").read_text())["chapters"]
    assert chapters[0]["loudness_lufs"] is None


KILLED = """
import os, sys
from pathlib import Path
from models.programs.books import speaking
from models.synthesizer.synthesizer import Synthesizer
from models.synthesizer.settings import Settings
from tests.models.programs.books.test_speaking import BOOK

home, vocoder, out, where, n_left = *sys.argv[1:5], int(sys.argv[5])
def killing(function):
    def counted(*words):
        global n_left
        n_left -= 1
        if n_left < 0:
            if where == "write_array":  # half of a sentence is on disk
                (path,) = Path(out, ".unfinished").iterdir()
                Path(path, ".000009.1.npy").write_bytes(b"\\x99" * 1001)
            os.kill(os.getpid(), 9)
        return function(*words)
    return counted
setattr(speaking, where, killing(getattr(speaking, where)))
speaking.speak_book(BOOK, Path(out), Synthesizer(home, vocoder), Settings(seed=3), "ogg")
"""


@pytest.mark.parametrize(
    ("where", "n_left"), [("write_array", 5), ("_master", 0), ("_write_lists", 1)]
)
def test_after_a_kill_no_sentence_is_spoken_twice_and_the_bytes_are_the_same(
    voice, tmp_path, monkeypatch, where, n_left
):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    words = voice.model.home, voice.vocoder_name, killed, where, n_left
    assert Process("-c", KILLED, *words).finish().returncode == -signal.SIGKILL
    n_before = {"_master": 4, "_write_lists": N_SENTENCES}.get(where, n_left)

    speak(voice, whole, format="ogg", seed=3)
    sentences, generate = [], voice.generate
    monkeypatch.setattr(
        voice, "generate", lambda text, s: sentences.append(text) or generate(text, s)
    )
    speak(voice, killed, format="ogg", seed=3)
    assert len(sentences) == N_SENTENCES - n_before
    assert files_of(killed) == files_of(whole)
    assert not (killed / ".unfinished").exists()


def test_a_finished_book_is_not_spoken_again_but_a_missing_or_damaged_part_is(
    voice, loud, tmp_path, caplog
):
    speak(voice, tmp_path)
    before = files_of(tmp_path)
    (tmp_path / NAMES[0]).unlink()
    loud.clear()
    speak(voice, tmp_path)
    assert loud == ["One.", "It was so.", "Was it?", "It was."]
    assert files_of(tmp_path) == before
    speak(voice, tmp_path)
    assert len(loud) == 4
    (tmp_path / NAMES[0]).write_bytes(before[NAMES[0]][:1000])
    (tmp_path / NAMES[1]).unlink()
    parts = tmp_path / ".unfinished" / NAMES[1]
    parts.mkdir(parents=True)
    np.save(parts / "000000.npy", np.zeros(9, dtype=np.float32))
    (parts / "000001.npy").write_bytes((parts / "000000.npy").read_bytes()[:-1])
    speak(voice, tmp_path)

    assert f"damaged or changed, spoken again: {NAMES[0]}" in caplog.text
    assert (tmp_path / NAMES[0]).read_bytes() == before[NAMES[0]]
    assert f"{NAMES[1]}/000000.npy is damaged" not in caplog.text
    assert f"{NAMES[1]}/000001.npy is damaged: its sentence is spoken again" in caplog.text
    assert len(soundfile.read(tmp_path / NAMES[1])[0]) > 9


def test_another_text_voice_setting_or_format_is_refused(voice, loud, tmp_path, tmp_path_factory):
    speak(voice, tmp_path)
    lexicon = Synthesizer(voice.model.folder, voice.vocoder_name, lexicon={"so": "SOO-uh"})
    with pytest.raises(InputError, match=r"different voice \(or lexicon"):
        speak(lexicon, tmp_path)
    slower = make_voice(tmp_path_factory.mktemp("other"), pause_s=0.3)
    other = Synthesizer(slower, voice.vocoder_name)
    for change, name in [
        ({"book": BOOK._replace(title="Another")}, "text"),
        ({"seed": 1}, "settings"),
        ({"format": "mp3"}, "format"),
    ]:
        with pytest.raises(InputError, match=f"holds a book with different {name}; choose"):
            speak(voice, tmp_path, **change)
    with pytest.raises(InputError, match=r"different voice \(or lexicon[^)]+\) and settings; "):
        speak(other, tmp_path, seed=1)


@pytest.mark.parametrize("damage", [lambda m: m.pop("chapters"), lambda m: m.clear()])
def test_a_folder_of_something_else_is_left_alone_and_a_manifest_must_be_whole(
    voice, loud, tmp_path, damage
):
    (tmp_path / "holiday.jpg").write_text("")
    with pytest.raises(InputError, match=r"holds 'holiday\.jpg' and no book; choose a new folder"):
        speak(voice, tmp_path)
    assert list(files_of(tmp_path)) == ["holiday.jpg"]
    folder = tmp_path / "book"
    speak(voice, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    damage(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"manifest\.json is no manifest of a book; choose"):
        speak(voice, folder)


def test_a_text_that_cannot_be_spoken_is_found_before_the_first_sentence(voice, loud, tmp_path):
    book = Book("B", (Chapter("One", ("It was so.",)), Chapter("Two", ("So.", "A {HH QQ} b."))))
    with pytest.raises(InputError, match=r"chapter 'Two', paragraph 2: .*QQ"):
        speak(voice, tmp_path, book)
    assert loud == []
    speak(voice, tmp_path)  # the folder takes the corrected text
    assert sorted(files_of(tmp_path)) == sorted([*NAMES, "manifest.json", "playlist.m3u8"])


def test_titles_become_names_that_are_safe(voice, loud, tmp_path):
    titles = [
        "../../etc/passwd", "a\0b\x1b[2J\nc", "", "#EXTM3U", "CON", "è日" * 200, "\ud800", ". .",
    ]  # fmt: skip
    book = Book("\x1b[2J\n#B", tuple(Chapter(title, ("So.",)) for title in titles))
    names = file_names(book, "wav")
    assert names[:4] == ["01_etc_passwd.wav", "02_a_b_2J_c.wav", "03.wav", "04_EXTM3U.wav"]
    assert all(re.fullmatch(r"\d\d(_\w+)?\.wav", name) for name in names)
    assert all(len(name.encode()) < 230 for name in names)
    book = Book(book.title, book.chapters[:6])
    speak(voice, tmp_path / "out", book, "wav")
    assert sorted(files_of(tmp_path / "out")) == [*names[:6], "manifest.json", "playlist.m3u8"]
    lines = (tmp_path / "out" / "playlist.m3u8").read_text(encoding="utf-8").split("\n")
    assert lines[1] == "#PLAYLIST:\\x1b[2J #B"
    assert lines[3::2] == names[:6]
    assert all(line.startswith("#EXTINF:2,") for line in lines[2:-1:2])


def test_memory_does_not_grow_with_a_chapter_and_an_endless_sentence_is_spoken_in_parts(
    voice, loud, tmp_path
):
    peaks = []
    for n in (10, 100):
        tracemalloc.start()
        speak(voice, tmp_path / str(n), Book("B", (Chapter("One", ("It was so. " * n,)),)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 3e6  # the sound has 8 MB more
    loud.clear()
    speak(voice, tmp_path / "one", Book("B", (Chapter("One", ("so it was and " * 600,)),)))
    assert len(loud) > 2
    assert " ".join(loud).split() == ("so it was and " * 600).split()
