import json
import re
from collections import Counter

import numpy as np
import pytest
import soundfile

from models.programs.compare.listening_test import Key, make_test, read_answers, read_key, summary
from processors.audio.loudness import loudness
from utils.errors import InputError

RATE = 16000


def clip(path, level=0.1, seconds=0.5, seed=0):
    path.parent.mkdir(exist_ok=True)
    noise = np.random.default_rng(seed).standard_normal(round(seconds * RATE)).clip(-3, 3)
    soundfile.write(path, level * noise, RATE)
    return path


def systems(folder, *levels, n=4):
    """One folder for each level, of n clips."""
    folders = [folder / name for name in "abc"[: len(levels)]]
    for system, level in zip(folders, levels, strict=True):
        for number in range(n):
            clip(system / f"clip{number}.wav", level, seed=number)
    return folders


def files_of(folder):
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_each_two_systems_meet_in_every_clip_and_each_comes_first_in_half(tmp_path):
    folders = systems(tmp_path, 0.1, 0.1, 0.1)
    key = make_test(folders, tmp_path / "out", "preference")
    pairs = Counter((name, frozenset(pair)) for name, *pair in key.trials)
    a, b, c = map(str, folders)
    expected = [frozenset(pair) for pair in ((a, b), (a, c), (b, c))]
    assert pairs == Counter((f"clip{n}", pair) for n in range(4) for pair in expected)
    first = Counter((one, other) for _, one, other in key.trials)
    assert set(first.values()) == {2}
    assert len(first) == 6
    assert [name for name, *_ in key.trials] != sorted(name for name, *_ in key.trials)
    assert read_key(tmp_path / "out" / "key.json") == key


def test_copies_are_those_of_the_key_at_one_loudness_below_full_scale(tmp_path):
    folders = systems(tmp_path, 0.01, 0.3)
    key = make_test(folders, tmp_path / "out", "preference")
    levels = []
    for number, (name, *compared) in enumerate(key.trials, 1):
        for side, system in enumerate(compared, 1):
            copy, rate = soundfile.read(tmp_path / "out" / "page" / f"{number:04}_{side}.wav")
            original, _ = soundfile.read(f"{system}/{name}.wav")
            assert np.corrcoef(copy, original)[0, 1] > 0.999
            levels.append(loudness([copy], rate))
    assert [lufs for lufs, _ in levels] == pytest.approx([-23] * 8, abs=0.05)
    assert max(peak for _, peak in levels) < 10 ** (-1 / 20)


def test_one_clip_with_a_high_peak_lowers_all(tmp_path):
    folders = systems(tmp_path, 0.1, 0.1)
    wav = np.full(RATE, 1e-3) * np.random.default_rng(0).standard_normal(RATE)
    wav[100] = 0.9
    soundfile.write(folders[0] / "clip0.wav", wav, RATE)
    make_test(folders, tmp_path / "out", "preference")
    levels = [loudness([soundfile.read(p)[0]], RATE) for p in (tmp_path / "out").rglob("*.wav")]
    assert max(peak for _, peak in levels) == pytest.approx(10 ** (-1 / 20), abs=1e-3)
    lufs = [level for level, _ in levels]
    assert max(lufs) < -25
    assert lufs == pytest.approx([lufs[0]] * 8, abs=0.1)


def test_the_page_and_its_files_do_not_tell_which_system_is_which(tmp_path):
    folders = systems(tmp_path, 0.1, 0.2)
    key = make_test(folders, tmp_path / "out", "preference")
    files = files_of(tmp_path / "out" / "page")
    wavs = (f"{n:04}_{side}.wav" for n in range(1, 5) for side in (1, 2))
    assert {*files} == {"index.html", *wavs}
    page = files["index.html"].decode()
    assert "clip0" not in page
    assert str(tmp_path) not in page
    assert re.search(r"https?:|src=|@import", page) is None  # it loads nothing
    test = json.loads(re.search(r"const test = (.*);", page)[1])
    assert test == {"id": key.id, "kind": "preference", "n_trials": 4}


def test_equal_inputs_give_equal_files_and_another_seed_another_order(tmp_path):
    folders = systems(tmp_path, 0.1, 0.1)
    seeds = {"one": 1, "again": 1, "other": 2}
    keys = [make_test(folders, tmp_path / out, "opinion", 3, seed) for out, seed in seeds.items()]
    assert files_of(tmp_path / "one") == files_of(tmp_path / "again")
    assert keys[0].trials != keys[2].trials
    assert keys[0].id != keys[2].id
    drawn = Counter(name for name, _ in keys[0].trials)
    assert set(drawn.values()) == {2}
    assert len(drawn) == 3


def test_clips_of_other_names_are_left_out_and_named(tmp_path, caplog):
    folders = systems(tmp_path, 0.1, 0.1)
    clip(folders[0] / "alone.wav")
    (folders[1] / "metadata.jsonl").write_text("{}")
    for folder in folders:
        (folder / "phone.m4a").touch()  # cannot be read
    key = make_test(folders, tmp_path / "out", "preference")
    assert {name for name, *_ in key.trials} == {f"clip{n}" for n in range(4)}
    assert "not in all folders, left out: alone" in caplog.text


