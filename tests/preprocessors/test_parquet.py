"""Parquet files with recordings in them."""

import pytest

from config.preprocess import CorpusConfig
from preprocessors.folder import utterances
from utils.errors import InputError

RIFF = b"RIFF of a recording"


def listing(root):
    return utterances(root, "Mine", CorpusConfig())


@pytest.fixture
def write(tmp_path):
    """Writes a table of columns."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def write_table(name, **columns):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        parquet.write_table(arrow.table(columns), path)
        return path

    return write_table


def test_recordings_are_unpacked_once_and_called_by_their_paths(write, tmp_path):
    contents = {"clip 1.wav": RIFF, "b.flac": b"fLaC", "c.wav": None}
    audio = [{"bytes": content, "path": path} for path, content in contents.items()]
    write("data/train-0.parquet", audio=audio, text=["One.", "Two.", "Three."], age=[1, 2, 3])
    found = listing(tmp_path)
    contents = {u.text: (u.name, u.audio.suffix, u.audio.read_bytes()) for u in found.utterances}
    assert contents == {"One.": ("clip 1.wav", ".wav", RIFF), "Two.": ("b.flac", ".flac", b"fLaC")}
    assert "train-0.parquet:3: no audio file c" in found.rejected[0].reason
    assert "columns that are not read: age" in found.notices[0]
    times = {u.audio: u.audio.stat().st_mtime_ns for u in found.utterances}
    assert {u.audio: u.audio.stat().st_mtime_ns for u in listing(tmp_path).utterances} == times


@pytest.mark.parametrize("paths", [[None, None], ["audio.wav", "audio.wav"]])
def test_recordings_without_different_paths_are_numbered(write, tmp_path, paths):
    pairs = zip((b"1", b"2"), paths, strict=True)
    audio = [{"bytes": RIFF + number, "path": name} for number, name in pairs]
    write("x.parquet", audio=audio, sentence=["1", "2"])
    found = {u.id: u.audio.read_bytes()[-1:] for u in listing(tmp_path).utterances}
    assert found == {"x-000000": b"1", "x-000001": b"2"}


def test_another_file_of_the_same_name_is_unpacked_again(write, tmp_path):
    for content in (b"RIFF", b"RIFF longer"):
        write("x.parquet", audio=[{"bytes": content, "path": "a.wav"}], text=["One."])
        assert listing(tmp_path).utterances[0].audio.read_bytes() == content


def test_recordings_may_lie_next_to_the_file(write, tmp_path):
    write("metadata.parquet", file_name=["a.wav"], text=["One."])
    (tmp_path / "a.wav").touch()
    assert listing(tmp_path).utterances[0].audio == tmp_path / "a.wav"


@pytest.mark.parametrize("size", [0, 4, 300])
def test_a_damaged_file_is_an_error_that_names_it(write, tmp_path, size):
    path = write("x.parquet", audio=[{"bytes": RIFF, "path": "a.wav"}] * 9, text=["One."] * 9)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(InputError, match=r"x\.parquet: not a whole Parquet file .*; copy it again"):
        listing(tmp_path)


def test_without_the_package_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "x.parquet").touch()
    with pytest.raises(InputError, match=r"needs pyarrow: pip install -e '\.\[datasets\]'"):
        listing(tmp_path)
