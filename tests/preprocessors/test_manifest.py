from dataclasses import replace
from pathlib import Path

import pytest

from preprocessors.manifest import Utterance, check_id, read_manifest, write_manifest
from utils.errors import InputError

UTTERANCE = Utterance("a_1", Path("wavs/a_1.wav"), 'She said: "naïve".', "Anna", "en-us", "t:1")


@pytest.mark.parametrize("id", ["LJ001-0001", "p225_003", "_", "7", "a.b-c", "x" * 128])
def test_ids_that_are_safe_file_names_are_accepted(id):
    assert check_id(id) == id


@pytest.mark.parametrize(
    "id",
    [
        "../../x",
        "/etc/x",
        "a\0b",
        ".",
        "..",
        "",
        "x" * 300,
        "a b",
        "a/b",
        "a\\b",
        "-rf",
        "ä",
        "a\n",
    ],
)
def test_ids_that_are_no_safe_file_names_are_refused(id):
    with pytest.raises(InputError, match="is not a safe id: use 1 to 128 of"):
        check_id(id)


def test_refusal_of_a_long_id_does_not_print_all_of_it():
    with pytest.raises(InputError, match=r"x\.\.\. \(300 characters\)") as error:
        check_id("x" * 300)
    assert len(str(error.value)) < 200


def test_manifest_survives_writing_and_reading(tmp_path):
    utterances = [UTTERANCE, replace(UTTERANCE, id="a_2", text="line\u2028separator | pipe")]
    write_manifest(tmp_path / "manifest.jsonl", utterances)
    assert read_manifest(tmp_path / "manifest.jsonl") == utterances


@pytest.mark.parametrize("line", ['{"id": "a"}', "[1]", '{"id": "a", "audio": "b", "colour": "c"}'])
def test_manifest_line_that_is_no_utterance_is_named(tmp_path, line):
    path = tmp_path / "manifest.jsonl"
    write_manifest(path, [UTTERANCE])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError, match=r"manifest\.jsonl:2: not an utterance"):
        read_manifest(path)


def test_manifest_with_an_unsafe_id_is_refused(tmp_path):
    path = tmp_path / "manifest.jsonl"
    write_manifest(path, [replace(UTTERANCE, id="../../x")])
    with pytest.raises(InputError, match="not a safe id"):
        read_manifest(path)
