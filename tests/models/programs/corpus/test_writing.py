"""The command `arion corpus`: a corpus of one recording that differs from its text."""

import csv
import shutil
from itertools import pairwise

import numpy as np
import pytest
import soundfile

from config.preprocess import CorpusConfig
from models.programs.corpus import writing
from models.programs.corpus.clips import CorpusClip
from preprocessors.corpora import read_corpus
from processors.audio.loudness import loudness
from processors.metrics.recognition.user_models import UserFunctionError
from processors.records import TimedWord
from tests.commands import ROOT, command
from utils.files import read_jsonl

DEMO = ROOT / "egs" / "_demo" / "LJSpeech-mini"
# in the order of the recording; the second is not in the text, and the first is repeated
SPOKEN = ("LJ011-0202", "LJ042-0094", "LJ001-0011", "LJ011-0202", "LJ002-0174")
BOOK = """CHAPTER I

The uncle claimed her. The husband resisted.

Nobody has read this paragraph aloud.

It is of the first importance that the letter used should be fine in form;

Mr. Buxton's friends at once paid the forty shillings, and the boy was released.
"""
RATE = 22050
EMPTY = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"
CLIP = {"a.flac": None}  # a clip of the demo


def hear(wav, rate, language):
    """A recogniser that knows one text."""
    assert (rate, wav.dtype, language) == (16000, np.float32, "de")
    return "Guten | Tag."


def spans():
    """Start and end of each clip of `SPOKEN` in the recording, in seconds."""
    edges = [0.0]
    for id in SPOKEN:
        edges.append(edges[-1] + soundfile.info(DEMO / "wavs" / f"{id}.flac").duration + 0.4)
    return [(start, end - 0.4) for start, end in pairwise(edges)]