def spoil(folders, out, what):
    if what == "twice":
        clip(folders[0] / "clip0.flac")
    elif what == "silent":
        soundfile.write(folders[1] / "clip2.wav", np.zeros(RATE), RATE)
    elif what == "short":
        clip(folders[1] / "clip2.wav", seconds=0.3)
    elif what == "text":
        (folders[1] / "clip2.wav").write_text("no sound")
    elif what == "other names":
        for path in folders[1].iterdir():
            path.rename(path.with_stem(f"x{path.stem}"))
    elif what == "full":
        out.mkdir()
        (out / "notes.txt").write_text("")
    return [folders[0]] * 2 if what == "same" else folders


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("twice", r"clip0\.flac and .*clip0\.wav have the same name; remove one of them"),
        ("silent", r"clip2\.wav is silent or shorter than 0\.4 s; remove it"),
        ("short", r"clip2\.wav is silent or shorter than 0\.4 s; remove it"),
        ("text", r"clip2\.wav: not readable as audio"),
        ("other names", "have 0 clips of the same name; expected at least 1"),
        ("full", "out is not empty; choose a new folder"),
        ("same", "two of the folders are the same"),
    ],
)
def test_what_cannot_be_compared_is_refused_without_a_page(tmp_path, what, message):
    folders, out = systems(tmp_path, 0.1, 0.1), tmp_path / "out"
    with pytest.raises(InputError, match=message):
        make_test(spoil(folders, out, what), out, "preference")
    assert not (out / "page").exists()


def test_more_clips_than_there_are_is_an_error_and_so_is_a_missing_folder(tmp_path):
    folders = systems(tmp_path, 0.1, 0.1)
    with pytest.raises(InputError, match="have 4 clips of the same name; expected at least 5"):
        make_test(folders, tmp_path / "out", "preference", n_clips=5)
    with pytest.raises(FileNotFoundError, match="gone"):
        make_test([*folders, tmp_path / "gone"], tmp_path / "out", "preference")


def test_a_file_that_is_no_key_is_named(tmp_path):
    path = tmp_path / "key.json"
    path.write_text(json.dumps({"id": "x", "kind": "guess", "systems": ["a"], "trials": []}))
    with pytest.raises(InputError, match=r"key\.json.*kind"):
        read_key(path)
    path.write_text(json.dumps({"id": "x"}))
    with pytest.raises(InputError, match=r"key\.json: missing key kind"):
        read_key(path)


HEAD = "test,listener,trial,answer,seconds"
PAIRS = Key("t1", "preference", ("a", "b"), (("x", "a", "b"), ("y", "b", "a")))
SINGLE = Key("t2", "opinion", ("a", "b"), (("x", "b"), ("x", "a"), ("y", "a")))


def csv_of(tmp_path, *rows, name="r.csv", head=HEAD):
    path = tmp_path / name
    path.write_text("\n".join([head, *rows, ""]))
    return path


def test_the_side_of_an_answer_is_looked_up_in_the_key(tmp_path):
    one = csv_of(tmp_path, "t1,ann,2,1,3.5", "t1,ann,1,2,2.0")
    other = csv_of(tmp_path, 't1,"ben, ""b""",1,0,3', 't1,"ben, ""b""",2,2,1', name="s.csv")
    answers = read_answers([one, other], PAIRS)
    assert answers == {
        ("ann", 2): 1, ("ann", 1): 2, ('ben, "b"', 1): 0, ('ben, "b"', 2): 2,
    }  # fmt: skip
    assert summary(answers, PAIRS).splitlines() == [
        "4 answers of 2 listeners; intervals of 95 %",
        # ann preferred b twice, ben a once; Wilson's interval of 1 of 3
        "a 1, b 2, no preference 1: a preferred in 33.3 % (6.1 to 79.2 %)",
    ]


def test_the_interval_of_a_preference_is_wilsons_and_without_any_there_is_no_share():
    answers = {(f"l{n}", 1): 1 if n < 81 else 2 for n in range(263)}
    # 81 of 263: Newcombe 1998, table I, method 3
    assert "a preferred in 30.8 % (25.5 to 36.6 %)" in summary(answers, PAIRS)
    assert summary({("ann", 1): 0}, PAIRS).splitlines()[1:] == ["a 0, b 0, no preference 1"]


def test_the_interval_of_an_opinion_is_students():
    answers = {(f"l{n}", 2): score for n, score in enumerate((3, 4, 4, 5, 4))}
    answers |= {("l0", 1): 2}
    lines = summary(answers, SINGLE).splitlines()
    # mean 4, deviation 0.7071, t of 4 degrees of freedom 2.776
    assert lines[1:] == ["a: 5 opinions, mean 4.00 (3.12 to 4.88)", "b: 1 opinion, mean 2.00"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["t9,ann,1,1,2"], r"r\.csv, line 2: .* results of the test 't9', the key is of 't1'"),
        (["t1,ann,3,1,2"], "line 2: trial '3', answer '1'; expected a trial from 1 to 2"),
        (["t1,ann,1,1,2", "t1,ann,2,4,2"], "line 3: trial '2', answer '4'.* answer of 0, 1, 2"),
        (["t1,ann,1,,2"], "line 2: trial '1', answer ''"),
        (["t1,ann,1,1,2", "t1,ann,1,2,2"], "line 3: 'ann' has answered trial 1 before"),
        (["t1,ann,1,1"], "line 2: found 4 cells, expected 5"),
        (['t1,"ann,1,1,2'], r"r\.csv, line 2: unexpected end of data"),
        ([], r"r\.csv: no answers"),
    ],
)
def test_wrong_results_are_refused_with_their_line(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        read_answers([csv_of(tmp_path, *rows)], PAIRS)


def test_another_table_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"r\.csv, line 1: expected the columns test,listener"):
        read_answers([csv_of(tmp_path, "a|b", head="id|text")], PAIRS)
