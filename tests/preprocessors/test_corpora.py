import hashlib
import io
import json
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import preprocessors
from config.preprocess import CorpusConfig
from preprocessors import ljspeech
from preprocessors.corpora import (
    Archive,
    Corpus,
    archive_of,
    dataset_folder,
    fetch_archive,
    find_format,
    known_formats,
    licence_of,
    published,
    read_corpus,
    read_origin,
)
from preprocessors.manifest import Origin
from utils.errors import InputError

ROOT = Path(__file__).parents[2]


def test_formats_are_found_by_file_name_however_their_record_is_written(tmp_path, monkeypatch):
    assert known_formats() == ["audio_folder", "folder", "libritts", "ljspeech", "vctk"]
    for name in known_formats():
        assert isinstance(find_format(name, CorpusConfig()), Corpus)
    code = "from preprocessors.ljspeech import CORPUS as LJSPEECH\nCORPUS: object = LJSPEECH\n"
    (tmp_path / "mine.py").write_text(code)
    monkeypatch.setattr(preprocessors, "__path__", [*preprocessors.__path__, str(tmp_path)])
    assert find_format("mine", CorpusConfig()) is ljspeech.CORPUS


def test_a_file_without_a_record_is_named(tmp_path, monkeypatch):
    (tmp_path / "unfinished.py").write_text('"""\nCORPUS = to be written\n"""\n')
    monkeypatch.setattr(preprocessors, "__path__", [*preprocessors.__path__, str(tmp_path)])
    match = r"preprocessors/unfinished\.py does not end with CORPUS = Corpus"
    with pytest.raises(InputError, match=match):
        find_format("unfinished", CorpusConfig())


def test_another_dataset_is_read_by_the_format_that_the_config_names():
    options = CorpusConfig(format="ljspeech", speaker="Linda")
    found = read_corpus("demo", ROOT / "egs/_demo/LJSpeech-mini", options)
    assert len(found.utterances) == 55
    assert {u.speaker for u in found.utterances} == {"Linda"}


@pytest.mark.parametrize("name", ["split", "manifest", "collector", "corpora", "parquet"])
def test_a_dataset_named_as_a_helper_module_has_no_format_of_its_own(name):
    match = rf"^preprocess\.corpus\.{name}\.format: unknown .* \(folder: your own recordings;"
    with pytest.raises(InputError, match=match):
        find_format(name, CorpusConfig())


@pytest.mark.parametrize(
    ("fields", "message"),
    [("utterances=print, licens=''", "argument 'licens'"), ("", "argument: 'utterances'")],
)
def test_a_wrong_field_of_a_corpus_names_file_and_field(fields, message, tmp_path, monkeypatch):
    start = "from preprocessors.corpora import Corpus\n"
    (tmp_path / "broken.py").write_text(f"{start}CORPUS = Corpus({fields})\n")
    monkeypatch.setattr(preprocessors, "__path__", [*preprocessors.__path__, str(tmp_path)])
    with pytest.raises(InputError, match=rf"preprocessors/broken\.py, line \d+: .*{message}"):
        find_format("broken", CorpusConfig())
    assert "broken" in known_formats()
    assert licence_of("LJSpeech", CorpusConfig()) == "public domain"


@pytest.mark.parametrize("path", ["", " ", "[dataset path]", "<folder>", "/path/to/LJSpeech"])
def test_a_placeholder_or_no_path_is_an_error_that_says_which_key_to_set(path):
    with pytest.raises(InputError, match=r"dataset_path\.LJSpeech is .*: set it to the folder"):
        dataset_folder("LJSpeech", {"LJSpeech": path})
    with pytest.raises(InputError, match=r"dataset_path\.VCTK is ''"):
        dataset_folder("VCTK", {"LJSpeech": path})


UNKNOWN = r"unknown corpus format 'ljspech'; known: .*, vctk .*did you mean ljspeech\?"


