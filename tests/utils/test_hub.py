import subprocess
import sys
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import errors

from utils.errors import InputError
from utils.hub import resolve

PATTERNS = ["*.json"]


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Stands in for the Hub: records what is asked for."""
    asked = []

    def snapshot_download(repo, *, revision, allow_patterns):
        asked.append((repo, revision, allow_patterns))
        return str(tmp_path / "cache" / "0123abcd")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.chdir(tmp_path)
    return asked


def test_what_exists_here_wins_over_the_hub(hub, tmp_path):
    (tmp_path / "org" / "name").mkdir(parents=True)
    assert resolve("org/name", PATTERNS).samefile(tmp_path / "org" / "name")
    (tmp_path / "file.pt").write_bytes(b"")
    assert resolve(tmp_path / "file.pt", PATTERNS) == tmp_path / "file.pt"
    assert hub == []


def test_a_name_on_the_hub_is_fetched_with_its_revision(hub, tmp_path):
    assert resolve("org/name", PATTERNS) == tmp_path / "cache" / "0123abcd"
    resolve("org/name@v1.0", PATTERNS)
    assert hub == [("org/name", None, PATTERNS), ("org/name", "v1.0", PATTERNS)]


@pytest.mark.parametrize(
    "reference",
    [
        "ckpts/demo",
        "here/missing",
        "./org/name",
        "../org/name",
        "/org/name",
        "~/org",
        "a/b/c",
        "name",
        "org/name/",
        "org/model.safetensors",
        "org/g_0250.pt",
        "",
        "org/na me",
        "org/name@",
        "../../etc",
    ],
)
def test_a_missing_path_is_never_looked_for_on_the_hub(hub, tmp_path, reference):
    (tmp_path / "here").mkdir()
    with pytest.raises(InputError, match="no such file or folder"):
        resolve(reference, PATTERNS)
    assert hub == []


def test_a_path_object_is_always_local(hub, tmp_path):
    with pytest.raises(InputError, match="no such file or folder"):
        resolve(Path("org/name"), PATTERNS)
    assert hub == []


def _hub_error(kind, text):
    error = kind.__new__(kind)
    Exception.__init__(error, text)
    return error


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (errors.RepositoryNotFoundError, "neither a local folder nor a public repository"),
        (errors.GatedRepoError, "accept its licence"),
        (errors.RevisionNotFoundError, "has no revision 'v9'"),
        (errors.LocalEntryNotFoundError, "cannot be reached"),
        (errors.HFValidationError, "the Hub refused: two lines"),
        (ConnectionError, "the Hub refused: two lines"),
    ],
)
def test_what_the_hub_refuses_is_one_sentence(hub, monkeypatch, kind, said):
    def refuse(*_, **__):
        raise _hub_error(kind, "two\n lines")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(InputError, match=f"^org/name: .*{said}") as caught:
        resolve("org/name@v9", PATTERNS)
    assert "\n" not in str(caught.value)


def test_offline_mode_makes_no_request(tmp_path):
    code = "from utils.hub import resolve; resolve('org/name', ['*.json'])"
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PYTHONPATH": "."}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "InputError: org/name: no local folder of that name" in result.stderr
