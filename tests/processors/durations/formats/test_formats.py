"""Every format is read, and every damaged file is named in one line."""

import numpy as np
import pytest

from processors.alignment import AlignmentError
from processors.durations import IMPORT_FORMATS
from processors.durations.formats import (
    AlignedSpeech,
    Source,
    find_format,
    find_reader,
    find_writer,
)
from tests.processors.durations.formats.examples import (
    COUNTED,
    DEMO,
    FILES,
    PHONES,
    SPEECH,
    TIMED,
    read,
    write,
    write_counts,
)
from utils.errors import InputError


def test_there_is_a_test_for_every_format():
    assert tuple(sorted(FILES)) == IMPORT_FORMATS


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
    with pytest.raises(AlignmentError, match=r"are not in order: AY1 starts at 0.200 s, after HH"):
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
    entries = find_reader(format).entries(Source(folder))
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


def test_the_format_of_a_folder_with_several_must_be_given(tmp_path):
    write(tmp_path, "textgrid")
    write(tmp_path, "ctm")
    with pytest.raises(InputError, match=r"several formats, ctm, textgrid; choose one by --format"):
        find_format(tmp_path)
    with pytest.raises(InputError, match=r"no file of durations; choose one by --format: ctm"):
        find_format(DEMO / "wavs")
    with pytest.raises(InputError, match=r"nowhere: no such file or folder"):
        find_format(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["ctm", "npy"])
def test_tables_of_many_utterances_hold_all_of_them(tmp_path, name):
    other = AlignedSpeech(**{**vars(SPEECH), "id": "u2"})
    find_writer(name).write(tmp_path, [SPEECH, other])
    table = {"ctm": "phones.ctm", "npy": "phones.txt"}[name]
    rows = [row for row in (tmp_path / table).read_text().splitlines() if row[0] != "#"]
    assert {row[:2] for row in rows} == {"u1", "u2"}
