"""What the readers of corpora share."""

from pathlib import Path

import pytest

from config.preprocess import CorpusConfig
from preprocessors.collector import AudioFiles, Collector, audio_in, read_text, require_layout
from preprocessors.manifest import Rejection
from utils.errors import InputError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("wavs/b.flac", "wavs/a.wav", "wavs/a.flac", "wavs/._a.wav", "c.WAV", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_entries_become_utterances_or_rejections_sorted_by_id():
    collector = Collector("mini", CorpusConfig(language="nl"))
    collector.add("b", "Tekst.", [Path("b.wav")], "t.csv:1", "anna")
    collector.add("a", "Tekst.", [Path("a.wav")], "t.csv:2")
    collector.add("c", "", [Path("c.wav")], "t.csv:3")
    collector.add("d", "Tekst.", [], "t.csv:4")
    listing = collector.listing()
    found = [(u.id, u.speaker, u.language) for u in listing.utterances]
    assert found == [("a", "mini", "nl"), ("b", "mini_anna", "nl")]
    assert listing.rejected == [
        Rejection("c", "corpus", "t.csv:3: the text is empty"),
        Rejection("d", "corpus", "t.csv:4: no audio file d (.wav, .flac, .mp3 ...)"),
    ]
    collector = Collector("mini", CorpusConfig())  # without usable entries
    collector.add("a", "", [Path("a.wav")], "t.csv:1")
    match = r"no usable utterances, 1 rejected\n  t\.csv:1: the text is"
    with pytest.raises(InputError, match=match):
        collector.listing()


def test_audio_is_found_in_the_folders_by_its_name_with_or_without_suffix(root):
    assert list(audio_in(root / "wavs")) == ["a", "b"]  # hidden files are none
    assert audio_in(root / "nowhere") == {}
    files = AudioFiles(root, (".", "wavs"))
    assert files.find("a") == [root / "wavs/a.flac", root / "wavs/a.wav"]
    assert files.find("a.flac") == [root / "wavs/a.flac"]
    assert files.find("c") == files.find("c.mp3") == [root / "c.WAV"]
    assert files.find("missing") == []
    assert files.unlisted() == ["wavs/b.flac"]


def test_another_layout_is_an_error_that_names_the_folder_that_fits(root):
    with pytest.raises(InputError, match=r"expected wavs/ in .*wavs; .*; \S+ looks right"):
        require_layout(root / "wavs", "mini", "wavs/", "wavs/")
    require_layout(root, "mini", "wavs/", "wavs/")


def test_text_is_decoded_as_configured_and_a_wrong_byte_is_named(root):
    (root / "t.csv").write_bytes("a|caf\xe9\r\nb|\xe9".encode("latin-1"))
    assert read_text(root / "t.csv", "mini", CorpusConfig(encoding="latin-1")) == "a|café\nb|é"
    with pytest.raises(InputError, match=r"t\.csv:1: byte 0xe9 is not utf-8.*mini\.encoding"):
        read_text(root / "t.csv", "mini", CorpusConfig())


@pytest.mark.parametrize(
    "encoding", ["punycode", "idna", "unicode_escape", "hex", "rot13", "undefined", "\0", ""]
)
def test_an_encoding_that_is_not_of_text_is_refused(root, encoding):
    (root / "t.csv").write_text("a|One.\nb|Two.\n")
    with pytest.raises(InputError, match=r"mini\.encoding: .* is no encoding of text; use utf-8"):
        read_text(root / "t.csv", "mini", CorpusConfig(encoding=encoding))
