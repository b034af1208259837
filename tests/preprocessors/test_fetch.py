import hashlib
import io
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from preprocessors.fetch import Archive, fetch_archive
from utils.errors import InputError

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


@pytest.mark.parametrize("kind", ["bz2", "gz"])
def test_a_tar_is_fetched_and_unpacked_without_its_top_folder(server, tmp_path, kind):
    server.content = tar_of(FILES, kind)
    fetch(server.archive(f"tiny.tar.{kind}"), tmp_path / "deep/er/tiny")
    assert tree(tmp_path / "deep/er/tiny") == UNPACKED
    names = {path.name for path in (tmp_path / "deep/er").iterdir()}
    assert names == {"tiny", f"tiny.tar.{kind}"}


def test_a_zip_without_a_top_folder_is_fetched_and_unpacked(server, tmp_path):
    server.content = zip_of(UNPACKED)
    fetch(server.archive("tiny.zip"), tmp_path / "tiny")
    assert tree(tmp_path / "tiny") == UNPACKED


def test_a_second_call_fetches_nothing(server, tmp_path):
    archive = server.archive("tiny.tar.bz2")
    fetch(archive, tmp_path / "tiny")
    fetch(archive, tmp_path / "tiny")
    assert server.requests == [None]


def test_an_interrupted_download_goes_on_where_it_ended(server, tmp_path):
    server.break_after = [60, 40]
    server.status = [503]
    waits = fetch(server.archive("tiny.tar.bz2"), tmp_path / "tiny")
    assert server.requests == [None, None, "bytes=60-", "bytes=100-"]
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


def test_a_server_without_ranges_sends_all_of_it_again(server, tmp_path):
    server.break_after = [60]
    server.ranges = False
    fetch(server.archive("tiny.tar.bz2"), tmp_path / "tiny")
    assert tree(tmp_path / "tiny") == UNPACKED


def test_a_download_that_was_killed_after_its_last_byte_is_used(server, tmp_path):
    (tmp_path / "tiny.tar.bz2.part").write_bytes(server.content)
    fetch(server.archive("tiny.tar.bz2"), tmp_path / "tiny")
    assert server.requests == [f"bytes={len(server.content)}-"]
    assert tree(tmp_path / "tiny") == UNPACKED


def test_an_archive_that_was_put_there_by_hand_is_checked_and_used(server, tmp_path):
    (tmp_path / "tiny.tar.bz2").write_bytes(server.content)
    fetch(server.archive("tiny.tar.bz2"), tmp_path / "tiny")
    assert server.requests == []
    assert tree(tmp_path / "tiny") == UNPACKED


def test_a_wrong_checksum_is_an_error_and_nothing_is_unpacked(server, tmp_path):
    with pytest.raises(InputError, match=r"SHA-256 is [0-9a-f]{64}, expected 0000.* Remove it and"):
        fetch(server.archive("tiny.tar.bz2", sha256="0" * 64), tmp_path / "tiny")
    assert not (tmp_path / "tiny").exists()


def test_a_server_that_does_not_know_the_file_is_not_asked_again(server, tmp_path):
    server.status = [404]
    with pytest.raises(InputError, match=r"tiny\.tar\.bz2: the server answers 404 Not Found"):
        fetch(server.archive("tiny.tar.bz2"), tmp_path / "tiny")
    assert len(server.requests) == 1


def test_a_server_that_cannot_be_reached_is_an_error(server, tmp_path):
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


def test_an_archive_of_another_corpus_is_an_error(server, tmp_path):
    server.content = tar_of({"Other/readme": b""})
    with pytest.raises(InputError, match=r"holds no metadata\.csv; is it another corpus"):
        fetch(server.archive("tiny.tar.bz2"), tmp_path / "tiny")


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