def corpus(*words, module="corpus"):
    return command(module, *words, "--num_workers", "1")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A folder with a recording and its book."""
    folder = tmp_path_factory.mktemp("recordings")
    wavs = [soundfile.read(DEMO / "wavs" / f"{id}.flac")[0] for id in SPOKEN]
    pause = np.zeros(round(0.4 * RATE))
    wav = np.concatenate([part for wav in wavs for part in (wav, pause)])
    soundfile.write(folder / "part 1.flac", np.stack([0.1 * wav, 0.1 * wav], axis=1), RATE)
    (folder / "part 1.txt").write_text(BOOK)
    return folder


@pytest.fixture(scope="module")
def made(recording, tmp_path_factory):
    """The corpus of it."""
    out = tmp_path_factory.mktemp("corpus") / "out"
    done = corpus(recording, out)
    assert done.returncode == 0, done.stderr
    return out


def test_clips_have_what_is_spoken_and_stage_1_reads_them(made):
    listing = read_corpus("folder", made, CorpusConfig(format="folder"))
    texts = [utterance.text for utterance in listing.utterances]
    assert [text for text in texts if "uncle" in text] == [BOOK.split("\n\n")[1]] * 2
    joined = " ".join(texts)
    assert BOOK.split("\n\n")[3] in joined
    assert "the boy was released." in joined
    assert "Soviet" not in joined
    assert "paragraph" not in joined
    assert not listing.rejected


def test_clips_are_cut_where_the_speech_is(made):
    rows = read_jsonl(made / "clips.jsonl")
    edges = np.array(spans())
    for row in rows:
        start_s, end_s = edges[np.argmin(abs(edges[:, 0] - row["start_s"]))]
        info = soundfile.info(made / "wavs" / f"{row['id']}.wav")
        before_s = min(row["start_s"], 0.1)
        assert abs(info.duration - (row["end_s"] - row["start_s"]) - before_s - 0.1) < 0.01
        if row["text"].startswith(("The uncle", "It is", "Mr.")):
            assert start_s - 0.01 <= row["start_s"] < start_s + 0.3
        if row["text"].endswith(("resisted.", "form;", "released.")):
            end_s = edges[np.argmin(abs(edges[:, 1] - row["end_s"])), 1]
            assert end_s - 0.4 < row["end_s"] <= end_s + 0.05


def test_clips_have_the_loudness_of_all_and_the_format_of_the_recording(made):
    paths = sorted((made / "wavs").iterdir())
    infos = {(i.samplerate, i.channels, i.subtype) for i in map(soundfile.info, paths)}
    assert infos == {(RATE, 1, "PCM_16")}
    lufs, peak = loudness((soundfile.read(path)[0] for path in paths), RATE)
    assert lufs == pytest.approx(-23, abs=0.05)
    assert peak < 10 ** (-1 / 20)


def test_clips_are_read_in_one_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_BLOCK", 700)
    wav = np.random.default_rng(0).uniform(-0.5, 0.5, 10_000).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", wav, 1000, subtype="FLOAT")
    spans = [(0.05, 0.5, 0.0, 0.58), (0.62, 1.5, 0.6, 9.0), (7.0, 9.95, 6.95, 10.0)]
    clips = [CorpusClip("a", a, b, "", 0.0, "", before, after) for a, b, before, after in spans]
    with soundfile.SoundFile(tmp_path / "a.wav") as file:
        for _ in range(2):
            sounds = [sound.tolist() for sound in writing._sounds(file, clips)]
            parts = wav[0:580], wav[600:1600], wav[6950:10000]
            assert sounds == [part.tolist() for part in parts]


def test_what_is_left_out_is_listed_with_the_reason(made):
    with (made / "left_out.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    unread = [row["text"] for row in rows if row["reason"] == "not found in the recordings"]
    assert "Nobody has read this paragraph aloud." in " ".join(unread)
    start_s, end_s = spans()[1]
    spoken = [row for row in rows if row["recording"]]
    assert sum(start_s < float(row["start_s"]) < end_s for row in spoken) > 0
    assert all(row["reason"] for row in rows)


def test_report_plays_clips_and_what_is_left_out(made):
    page = (made / "report.html").read_text(encoding="utf-8")
    for row in read_jsonl(made / "clips.jsonl"):
        assert f'src="wavs/{row["id"]}.wav"' in page
        assert row["text"].split(",")[0].replace("'", "&#x27;") in page
    assert "part%201.flac#t=" in page
    assert "<script" not in page


def test_finished_recordings_are_not_done_again(recording, tmp_path, monkeypatch):
    for name in ("a", "b"):
        shutil.copy(recording / "part 1.flac", tmp_path / f"{name}.flac")
        (tmp_path / f"{name}.txt").write_text(BOOK)
    calls = []

    def heard(self, _key, pieces):
        calls.append(self.samples.stem)
        if len(calls) == 2:
            raise UserFunctionError("stopped")
        names = ["the", "uncle", "claimed", "her", "the", "husband", "resisted"]
        return [TimedWord(name, 0.4 * n, 0.4 * n + 0.4) for n, name in enumerate(names)]

    monkeypatch.setattr(writing.recognition.Recogniser, "words", heard)
    out = tmp_path / "out"
    assert "stopped" in corpus(tmp_path, out).stderr
    done = corpus(tmp_path, out)
    assert done.returncode == 0, done.stderr
    assert calls == ["a", "b", "b"]
    assert [row["id"] for row in read_jsonl(out / "clips.jsonl")] == ["a-00001", "b-00001"]
    assert "nothing is left to do" in corpus(tmp_path, out).stderr
    (tmp_path / "a.txt").write_text("Another text.")
    done = corpus(tmp_path, out)
    assert done.returncode == 1
    assert "holds a corpus of other settings; choose another folder" in done.stderr
    assert "text a.txt was SHA-256" in done.stderr
    (tmp_path / "b.txt").rename(tmp_path / "b.md")
    faults = corpus(tmp_path, out).stderr
    assert "text b.txt is missing" in faults
    assert "text b.md is new" in faults
    assert "OUT is a folder for the corpus alone" in corpus(out, out).stderr


def test_recogniser_writes_the_texts_of_recordings_without_one(recording, tmp_path):
    (tmp_path / "in").mkdir()
    shutil.copy(recording / "part 1.flac", tmp_path / "in" / "p.flac")
    function = f"{__name__}:hear"
    done = corpus(tmp_path / "in", tmp_path / "o", "--language", "de", "--recogniser", function)
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "o" / "metadata.csv").read_text().splitlines()
    assert rows[0] == "id|text"
    assert {row.split("|", 1)[1] for row in rows[1:]} == {"Guten Tag."}
    lengths = [soundfile.info(path).duration for path in (tmp_path / "o" / "wavs").iterdir()]
    assert sum(lengths) == pytest.approx(sum(end - start for start, end in spans()), rel=0.1)
    assert min(lengths) >= 1
    assert max(lengths) <= 15.2


@pytest.mark.parametrize(
    ("files", "words", "message"),
    [
        ({}, "", "no recording; expected .wav, .flac"),
        ({"a.m4a": b"1"}, "", "a.m4a: convert it: ffmpeg -i a.m4a a.flac"),
        ({"a.wav": b"no sound"}, "", "a.wav: not readable as audio"),
        ({"a.wav": EMPTY}, "", "a.wav: it has no samples; record it again"),
        (CLIP, "", "a.flac has no text; give --text, a text next to it, or --recogniser"),
        (CLIP | {"a.txt": b"Hallo."}, "--language de", "knows English only; give --recogniser"),
        (CLIP | {"a.srt": b"Hello."}, "", "a.srt: no subtitles; expected lines such as"),
        (CLIP | {"a.txt": b"Hi."}, "--recogniser none:f", "none:f: cannot be imported"),
        (CLIP | {"a.txt": b"Hi.", "out/x": b""}, "", "holds 'x' and no corpus; choose a new"),
        (CLIP | {"out": b""}, "", "out: OUT is a folder for the corpus alone; choose a new one"),
    ],
)
def test_refusals_name_the_file_and_the_remedy(tmp_path, files, words, message):
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if content is None:
            shutil.copy(DEMO / "wavs" / "LJ002-0020.flac", path)
        else:
            path.write_bytes(content)
    done = corpus(tmp_path, tmp_path / "out", *words.split())
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
