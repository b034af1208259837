import errno
import logging
import os
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.commands import ROOT, python
from tests.utils.hub_server import OWNER, READER
from utils.errors import InputError
from utils.hub import Repository, check_target, origin_of, resolve

FILES = {"config.json": b"{}", "model.safetensors": bytes(range(256)) * 400, "notes.md": b"long"}


def model_files(names):
    """All but the notes."""
    return [name for name in names if not name.endswith(".md")]


def test_the_files_that_were_chosen_are_fetched_once(hub, caplog):
    commit = hub.publish("org/name", FILES)
    with caplog.at_level(logging.INFO):
        folder = resolve("org/name", model_files)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert f"org/name: from the Hub, commit {commit}" in caplog.text

    hub.asked.clear()
    assert resolve("org/name", model_files) == folder
    assert hub.fetched() == []


def test_a_revision_is_a_branch_or_a_commit(hub):
    old = hub.publish("org/name", {"config.json": b"old"})
    hub.publish("org/name", {"config.json": b"new"})
    hub.publish("org/name", {"config.json": b"branch"}, branch="feature/v2")

    def content(reference):
        return (resolve(reference, model_files) / "config.json").read_bytes()

    assert content("org/name") == b"new"
    assert content("org/name@main") == b"new"
    assert content("org/name@feature/v2") == b"branch"
    assert content(f"org/name@{old}") == b"old"


def test_a_new_commit_is_followed_and_only_what_changed_is_fetched(hub):
    hub.publish("org/name", FILES)
    first = resolve("org/name", model_files)
    hub.publish("org/name", {"config.json": b"[1]"})
    hub.asked.clear()
    second = resolve("org/name", model_files)
    assert (second / "config.json").read_bytes() == b"[1]"
    assert (first / "config.json").read_bytes() == b"{}"
    assert not any("GET /storage" in asked for asked in hub.asked)


def test_a_commit_that_is_in_the_cache_asks_nobody_and_is_told_from_its_path(hub, tmp_path):
    commit = hub.publish("org/name", {**FILES, "inner/a.json": b"[]"})
    folder = resolve("org/name", model_files)
    hub.asked.clear()
    assert resolve(f"org/name@{commit}", model_files) == folder
    assert hub.asked == []
    whole = resolve(f"org/name@{commit}", lambda names: names)
    assert (whole / "notes.md").exists()
    assert origin_of(folder) == origin_of(whole / "inner" / "a.json") == f"org/name@{commit}"
    assert origin_of(tmp_path) is None
    # names are no patterns
    hub.publish("org/other", {"a[1].json": b"1", "a1.json": b"2"})
    folder = resolve("org/other", lambda _: ["a[1].json"])
    assert [path.name for path in folder.iterdir()] == ["a[1].json"]


PATHS = ("./org/name", "../org/name", "/org/name", "~/org", "a/b/c", "../../etc")
FILE_NAMES = ("org/model.safetensors", "org/g_0250.pt", "org/900000.pth.tar")
NO_NAMES = ("", "name", "org/name/", "org/na me", "org/name@", "~nobody/name", "org/nul\0")


def test_what_exists_here_or_is_a_path_is_never_looked_for_on_the_hub(hub, tmp_path):
    (tmp_path / "here").mkdir()
    fault = "no such file or folder"
    taken = rf"{fault} \(treated as a path"
    for reference, message in (
        *((name, fault) for name in (*PATHS, *NO_NAMES)),
        *((name, taken) for name in ("ckpts/demo", *FILE_NAMES)),
        ("here/missing", f"{taken}, because here exists here"),
        (Path("org/name"), f"^org/name: {fault}$"),  # which is always local
    ):
        with pytest.raises(InputError, match=message):
            resolve(reference, model_files)
    (tmp_path / "org" / "name").mkdir(parents=True)
    assert resolve("org/name", model_files).samefile(tmp_path / "org" / "name")
    (tmp_path / "file.pt").write_bytes(b"")
    assert resolve(tmp_path / "file.pt", model_files) == tmp_path / "file.pt"
    assert hub.asked == []


