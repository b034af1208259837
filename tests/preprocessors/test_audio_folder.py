import os

import pytest

from config.preprocess import CorpusConfig
from preprocessors.audio_folder import recording_id, utterances
from preprocessors.manifest import is_safe_id
from utils.errors import InputError


def listing(root, **options):
    return utterances(root, "Mine", CorpusConfig(**options))


def ids_of(root):
    return {u.id: u.audio.relative_to(root).as_posix() for u in listing(root).utterances}


def test_audio_is_found_at_any_depth_by_its_ending(corpus):
    names = ["a.wav", "anna/001.flac", "anna/deep/er/002.OGG", "b.mp3", "c.oga"]
    others = dict.fromkeys(["notes.txt", "a.wav.bak", "cover.jpg"], "")
    root = corpus(dict.fromkeys(names, "") | others)
    ids = ["a", "anna_001", "anna_deep_er_002", "b", "c"]
    assert ids_of(root) == dict(zip(ids, names, strict=True))


def test_recordings_have_no_text_and_one_speaker_and_hidden_files_are_none(corpus):
    root = corpus(dict.fromkeys(["a.wav", "b/c.wav", "._a.wav", ".trash/b.wav"], ""))
    assert list(ids_of(root)) == ["a", "b_c"]
    assert {(u.text, u.speaker) for u in listing(root).utterances} == {("", "Mine")}
    assert {u.speaker for u in listing(root, speaker="Anna").utterances} == {"Anna"}
    assert listing(root).rejected == []


def test_names_that_are_no_ids_get_a_checksum_and_are_stored(corpus):
    names = ["My take 1.wav", "Übung/é.wav", "-x.wav", f"{'long' * 60}.wav"]
    root = corpus(dict.fromkeys(names, ""))
    ids = list(ids_of(root))
    assert all(is_safe_id(id) for id in ids)
    assert {u.name for u in listing(root).utterances} == {*names}
    assert recording_id("My take 1.wav") == "My_take_1-acd551e4"
    assert recording_id("My take_1.wav") != recording_id("My take 1.wav")
    assert sorted(ids) == sorted(recording_id(name) for name in names)


@pytest.mark.parametrize("pair", [("a.wav", "a.flac"), ("a/b.wav", "a_b.wav")])
def test_two_recordings_with_one_id_are_rejected_by_the_names_of_both(pair, corpus):
    (rejection,) = listing(corpus(dict.fromkeys([*pair, "c.wav"], ""))).rejected
    assert all(name in rejection.reason for name in pair)


def test_a_folder_that_cannot_be_read_is_not_left_out(corpus, monkeypatch):
    root, scan = corpus({"a.wav": "", "locked/b.wav": ""}), os.scandir

    def scandir(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(InputError, match=r"locked: Permission denied; make it readable"):
        listing(root)


def test_a_folder_without_audio_is_an_error_that_says_what_is_looked_for(corpus):
    root = corpus({"a.txt": ""})
    with pytest.raises(InputError, match=r"no audio file \(\.wav, \.flac.*dataset_path\.Mine"):
        listing(root)


def test_linked_folders_are_followed_once(corpus, tmp_path):
    root = corpus({"a/x.wav": ""})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/y.wav").touch()
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (root / "a/loop").symlink_to(root)
    assert ids_of(root) == {"a_x": "a/x.wav", "link_y": "link/y.wav"}


def test_a_name_that_cannot_be_printed_is_rejected(corpus):
    root = corpus({"a.wav": ""})
    path = os.path.join(os.fsencode(root), b"b\xff.wav")  # noqa: PTH118  (bytes)
    try:
        os.close(os.open(path, os.O_CREAT))
    except OSError:
        pytest.skip("this disk takes UTF-8 only")
    (rejection,) = listing(root).rejected
    assert "cannot be printed; rename it" in rejection.reason
    assert list(ids_of(root)) == ["a"]


def test_a_format_that_cannot_be_read_is_rejected_unless_it_was_converted(corpus):
    root = corpus(dict.fromkeys(["a.m4a", "b.m4a", "b.wav", "c.opus"], ""))
    assert ids_of(root) == {"b": "b.wav", "c": "c.opus"}
    (rejection,) = listing(root).rejected
    assert "a.m4a: .m4a files cannot be read; convert them to WAV" in rejection.reason