@pytest.mark.parametrize(
    ("name", "format", "message"),
    [
        ("LJSpech", "", rf"preprocess\.corpus\.LJSpech\.format: {UNKNOWN}"),
        ("LJSpeech", "", r"no folder .*none; set dataset_path\.LJSpeech .*; stage 0 fetches this"),
        ("Mine", "ljspeech", r"set dataset_path\.Mine to the folder of the corpus$"),
        ("../x", "folder", r"^dataset: '../x' is not a safe id"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_an_error_with_the_remedy(tmp_path, name, format, message):
    config = CorpusConfig(format=format) if format else CorpusConfig()
    with pytest.raises(InputError, match=message):
        read_corpus(name, tmp_path / "none", config)


def test_relative_dataset_paths_start_at_the_repository_root():
    assert dataset_folder("x", {"x": "data/x"}) == ROOT / "data/x"
    assert dataset_folder("x", {"x": "/data/x"}) == Path("/data/x")
    assert dataset_folder("x", {"x": "~/x"}) == Path.home() / "x"


def test_the_licence_of_a_published_corpus_is_known_and_that_of_ones_own_is_what_one_says():
    assert licence_of("LJSpeech", CorpusConfig()) == "public domain"
    assert licence_of("ljspeech", CorpusConfig(format="LJSpeech")) == "public domain"
    assert licence_of("VCTK", CorpusConfig()).startswith("CC BY 4.0")
    assert licence_of("LibriTTS", CorpusConfig()) == "CC BY 4.0"
    assert licence_of("mine", CorpusConfig(format="ljspeech")) == ""
    assert licence_of("unheard of", CorpusConfig()) == ""
    assert licence_of("mine", CorpusConfig(format="folder", licence="CC0")) == "CC0"
    assert published("LJSpeech", CorpusConfig()).hub_name == "keithito/lj_speech"
    assert published("mine", CorpusConfig(format="ljspeech")) is None
    assert archive_of("LJSpeech", CorpusConfig()).url.endswith("LJSpeech-1.1.tar.bz2")
    assert archive_of("mine", CorpusConfig(format="ljspeech")) is None
    assert archive_of("mine", CorpusConfig(format="folder")) is None


@pytest.mark.parametrize("content", ["[]", "{}", '{"source": "the web"}'])
def test_a_file_of_others_with_the_name_of_an_origin_says_nothing(tmp_path, content):
    (tmp_path / "corpus.json").write_text(content)
    (tmp_path / "metadata.csv").write_text("a|Hello.\n")
    (tmp_path / "a.wav").touch()
    listing = read_corpus("mine", tmp_path, CorpusConfig(format="folder"))
    assert (listing.origin, listing.notices) == (Origin(), [])


@pytest.mark.parametrize(
    ("origin", "message"),
    [({"spoken_by": "Toy 1"}, "missing key licence"), ("the web", "expected a section"),
     ({"spoken_by": "Toy 1", "licence": None}, "licence"),
     ({"spoken_by": "Toy 1", "licence": "", "url": 1}, "url")],
)  # fmt: skip
def test_a_damaged_origin_is_refused(tmp_path, origin, message):
    (tmp_path / "corpus.json").write_text(json.dumps({"origin": origin}))
    with pytest.raises(InputError, match=f"corpus.json.*{message}"):
        read_origin(tmp_path / "corpus.json")


FILES = {"Tiny-1.0/wavs/a.wav": bytes(50_000), "Tiny-1.0/metadata.csv": b"a|One.\n"}


def tar_of(files, kind="bz2"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{kind}") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


class Server(HTTPServer):
    """Serves one file at any path, with ranges; breaks the connection on request."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = b""
        self.break_after = []  # bytes to send before breaking off, per request
        self.ranges = True
        self.status = []  # codes to answer with, per request
        self.requests = []  # the Range header of each request

    def archive(self, name, sha256=None):
        checksum = sha256 or hashlib.sha256(self.content).hexdigest()
        url = f"http://127.0.0.1:{self.server_port}/{name}"
        return Archive(url, checksum, "Tiny 1.0: public domain", "metadata.csv")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        wanted = self.headers.get("Range")
        self.server.requests.append(wanted)
        if self.server.status:
            self.send_error(self.server.status.pop(0))
            return
        content = self.server.content
        start = int(wanted[len("bytes=") : -1]) if wanted and self.server.ranges else 0
        if start and start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = start + self.server.break_after.pop(0) if self.server.break_after else None
        self.wfile.write(content[start:end])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as server:
        server.content = tar_of(FILES)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def fetch(archive, root, **options):
    waits = []
    fetch_archive(archive, root, wait=waits.append, **options)
    return waits


def tree(root):
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


UNPACKED = {name.removeprefix("Tiny-1.0/"): content for name, content in FILES.items()}


@pytest.mark.parametrize(
    ("kind", "content"),
    [("tar.bz2", tar_of(FILES)), ("tar.gz", tar_of(FILES, "gz")), ("zip", zip_of(UNPACKED))],
)
def test_an_archive_is_fetched_and_unpacked_without_a_top_folder(server, tmp_path, kind, content):
    server.content = content
    fetch(server.archive(f"tiny.{kind}"), tmp_path / "deep/er/tiny")
    assert tree(tmp_path / "deep/er/tiny") == UNPACKED
    assert {path.name for path in (tmp_path / "deep/er").iterdir()} == {"tiny", f"tiny.{kind}"}


def test_a_second_call_says_the_licence_and_fetches_nothing(server, tmp_path, caplog):
    archive = server.archive("tiny.tar.bz2")
    with caplog.at_level("INFO", logger="arion"):
        fetch(archive, tmp_path / "tiny")
        fetch(archive, tmp_path / "tiny")
    assert caplog.messages.count("Tiny 1.0: public domain") == 2
    assert server.requests == [None]


@pytest.mark.parametrize("ranges", [True, False])  # without, all of it is sent again
def test_an_interrupted_download_goes_on_where_it_ended(server, tmp_path, ranges):
    server.break_after, server.status, server.ranges = [60, 40], [503], ranges
    waits = fetch(server.archive("tiny.tar.bz2"), tmp_path / "tiny")
    assert server.requests[:3] == [None, None, "bytes=60-"]
    assert server.requests[3] == ("bytes=100-" if ranges else "bytes=40-")
    assert waits == [2.0, 4.0, 8.0]
    assert tree(tmp_path / "tiny") == UNPACKED


def test_a_later_run_continues_the_download(server, tmp_path):
    server.break_after = [60]
    archive = server.archive("tiny.tar.bz2")
    with pytest.raises(InputError, match=r"ended after 60 of \d+ bytes; run stage 0 again to"):
        fetch(archive, tmp_path / "tiny", attempts=1)
    fetch(archive, tmp_path / "tiny")
    assert server.requests == [None, "bytes=60-"]
    assert tree(tmp_path / "tiny") == UNPACKED


@pytest.mark.parametrize("suffix", [".part", ""])
def test_a_download_that_is_whole_already_is_used(server, tmp_path, suffix):
    (tmp_path / f"tiny.tar.bz2{suffix}").write_bytes(server.content)
    fetch(server.archive("tiny.tar.bz2"), tmp_path / "tiny")
    assert server.requests == ([f"bytes={len(server.content)}-"] if suffix else [])
    assert tree(tmp_path / "tiny") == UNPACKED


def test_a_wrong_checksum_or_an_archive_of_another_corpus_is_an_error(server, tmp_path):
    with pytest.raises(InputError, match=r"SHA-256 is [0-9a-f]{64}, expected 0000.* Remove it and"):
        fetch(server.archive("tiny.tar.bz2", sha256="0" * 64), tmp_path / "tiny")
    assert not (tmp_path / "tiny").exists()
    server.content = tar_of({"Other/readme": b""})
    with pytest.raises(InputError, match=r"holds no metadata\.csv; is it another corpus"):
        fetch(server.archive("other.tar.bz2"), tmp_path / "tiny")


def test_a_server_without_the_file_or_out_of_reach_is_an_error(server, tmp_path):
    server.status = [404]
    with pytest.raises(InputError, match=r"tiny\.tar\.bz2: the server answers 404 Not Found"):
        fetch(server.archive("tiny.tar.bz2"), tmp_path / "tiny")
    assert len(server.requests) == 1
    archive = server.archive("tiny.tar.bz2")._replace(url="http://127.0.0.1:1/tiny.tar.bz2")
    with pytest.raises(InputError, match=r"Connection refused.*; run stage 0 again to continue"):
        fetch(archive, tmp_path / "tiny", attempts=2)


@pytest.mark.parametrize("name", ["../evil", "Tiny-1.0/../../evil"])
def test_a_tar_that_would_write_outside_of_its_folder_is_refused(server, tmp_path, name):
    server.content = tar_of({**FILES, name: b"evil"})
    with pytest.raises(InputError, match=r"tiny\.\S+ cannot be unpacked: .*outside"):
        fetch(server.archive("tiny.tar.bz2"), tmp_path / "in/tiny")
    assert list(tmp_path.rglob("evil")) == []
    assert not (tmp_path / "in/tiny").exists()


def test_files_that_are_there_already_are_never_replaced(server, tmp_path):
    (tmp_path / "tiny/wavs").mkdir(parents=True)
    (tmp_path / "tiny/wavs/mine.wav").write_bytes(b"mine")
    with pytest.raises(InputError, match="wavs is in the way; remove it"):
        fetch(server.archive("tiny.tar.bz2"), tmp_path / "tiny")
    assert tree(tmp_path / "tiny") == {"wavs/mine.wav": b"mine"}


def test_unpacking_that_was_killed_is_done_again(server, tmp_path):
    (tmp_path / "tiny.unpacking/Tiny-1.0").mkdir(parents=True)
    (tmp_path / "tiny.unpacking/Tiny-1.0/half").touch()
    fetch(server.archive("tiny.tar.bz2"), tmp_path / "tiny")
    assert tree(tmp_path / "tiny") == UNPACKED
