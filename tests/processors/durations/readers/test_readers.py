"""Every format is read, and every broken file is named in one line."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from processors.alignment import AlignmentError
from processors.alignment.textgrid import Tiers
from processors.alignment.timed import check_times
from processors.durations import reader_names
from processors.durations.formats import Counts, find_format, find_reader
from utils.errors import InputError

DEMO = Path(__file__).parents[4] / "egs/_demo/LJSpeech-mini"
PHONES = [(0.0, 0.2, "sil"), (0.2, 0.3, "HH"), (0.3, 0.4, "AY1"), (0.4, 0.6, "sp"), (0.6, 0.8, "Y")]
HTS = "x^x-{}+x=x@1_2/A:0_0_0/B:x-x-x@x-x&x-x"


def textgrid(phones):
    rows = "".join(f'{start}\n{end}\n"{name}"\n' for start, end, name in phones)
    head = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n1\n<exists>\n1\n'
    return f'{head}"IntervalTier"\n"phones"\n0\n1\n{len(phones)}\n{rows}'


def ctm(phones):
    return "".join(f"u1 1 {start} {end - start:.4f} {name}\n" for start, end, name in phones)


def htk(phones):
    return "".join(f"{start * 1e7} {end * 1e7} {name}\n" for start, end, name in phones)


def row(phones):
    return {
        "id": "u1",
        "phones": [{"phone": name, "start": start, "end": end} for start, end, name in phones],
    }


TIMED = {
    "textgrid": ("u1.TextGrid", textgrid),
    "ctm": ("u1.ctm", ctm),
    "htk": ("u1.lab", htk),
    "json": ("u1.json", lambda phones: json.dumps(row(phones))),
    "jsonl": ("u1.jsonl", lambda phones: json.dumps(row(phones)) + "\n"),
}
COUNTED = {"npy": "u1.npy", "pt": "u1.pt"}
FILES = {format: name for format, (name, _) in TIMED.items()} | COUNTED


def write(folder, format, phones=PHONES):
    name, made = TIMED[format]
    (folder / name).write_text(made(phones), encoding="utf-8")


def write_counts(path, frames):
    if path.suffix == ".npy":
        np.save(path, np.array(frames))
    else:
        torch.save(torch.tensor(frames), path)


def read(folder, format):
    (entry,) = find_reader(format).entries(folder, Tiers())
    found = entry.read()
    if not isinstance(found, Counts):
        check_times(found)
    return found


def test_there_is_a_test_for_every_format():
    assert sorted(FILES) == reader_names()


@pytest.mark.parametrize("format", TIMED)
def test_phones_with_times_are_read_without_silences(tmp_path, format):
    write(tmp_path, format)
    assert find_format(tmp_path) == format
    grid = read(tmp_path, format)
    assert [phone.label for phone in grid.phones] == ["HH", "AY1", "Y"]
    times = [time for phone in grid.phones for time in phone[1:]]
    assert times == pytest.approx([0.2, 0.3, 0.3, 0.4, 0.6, 0.8])


@pytest.mark.parametrize("format", COUNTED)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_frames_are_read_as_whole_numbers(tmp_path, format, dtype):
    write_counts(tmp_path / COUNTED[format], np.array([3, 0, 12], dtype=dtype))
    assert read(tmp_path, format).frames.tolist() == [3, 0, 12]
    assert read(tmp_path, format).frames.dtype == np.int64


@pytest.mark.parametrize("format", TIMED)
@pytest.mark.parametrize(
    ("phones", "message"),
    [
        ([(0.2, 0.3, "HH"), (0.5, 0.4, "AY1")], r"AY1 ends at 0.400 s, before it starts"),
        ([(0.2, 0.3, "HH"), (float("nan"), 0.4, "AY1")], r"nan"),
        ([(0.2, 0.5, "HH"), (0.4, 0.6, "AY1")], r"HH ends at 0.500 s, while AY1 .*they overlap"),
        ([(-0.2, 0.3, "HH"), (0.3, 0.6, "AY1")], r"HH starts at -0.200 s, before 0"),
    ],
)
def test_times_that_make_no_sense_are_named(tmp_path, format, phones, message):
    write(tmp_path, format, phones)
    with pytest.raises((AlignmentError, InputError), match=message):
        read(tmp_path, format)


@pytest.mark.parametrize("format", sorted({*TIMED} - {"textgrid"}))
def test_time_that_runs_backwards_is_named(tmp_path, format):
    write(tmp_path, format, [(0.5, 0.6, "HH"), (0.2, 0.3, "AY1")])
    with pytest.raises(AlignmentError, match=r"runs backwards: AY1 starts at 0.200 s, after HH"):
        read(tmp_path, format)


@pytest.mark.parametrize("format", COUNTED)
@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([3, -114], r"token 2 of 2 lasts -114"),
        ([3.0, 1.5], r"token 2 of 2 lasts 1.5"),
        ([float("nan"), 1], r"token 1 of 2 lasts nan"),
        ([[1, 2], [3, 4]], r"its shape is \(2, 2\)"),
    ],
)
def test_frames_that_make_no_sense_are_named(tmp_path, format, frames, message):
    write_counts(tmp_path / COUNTED[format], frames)
    with pytest.raises(AlignmentError, match=rf"{COUNTED[format]}: .*{message}"):
        read(tmp_path, format)


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize("content", [b"", b"\0" * 40, "größer".encode("latin-1"), b"some words"])
def test_empty_files_and_other_content_are_one_line_with_the_name(tmp_path, format, content):
    (tmp_path / FILES[format]).write_bytes(content)
    with pytest.raises((AlignmentError, InputError)) as caught:
        read_any(tmp_path, format)
    assert FILES[format] in str(caught.value)
    assert "\n" not in str(caught.value)


def read_any(folder, format):
    entries = find_reader(format).entries(folder, Tiers())
    if not entries:
        raise InputError(f"{FILES[format]}: nothing in it")
    return entries[0].read()


@pytest.mark.parametrize("format", ["textgrid", "json", "jsonl", "npy", "pt"])
def test_a_file_cut_short_is_one_line_with_the_name(tmp_path, format):
    path = tmp_path / FILES[format]
    if format in COUNTED:
        write_counts(path, list(range(50)))
    else:
        write(tmp_path, format)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises((AlignmentError, InputError)) as caught:
        read(tmp_path, format)
    assert FILES[format] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("format", "n"), [("ctm", 4), ("htk", 5)])
def test_a_line_cut_short_is_named_by_its_number(tmp_path, format, n):
    name, made = TIMED[format]
    lines = made(PHONES).splitlines()
    lines[n - 1] = lines[n - 1].rpartition(" ")[0]
    (tmp_path / name).write_text("\n".join(lines[:n]))
    with pytest.raises((AlignmentError, InputError), match=rf"{name}:{n}: expected .*cut short"):
        read(tmp_path, format)


def test_code_in_a_tensor_file_is_refused(tmp_path):
    torch.save(Path("anything"), tmp_path / "u1.pt")
    with pytest.raises(AlignmentError, match=r"u1.pt: no whole tensor file"):
        read(tmp_path, "pt")
    torch.save({"durations": torch.tensor([1])}, tmp_path / "u1.pt")
    with pytest.raises(AlignmentError, match=r"u1.pt: it holds a dict, expected one tensor"):
        read(tmp_path, "pt")


def test_a_tensor_that_was_trained_is_read(tmp_path):
    torch.save(torch.tensor([3.0, 2.0], requires_grad=True), tmp_path / "u1.pt")
    assert read(tmp_path, "pt").frames.tolist() == [3, 2]


def test_a_sparse_tensor_is_refused(tmp_path):
    torch.save(torch.tensor([3, 0]).to_sparse(), tmp_path / "u1.pt")
    with pytest.raises(AlignmentError, match=r"u1.pt: it holds a torch.sparse_coo tensor"):
        read(tmp_path, "pt")


@pytest.mark.parametrize("content", [b"PK\x03\x04 no archive", None])
def test_an_array_with_a_damaged_head_is_one_line_with_the_name(tmp_path, content):
    path = tmp_path / "u1.npy"
    np.save(path, np.arange(5))
    path.write_bytes(content or path.read_bytes().replace(b")", b"\0"))
    with pytest.raises(AlignmentError, match=r"u1.npy: not a whole .npy file"):
        read(tmp_path, "npy")


@pytest.mark.parametrize("junk", [True, False])
def test_objects_and_junk_in_an_array_are_refused_without_advice_to_allow_them(tmp_path, junk):
    path = tmp_path / "u1.npy"
    np.save(path, np.array([{"a": 1}], dtype=object))
    if junk:
        path.write_text("3 4 5\n")
    with pytest.raises(AlignmentError) as caught:
        read(tmp_path, "npy")
    expected = f"{path}: not a whole .npy file of numbers; make it again by numpy.save"
    assert str(caught.value) == expected


def test_real_textgrids_of_other_tiers_are_read_by_name(tmp_path):
    shutil.copy(DEMO / "TextGrid/LJ001-0002.TextGrid", tmp_path)
    path = tmp_path / "LJ001-0002.TextGrid"
    usual = read(tmp_path, "textgrid")
    text = path.read_text().replace('"phones"', '"Segmente"').replace('"words"', '"ORT-MAU"')
    path.write_text(text)
    with pytest.raises(AlignmentError, match=r"expected a tier `phones`, found ORT-MAU, Segmente"):
        read(tmp_path, "textgrid")
    (entry,) = find_reader("textgrid").entries(tmp_path, Tiers("segmente", "ort-mau"))
    assert entry.read() == usual
    (entry,) = find_reader("textgrid").entries(tmp_path, Tiers("Phon"))
    with pytest.raises(AlignmentError, match=r"expected a tier `Phon`, found ORT-MAU, Segmente"):
        entry.read()


def test_states_of_full_context_labels_become_phones(tmp_path):
    states = [("sil", 2), ("sil", 3), ("hh", 2), ("hh", 3), ("hh", 4), ("hh", 2), ("pau", 2)]
    lines = [
        f"{n}00000 {n + 1}00000 {HTS.format(name)}[{state}] " + HTS.format(name) * (state == 2)
        for n, (name, state) in enumerate(states)
    ]
    (tmp_path / "u1.lab").write_text("\n".join(lines) + "\n")
    assert [(one.label, one.start_s, one.end_s) for one in read(tmp_path, "htk").phones] == [
        ("hh", pytest.approx(0.02), pytest.approx(0.05)),
        ("hh", pytest.approx(0.05), pytest.approx(0.06)),
    ]


@pytest.mark.parametrize(
    ("name", "phone"),
    [("hh", "hh"), ("sh-iy+t", "iy"), ("iy+t", "iy"), ("sh-iy", "iy"), ("x~x-@@+n=d:1", "@@")],
)
def test_the_context_of_labels_is_dropped(tmp_path, name, phone):
    (tmp_path / "u1.lab").write_text(f"0 1000000 {name}\n")
    assert [one.label for one in read(tmp_path, "htk").phones] == [phone]


def test_a_master_label_file_holds_many_recordings(tmp_path):
    part = '"*/{}.lab"\n0 1000000 hh\n1000000 3000000 ay\n.\n'
    (tmp_path / "all.mlf").write_text("#!MLF!#\n" + part.format("u1") + part.format("u2"))
    first, second = find_reader("htk").entries(tmp_path, Tiers())
    assert (first.name, second.name) == ("u1", "u2")
    assert second.read().phones[1] == ("ay", 0.1, 0.3)
    (tmp_path / "all.mlf").write_text("#!MLF!#\n" + part.format("u1")[:-2])
    (cut,) = find_reader("htk").entries(tmp_path, Tiers())
    with pytest.raises(AlignmentError, match=r"all.mlf: no full stop ends .*cut short"):
        cut.read()


def test_a_folder_of_ctm_has_words_too_and_places_in_words_are_dropped(tmp_path):
    (tmp_path / "phones.ctm").write_text("u1 1 0.20 0.10 HH_B\nu1 1 0.30 0.10 AY1_E\n;; a note\n")
    (tmp_path / "words.ctm").write_text("u1 1 0.20 0.20 hi 0.99\n")
    grid = read(tmp_path, "ctm")
    assert [phone.label for phone in grid.phones] == ["HH", "AY1"]
    assert grid.words == [("hi", 0.2, 0.4)]


@pytest.mark.parametrize(
    ("line", "broken", "names"),
    [
        ("u1 1 0.3 zz AY1", "u1", ["u1", "u2"]),
        ("u1 1 0.3", "u1", ["u1", "u2"]),
        ("u", "u1", ["u1", "u2"]),  # cut within the name
        ("u3 1 0.3 zz AY1", "u3", ["u1", "u2", "u3"]),
    ],
)
def test_a_broken_line_of_ctm_is_a_fault_of_its_utterance_alone(tmp_path, line, broken, names):
    path = tmp_path / "all.ctm"
    path.write_text(f"u1 1 0.2 0.1 HH\n{line}\nu2 1 0.1 0.2 Y\n")
    found = {entry.name: entry for entry in find_reader("ctm").entries(path, Tiers())}
    assert list(found) == names
    with pytest.raises(AlignmentError, match=rf"all.ctm:2: expected .*, found '{line}'; was it"):
        found[broken].read()
    assert found["u2"].read().phones == [("Y", 0.1, pytest.approx(0.3))]


def test_a_broken_line_of_the_words_of_ctm_is_a_fault_too(tmp_path):
    (tmp_path / "phones.ctm").write_text("u1 1 0.20 0.10 HH\n")
    (tmp_path / "words.ctm").write_text("u1 1 0.20 hi\n")
    (entry,) = find_reader("ctm").entries(tmp_path, Tiers())
    assert entry.path == tmp_path / "words.ctm"
    with pytest.raises(AlignmentError, match=r"words.ctm:1: expected"):
        entry.read()


def test_phones_may_stand_in_the_words_of_json_lines(tmp_path):
    phones = [{"start": 0.1, "duration": 0.25, "phone": "k"}]
    row = {"id": "u1", "words": [{"word": "kat", "phones": phones}]}
    (tmp_path / "align.jsonl").write_text(json.dumps(row) + "\n")
    grid = read(tmp_path, "jsonl")
    assert grid.phones == [("k", 0.1, 0.35)]
    assert grid.words == [("kat", 0.1, 0.35)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"phones": [{"phone": "k", "start": 0}]}, "'k' has no start, or no end or duration"),
        ({"phones": [{"start": 0, "end": 1}]}, "has no name: expected phone or label"),
        ({"phones": []}, "no phones; it has id, phones"),
        ({"phones": ["k"]}, "`phones` is no list of objects"),
    ],
)
def test_json_without_what_is_needed_says_what(tmp_path, row, message):
    (tmp_path / "u1.jsonl").write_text(json.dumps({"id": "u1", **row}) + "\n")
    with pytest.raises(AlignmentError, match=rf"u1.jsonl: u1: .*{message}"):
        read(tmp_path, "jsonl")


def test_json_numbers_beyond_all_times_are_refused(tmp_path):
    phones = [{"phone": "k", "start": 0, "end": 10**400}]
    (tmp_path / "u1.json").write_text(json.dumps({"phones": phones}))
    with pytest.raises(AlignmentError, match=r"k lasts from 0.0 to inf s, which are no times"):
        read(tmp_path, "json")


def test_a_folder_of_several_formats_is_to_be_told(tmp_path):
    write(tmp_path, "textgrid")
    write(tmp_path, "ctm")
    with pytest.raises(InputError, match=r"several formats, ctm, textgrid; choose one by --format"):
        find_format(tmp_path)
    with pytest.raises(InputError, match=r"no file of durations; choose one by --format: ctm"):
        find_format(DEMO / "wavs")
    with pytest.raises(InputError, match=r"nowhere: no such file or folder"):
        find_format(tmp_path / "nowhere")