def refusal(reference):
    with pytest.raises(InputError) as caught:
        resolve(reference, model_files)
    message = str(caught.value)
    assert message.startswith(f"{reference}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("token", ["", READER])
def test_a_repository_that_is_missing_private_or_gated(hub, monkeypatch, token):
    hub.publish("org/private", FILES, private=True)
    hub.publish("org/gated", FILES, gated=True)
    monkeypatch.setenv("HF_TOKEN", token)
    for name in ("org/missing", "org/private"):
        assert "neither a local folder nor a repository on the Hub" in refusal(name)
    assert "gated repo" in refusal("org/gated")
    monkeypatch.setenv("HF_TOKEN", "hf_expired")
    assert "Invalid credentials in Authorization header" in refusal("org/gated")
    monkeypatch.setenv("HF_TOKEN", OWNER)
    assert (resolve("org/private", model_files) / "config.json").exists()


def test_a_missing_revision_or_model_is_named_before_anything_is_fetched(hub):
    def none(names):
        raise InputError(f"no model among {len(names)} files")

    hub.publish("org/name", FILES)
    assert "Revision Not Found" in refusal("org/name@v9")
    assert "Revision Not Found" in refusal(f"org/name@{'0' * 40}")
    with pytest.raises(InputError, match=r"^org/name: no model among 3 files$"):
        resolve("org/name", none)
    assert hub.fetched() == []


@pytest.mark.parametrize("said", ["503 Service Unavailable", "429 Too Many Requests"])
def test_a_hub_in_trouble_is_said_and_the_cache_is_used_where_it_holds_all(hub, caplog, said):
    hub.publish("org/name", FILES)
    hub.failing = status = int(said[:3])
    with pytest.raises(InputError, match=said + ".*has no copy of it"):
        resolve("org/name", model_files)
    hub.failing = 0
    folder = resolve("org/name", model_files)
    hub.failing = status
    caplog.clear()
    assert resolve("org/name", model_files) == folder
    assert "using the copy in the cache, commit" in caplog.text


def test_a_hub_that_cannot_be_reached(hub, monkeypatch):
    hub.publish("org/name", FILES)
    folder = resolve("org/name", model_files)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")  # nobody listens there
    assert resolve("org/name", model_files) == folder
    assert "Connection refused" in refusal("org/other")


def test_offline_the_cache_is_used_if_it_holds_all(hub, monkeypatch, caplog):
    commit = hub.publish("org/name", FILES)
    folder = resolve("org/name", lambda _: ["config.json"])
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub.asked.clear()

    assert resolve("org/name", lambda _: ["config.json"]) == folder
    assert resolve(f"org/name@{commit}", lambda _: ["config.json"]) == folder
    assert r"lacks model.safetensors" in refusal("org/name")
    assert "has no copy of it" in refusal("org/other")
    assert "has no copy of it" in refusal("org/name@v9")
    assert hub.asked == []


def test_a_cut_download_is_taken_up_where_it_broke(hub, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)  # the client waits a second
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1024)  # what is less is lost
    hub.publish("org/name", FILES)
    hub.cuts["model.safetensors"] = 2
    folder = resolve("org/name", model_files)
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    half = len(FILES["model.safetensors"]) // 2
    assert hub.ranges == [f"bytes={half}-", f"bytes={half + half // 2}-"]


def test_a_download_that_fails_leaves_what_came_whole(hub, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    hub.publish("org/name", FILES)
    hub.cuts["model.safetensors"] = 100
    assert "the request to the Hub failed" in refusal("org/name")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "lacks model.safetensors" in refusal("org/name")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    hub.cuts.clear()
    hub.asked.clear()
    folder = resolve("org/name", model_files)
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert "config.json" not in hub.fetched()


def test_a_full_disk(hub, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/cache/blobs/1")

    hub.publish("org/name", FILES)
    monkeypatch.setattr("huggingface_hub.file_download.http_get", full)
    assert "No space left on device: '/cache/blobs/1'" in refusal("org/name")


def test_the_environment_decides(hub, tmp_path):
    """HF_ENDPOINT, HF_HOME, HF_TOKEN and HF_HUB_OFFLINE, in processes of their own."""
    commit = hub.publish("org/private", FILES, private=True)
    code = (
        "from utils.logging import setup_logging; setup_logging()\n"
        "from utils.hub import resolve\n"
        "print(resolve('org/private', lambda names: [n for n in names if n[-1] == 'n']))"
    )
    variables = {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_XET": "1",
        "PYTHONPATH": str(ROOT),
        "NO_PROXY": "127.0.0.1,localhost",
    }
    online = python("-c", code, folder=tmp_path, **variables, HF_TOKEN=OWNER)
    repository = tmp_path / "home" / "hub" / "models--org--private"
    assert online.stdout == f"{repository / 'snapshots' / commit}\n"
    assert f"org/private: from the Hub, commit {commit}" in online.stderr
    hub.asked.clear()
    offline = python("-c", code, folder=tmp_path, **variables, HF_HUB_OFFLINE="1")
    assert offline.stdout == online.stdout
    reason = "`HF_HUB_OFFLINE` environment variable; using the copy in the cache, commit"
    assert reason in offline.stderr
    assert hub.asked == []


def test_names_that_the_hub_does_not_allow_are_refused_before_anybody_is_asked(hub):
    for name in ("org/name", "org/name.v2_a-b", "0rg/n"):
        check_target(Repository(name))
    with pytest.raises(InputError, match="expected the name of a repository"):
        check_target(Repository("name"))
    for name in ("a/b/c", "org/a b", "org/a--b", "org/a.git", "org/..", f"org/{'a' * 100}"):
        with pytest.raises(InputError, match=f"^{name}: the request to the Hub failed"):
            check_target(Repository(name))
    assert hub.asked == []
