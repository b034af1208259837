from dataclasses import replace
from pathlib import Path

import pytest

from config.preprocess import SplitConfig
from preprocessors.manifest import (
    MANIFEST,
    Splits,
    Utterance,
    check_id,
    read_split,
    read_splits,
    read_utterances,
    split_ids,
    write_manifest,
    write_splits,
)
from utils.errors import InputError

UTTERANCE = Utterance("a_1", Path("wavs/a_1.wav"), 'She said: "naïve".', "Anna", "en-us", "t:1")
SECONDS = {f"u{i:03}": 1.0 + i / 10 for i in range(200)}
TEST_IDS = ["u070", "u082", "u111", "u135", "u184", "u192"]
VALID_IDS = ["u064", "u134", "u136", "u157"]


BAD_IDS = ("../../x", "/etc/x", "a\0b", ".", "..", "", "x" * 300)


@pytest.mark.parametrize("id", [*BAD_IDS, "a b", "a/b", "a\\b", "-rf", "ä", "a\n"])
def test_ids_that_are_no_safe_file_names_are_refused(id):
    with pytest.raises(InputError, match="is not a safe id: use 1 to 128 of"):
        check_id(id)


@pytest.mark.parametrize("id", ["LJ001-0001", "p225_003", "_", "7", "a.b-c", "x" * 128])
def test_ids_that_are_safe_file_names_are_accepted_and_a_long_one_is_not_printed_whole(id):
    assert check_id(id) == id
    with pytest.raises(InputError, match=r"x\.\.\. \(300 characters\)") as error:
        check_id("x" * 300)
    assert len(str(error.value)) < 200


def test_manifest_survives_writing_and_reading(tmp_path):
    utterances = [UTTERANCE, replace(UTTERANCE, id="a_2", text="line\u2028separator | pipe")]
    write_manifest(tmp_path / "manifest.jsonl", utterances)
    assert list(read_utterances(tmp_path).values()) == utterances


@pytest.mark.parametrize("line", ['{"id": "a"}', "[1]", '{"id": "a", "audio": "b", "colour": "c"}'])
def test_manifest_line_that_is_no_utterance_is_named(tmp_path, line):
    path = tmp_path / "manifest.jsonl"
    write_manifest(path, [UTTERANCE])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError, match=r"manifest\.jsonl:2: not an utterance"):
        read_utterances(tmp_path)
    write_manifest(path, [replace(UTTERANCE, id="../../x")])
    with pytest.raises(InputError, match="not a safe id"):
        read_utterances(tmp_path)


def test_sizes_are_exact_shares_or_one_utterance():
    splits = split_ids(SECONDS, SplitConfig(valid=0.02, test=0.03))
    assert [len(ids) for ids in splits] == [190, 4, 6, 6]
    splits = split_ids({"a": 1.0, "b": 2.0, "c": 3.0}, SplitConfig())
    assert [len(ids) for ids in splits] == [1, 1, 1, 1]


def test_the_split_is_the_same_in_any_order_on_every_machine_and_in_every_release():
    splits = split_ids(SECONDS, SplitConfig())
    assert split_ids(dict(reversed(list(SECONDS.items()))), SplitConfig()) == splits
    assert sorted(splits.train + splits.valid + splits.test) == sorted(SECONDS)
    assert split_ids(SECONDS, SplitConfig(seed=1)).test != TEST_IDS
    assert splits.test == TEST_IDS
    assert splits.valid == VALID_IDS


def test_every_speaker_keeps_an_utterance_to_train_on_but_for_listed_ids():
    speakers = dict.fromkeys(SECONDS, "many") | {"u070": "a", "u064": "b", "u134": "b"}
    splits = split_ids(SECONDS, SplitConfig(), speakers)
    plain = split_ids(SECONDS, SplitConfig())
    assert splits.test == [id for id in TEST_IDS if id != "u070"] == splits.golden_test
    assert len(set(VALID_IDS) - set(splits.valid)) == 1
    assert {speakers[id] for id in splits.train} == {"many", "a", "b"}
    assert set(plain.train) < set(splits.train)
    assert split_ids(SECONDS, SplitConfig(), dict.fromkeys(SECONDS, "one")) == plain
    splits = split_ids(SECONDS, SplitConfig(), {id: id for id in SECONDS})
    assert [len(ids) for ids in splits] == [200, 0, 0, 0]
    options = SplitConfig(test_ids=("u070",), valid_ids=("u064",))
    splits = split_ids(SECONDS, options, {id: id for id in SECONDS})
    assert (splits.test, splits.valid) == (["u070"], ["u064"])


def test_listed_ids_make_up_their_split_and_leave_the_share_of_others():
    splits = split_ids(SECONDS, SplitConfig(test_ids=("u007", "u003"), valid_ids=("u100",)))
    assert (splits.test, splits.valid) == (["u003", "u007"], ["u100"])
    assert len(splits.train) == 197
    splits = split_ids(SECONDS, SplitConfig(test_ids=("u007",), valid=0.1))
    assert (len(splits.test), len(splits.valid)) == (1, 20)
    assert "u007" not in splits.valid


def test_golden_items_are_spread_evenly_from_the_shortest_to_the_longest():
    test_ids = tuple(f"u{i:03}" for i in range(0, 90, 10))
    splits = split_ids(SECONDS, SplitConfig(test_ids=test_ids, golden_size=5))
    assert splits.golden_test == ["u000", "u020", "u040", "u060", "u080"]
    test_ids = ("u000", "u050", "u060")  # a single one is of middle length
    splits = split_ids(SECONDS, SplitConfig(test_ids=test_ids, golden_size=1))
    assert splits.golden_test == ["u050"]


def test_splits_survive_writing_and_reading_and_a_file_of_something_else_is_named(tmp_path):
    splits = split_ids(SECONDS, SplitConfig())
    write_splits(tmp_path, splits)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"{name}.json" for name in ("train", "valid", "test", "golden_test")}
    assert read_splits(tmp_path) == splits
    (tmp_path / "valid.json").write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"valid\.json: expected a list of ids"):
        read_splits(tmp_path)


U1 = ("u001",)


@pytest.mark.parametrize(
    ("seconds", "keys", "message"),
    [
        ({"a": 1.0, "b": 2.0}, {}, "none are left to train on; at least 3"),
        (SECONDS, {"test_ids": U1, "valid_ids": (*U1, "u002")}, "test_ids and in valid_ids: u001"),
        (SECONDS, {"test": 0.5, "valid": 0.5}, "none are left"),
        *((SECONDS, {key: ("nobody",)}, rf"split\.{key}: 1 ids are not among .*: nobody;")
          for key in ("test_ids", "valid_ids", "golden_ids")),
        (SECONDS, {"test_ids": U1, "golden_ids": ("u009",)}, "not in the test split: u009; add th"),
    ],
)  # fmt: skip
def test_splits_that_cannot_be_are_refused(seconds, keys, message):
    with pytest.raises(InputError, match=message):
        split_ids(seconds, SplitConfig(**keys))


def test_a_split_gives_its_utterances_in_order_and_a_foreign_id_is_named(tmp_path: Path):
    spoken = [Utterance(id, Path(f"{id}.wav"), "I.", "anna") for id in ("c", "a", "b")]
    write_manifest(tmp_path / MANIFEST, spoken)
    write_splits(tmp_path, Splits(["a", "c"], ["b"], ["d"], []))
    assert read_split(tmp_path, "train") == [spoken[1], spoken[0]]
    with pytest.raises(InputError, match=r"d is not in manifest\.jsonl; run stage 1 again"):
        read_split(tmp_path, "test")
