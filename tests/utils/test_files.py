import os
from pathlib import Path

import pytest

from utils.errors import InputError
from utils.files import (
    append_jsonl,
    iterate_jsonl,
    new_folder,
    read_json,
    read_jsonl,
    read_text,
    replacing,
    sha256_of,
    source_digest,
    sync_folder,
    user_path,
    write_json,
    write_jsonl,
)


def test_a_users_path_may_begin_at_a_home_and_has_to_be_a_name_that_a_disk_holds(monkeypatch):
    monkeypatch.setenv("HOME", "/anna")
    assert user_path("~/a") == Path("/anna/a")
    assert user_path("b/~") == Path("b/~")
    with pytest.raises(InputError, match=r"^~nobody-here/a: unknown home folder"):
        user_path("~nobody-here/a")
    with pytest.raises(InputError, match=r"a\\x00b.txt': a file name cannot contain .* U\+0000"):
        user_path("a\0b.txt")


def test_json_and_its_lines_come_back_as_they_were(tmp_path):
    value = {"text": "Ünïcode \u2028 and 'quotes'", "numbers": [1, 0.1, None, True]}
    write_json(tmp_path / "new" / "a.json", value)
    assert read_json(tmp_path / "new" / "a.json") == value
    rows = [{"text": "a line separator \u2028 and a\nnewline"}, {"text": ""}]
    write_jsonl(tmp_path / "a.jsonl", rows)
    assert read_jsonl(tmp_path / "a.jsonl") == rows


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.json"
    with replacing(path) as temporary:
        assert (temporary.suffix, temporary.parent) == (".json", tmp_path)
        temporary.write_bytes(b"x")
    assert path.read_bytes() == b"x"
    write_json(path, 1)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_jsonl(path, [2, float("nan")])
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_text(str(1 / 0))
    assert read_json(path) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_what_is_not_json_is_an_input_error_with_the_file_or_its_line(tmp_path):
    for text in ("", '{"a": ', "[" * 100_000, "{'a': 1}"):
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(InputError, match=r"a\.json: not JSON"):
            read_json(tmp_path / "a.json")
    for text, line, unfinished_end in (
        ('{"a": 1}\n{"a": \n', 2, False),
        ('{"a"\n{}\n', 1, True),  # not the last line
    ):
        (tmp_path / "a.jsonl").write_text(text)
        with pytest.raises(InputError, match=rf"a\.jsonl:{line}: not JSON"):
            read_jsonl(tmp_path / "a.jsonl", unfinished_end=unfinished_end)


def test_a_file_that_cannot_be_read_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match=r"none\.json: No such file"):
        read_json(tmp_path / "none.json")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match="not UTF-8 at byte 3"):
        read_text(tmp_path / "latin")
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        (tmp_path / "wide").write_text("café", encoding=encoding)
        with pytest.raises(InputError, match="wide: UTF-16; save it as UTF-8"):
            read_text(tmp_path / "wide")


def test_a_folder_is_synced_with_everything_in_it(tmp_path, monkeypatch):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_text("x")
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    sync_folder(tmp_path)
    everything = [tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert sorted(synced) == sorted(path.stat().st_ino for path in everything)


def test_a_new_folder_is_there_when_it_is_whole_and_leaves_nothing_if_it_fails(tmp_path):
    def write_half(folder):
        (folder / "a.txt").write_text("half")
        raise KeyError

    with pytest.raises(KeyError), new_folder(tmp_path / "made") as folder:
        write_half(folder)
    assert list(tmp_path.iterdir()) == []
    path = tmp_path / "above" / "made"
    with new_folder(path) as folder:
        (folder / "a.txt").write_text("whole")
        assert not path.exists()
    assert (path / "a.txt").read_text() == "whole"
    assert [inner.name for inner in path.parent.iterdir()] == ["made"]


def test_a_new_folder_takes_the_place_of_an_empty_one_alone(tmp_path):
    with new_folder(tmp_path / "made") as folder:
        (folder / "a.txt").touch()
    (tmp_path / "file").touch()
    for name in ("made", "file"):
        fault = f"{name} exists and is not empty"
        with pytest.raises(InputError, match=fault), new_folder(tmp_path / name):
            pass
    (tmp_path / "empty").mkdir()
    with new_folder(tmp_path / "empty") as folder:
        (folder / "b.txt").touch()
    assert (tmp_path / "empty" / "b.txt").exists()
    assert (tmp_path / "made" / "a.txt").exists()


def test_a_new_folder_is_made_where_a_link_leads(tmp_path):
    (tmp_path / "there").mkdir()
    for name in ("there", "missing"):
        link = tmp_path / f"link to {name}"
        link.symlink_to(tmp_path / name)
        with new_folder(link) as folder:
            (folder / "a.txt").touch()
        assert (tmp_path / name / "a.txt").exists()
        assert link.is_symlink()


def test_lines_can_be_appended_and_one_that_was_interrupted_is_left_out(tmp_path):
    path = tmp_path / "a.jsonl"
    append_jsonl(path, {"text": "Grüße"})
    append_jsonl(path, [1, 2])
    whole = path.read_bytes()
    assert read_jsonl(path) == [{"text": "Grüße"}, [1, 2]]
    for end in range(whole.index(b"[") + 1, len(whole) - 2):
        path.write_bytes(whole[:end])
        assert read_jsonl(path, unfinished_end=True) == [{"text": "Grüße"}]
        with pytest.raises(InputError, match=r"a.jsonl:2: not JSON"):
            read_jsonl(path)
    for end in range(1, whole.index(b"}")):
        path.write_bytes(whole[:end])
        assert read_jsonl(path, unfinished_end=True) == []


def test_digests_are_sha256_and_of_sources_depend_on_names_and_contents_not_on_order(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    published = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_of(tmp_path / "a") == published
    a, b = tmp_path / "a.py", tmp_path / "b.py"
    a.write_text("1")
    b.write_text("2")
    before = source_digest(tmp_path, [a, b])
    assert source_digest(tmp_path, [b, a]) == before
    b.write_text("3")
    assert source_digest(tmp_path, [a, b]) != before
    b.write_text("2")
    assert source_digest(tmp_path, [a, b.rename(tmp_path / "c.py")]) != before


def test_lines_are_read_one_by_one_up_to_the_one_that_is_wrong(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes('\ufeff{"a": "\u2028"}\n\n[1]\n{"b"'.encode())
    lines = iterate_jsonl(path)

    assert [next(lines), next(lines)] == [{"a": "\u2028"}, [1]]
    with pytest.raises(InputError, match=r"a.jsonl:4: not JSON"):
        next(lines)
    path.write_bytes(b"[1]\n\xff\n")
    with pytest.raises(InputError, match="not UTF-8 at byte 4"):
        list(iterate_jsonl(path))
    with pytest.raises(InputError, match=r"none.jsonl: No such file"):
        list(iterate_jsonl(tmp_path / "none.jsonl"))
