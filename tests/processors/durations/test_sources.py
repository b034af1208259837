"""Every format is read, and every damaged file is named in one line."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from processors.alignment.aligner import AlignmentError
from processors.alignment.textgrid import Tiers
from processors.durations.sources import (
    DurationSource,
    FrameRate,
    SourceEntry,
    Tokens,
    correct_sum,
    durations_in,
    find_pitch,
    match_names,
    read_table,
)
from tests.processors.durations.examples import (
    COUNTED,
    DEMO,
    FILES,
    TIMED,
    read,
    write,
    write_counts,
)
from utils.errors import InputError

IDS = ("LJ001-0001", "LJ001-0002", "p225_001")


@pytest.mark.parametrize("format", TIMED)
def test_phones_with_times_are_read_without_silences(tmp_path, format):
    write(tmp_path, format)
    assert durations_in(tmp_path).format == format
    grid = read(tmp_path, format)
    assert [phone.name for phone in grid.phones] == ["HH", "AY1", "Y"]
    times = [time for phone in grid.phones for time in phone[1:]]
    assert times == pytest.approx([0.2, 0.3, 0.3, 0.4, 0.6, 0.8])


@pytest.mark.parametrize("format", COUNTED)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_frames_are_read_as_whole_numbers(tmp_path, format, dtype):
    write_counts(tmp_path / COUNTED[format], np.array([3, 0, 12], dtype=dtype))
    assert read(tmp_path, format).tolist() == [3, 0, 12]
    assert read(tmp_path, format).dtype == np.int64


@pytest.mark.parametrize("format", TIMED)
@pytest.mark.parametrize(
    ("phones", "message"),
    [
        (
            [(0.2, 0.3, "HH"), (0.5, 0.4, "AY1")],
            r"AY1 lasts from 0.500 to 0.400 s, and must end after it starts; align",
        ),
        ([(0.2, 0.3, "HH"), (float("nan"), 0.4, "AY1")], r"nan"),
        (
            [(0.2, 0.5, "HH"), (0.4, 0.6, "AY1")],
            r"times overlap .*: HH lasts until 0.500 s, and AY1 starts at 0.400",
        ),
        ([(-0.2, 0.3, "HH"), (0.3, 0.6, "AY1")], r"HH lasts from -0.200 to 0.300 s"),
    ],
)
def test_times_that_make_no_sense_are_named(tmp_path, format, phones, message):
    write(tmp_path, format, phones)
    with pytest.raises((AlignmentError, InputError), match=message):
        read(tmp_path, format)


@pytest.mark.parametrize("format", sorted({*TIMED} - {"textgrid"}))
def test_time_that_runs_backwards_is_named(tmp_path, format):
    write(tmp_path, format, [(0.5, 0.6, "HH"), (0.2, 0.3, "AY1")])
    with pytest.raises(
        AlignmentError, match=r"not in order: HH lasts until .*, and AY1 starts at 0.200 s; align"
    ):
        read(tmp_path, format)


@pytest.mark.parametrize("format", COUNTED)
@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([3, -114], r"token 2 of 2 lasts -114"),
        ([3.0, 1.5], r"token 2 of 2 lasts 1.5"),
        ([float("nan"), 1], r"token 1 of 2 lasts nan"),
        ([[1, 2], [3, 4]], r"of shape \(2, 2\), expected a number for each token"),
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
        read(tmp_path, format)
    assert FILES[format] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("format", ["textgrid", "json", "npy", "pt"])
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


def test_the_format_of_a_folder_with_several_must_be_given(tmp_path):
    write(tmp_path, "textgrid")
    write(tmp_path, "json")
    with pytest.raises(InputError, match=r"found json, textgrid; choose one format by --format"):
        durations_in(tmp_path)
    with pytest.raises(InputError, match=r"no file of durations; choose one format .*: json"):
        durations_in(DEMO / "wavs")
    with pytest.raises(InputError, match=r"nowhere: no such file or folder"):
        durations_in(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"--phone_tier .* of TextGrids; .* holds json"):
        durations_in(tmp_path, "json", Tiers("foo"))


def test_of_a_dump_of_tensorflowtts_only_durations_are_read(tmp_path):
    for name in ("train_utt_ids", "train/duration/u1-durations", "valid/ids/u1-ids"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / f"{name}.npy", np.arange(3))
    entries = durations_in(tmp_path).entries
    assert [entry.name for entry in entries] == ["u1-durations"]
    assert entries[0].read().tolist() == [0, 1, 2]


def test_a_tensor_that_was_trained_is_read(tmp_path):
    torch.save(torch.tensor([3.0, 2.0], requires_grad=True), tmp_path / "u1.pt")
    assert read(tmp_path, "pt").tolist() == [3, 2]


def test_real_textgrids_of_other_tiers_are_read_by_name(tmp_path):
    shutil.copy(DEMO / "TextGrid/LJ001-0002.TextGrid", tmp_path)
    path = tmp_path / "LJ001-0002.TextGrid"
    usual = read(tmp_path, "textgrid")
    text = path.read_text().replace('"phones"', '"Segmente"').replace('"words"', '"ORT-MAU"')
    path.write_text(text)
    with pytest.raises(AlignmentError, match=r"tier `phones`; its tiers are ORT-MAU, Segmente"):
        read(tmp_path, "textgrid")
    assert read(tmp_path, "textgrid", tiers=Tiers("segmente", "ort-mau")) == usual
    with pytest.raises(AlignmentError, match=r"tier `Phon`; its tiers are ORT-MAU, Segmente"):
        read(tmp_path, "textgrid", tiers=Tiers("Phon"))


@pytest.mark.parametrize(("tiers", "wanted"), [(Tiers("foo"), "foo"), (Tiers(words="foo"), "foo")])
def test_the_usual_tier_does_not_replace_the_one_that_is_named(tmp_path, tiers, wanted):
    shutil.copy(DEMO / "TextGrid/LJ001-0002.TextGrid", tmp_path)
    message = rf"nothing in a tier `{wanted}`; its tiers are words, phones"
    with pytest.raises(AlignmentError, match=message):
        read(tmp_path, "textgrid", tiers=tiers)


def matched(names):
    entries = [SourceEntry(name, Path(f"{name}.npy"), lambda: None) for name in names]
    return match_names(DurationSource(Path("source"), "npy", entries), {*IDS})


@pytest.mark.parametrize(
    "name",
    [
        "LJ001-0001",
        "LJ001-0001-durations",
        "LJ001-0001_duration",
        "LJSpeech-duration-LJ001-0001",
        "duration-LJ001-0001",
    ],
)
def test_names_as_projects_make_them_are_matched(name):
    assert [*matched([name]).entries] == ["LJ001-0001"]


def test_everything_is_counted_once():
    found = matched(["p225_001", "LJ001-0001-durations", "LJ001-0001", "LJ009-0009", "stats"])
    assert [*found.entries] == ["p225_001"]
    assert "several times" in found.rejected["LJ001-0001"]
    assert "does not have it" in found.rejected["LJ001-0002"]
    assert found.extra == ["LJ009-0009", "stats"]
    with pytest.raises(InputError, match=r"none of its 1 names \(take7, ...\) .*rename its files"):
        matched(["take7"])


OWN = FrameRate(256, 22050)


def test_a_table_names_tokens_and_says_how_long_frames_are(tmp_path):
    path = tmp_path / "phones.txt"
    path.write_text("# hop_size 300 sample_rate 24000\nu1|{HH AY1 , Y}\nu2|sp Y|0.25\n")
    table = read_table(path)
    assert table.rate == FrameRate(300, 24000)
    assert table.tokens["u1"] == Tokens(("HH", "AY1", ",", "Y"), None)
    assert table.tokens["u2"] == Tokens(("sp", "Y"), 0.25)


@pytest.mark.parametrize("line", ["u1", "u1|", "u1|{}", "u1|HH|soon", "u1|HH|0|text"])
def test_a_line_that_is_no_row_of_the_table_is_named(tmp_path, line):
    (tmp_path / "t.txt").write_text(f"u0|HH\n{line}\n")
    with pytest.raises(InputError, match=r"t.txt:2: expected id\|P1 P2"):
        read_table(tmp_path / "t.txt")
    (tmp_path / "t.txt").write_text("# hop 300\n")
    with pytest.raises(InputError, match=r"t.txt:1: expected .*`# hop_size 256 sample_rate 22050`"):
        read_table(tmp_path / "t.txt")


def test_an_id_with_two_lines_is_refused(tmp_path):
    table = tmp_path / "phones.txt"
    table.write_text("a|A B\nb|C\na|D\n")
    with pytest.raises(InputError, match=r"phones\.txt:3: a has a line already; remove one"):
        read_table(table)


def test_boundaries_are_exact_at_any_hop_and_rate():
    rate = FrameRate(300, 24000)  # 12.5 ms
    assert rate.boundaries_s(np.array([2, 0, 4])).tolist() == [0, 0.025, 0.025, 0.075]
    assert rate.boundaries_s(np.array([8]), start=2400).tolist() == [0.1, 0.2]


@pytest.mark.parametrize("n", [9, 10])
def test_windows_inside_the_audio_and_centred_windows_both_fit(n):
    assert correct_sum(np.array([n]), 2561 / 22050, OWN).tolist() == [max(n, 10)]
    assert correct_sum(np.array([n + 2]), 2561 / 22050, OWN).tolist() == [11]


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([3, 4, 1], [3, 4, 3]),  # the last token takes what is missing
        ([3, 4, 5, 2], [3, 4, 4, 0]),  # what is too much is taken from the end
        ([3, 4, 3], [3, 4, 3]),
        ([3, 4, 4], [3, 4, 4]),
    ],
)
def test_a_few_frames_are_corrected_at_the_end(frames, expected):
    assert correct_sum(np.array(frames), 2560 / 22050, OWN).tolist() == expected


def test_what_is_off_by_more_is_rejected_with_the_number():
    message = r"add up to 6, the recording has 10 or 11: off by -4; .* another hop"
    with pytest.raises(AlignmentError, match=message):
        correct_sum(np.array([3, 3]), 2560 / 22050, OWN)
    with pytest.raises(AlignmentError, match=r"off by \+4"):
        correct_sum(np.array([3, 12]), 2560 / 22050, OWN)


def test_a_trimmed_recording_may_end_early():
    assert correct_sum(np.array([3, 3]), 2560 / 22050, OWN, trimmed=True).tolist() == [3, 3]
    with pytest.raises(AlignmentError):
        correct_sum(np.array([3, 12]), 2560 / 22050, OWN, trimmed=True)


HZ = np.array([0.0, 220.0, 110.0])


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "pitch_char"
    folder.mkdir()
    torch.save(torch.from_numpy(HZ), folder / "a.pt")
    return folder


def write_stats(folder, row):
    path = folder.parent / "pitch_char_stats__train.json"
    path.write_text(json.dumps(row))
    return path


def test_pitch_in_hz_is_read_as_it_is(folder):
    np.save(folder / "b.npy", HZ[::-1])
    pitch = find_pitch(folder, None)
    assert pitch("a", 3).tolist() == [0, 220, 110]
    assert pitch("b", 3).tolist() == [110, 220, 0]


def test_normalised_pitch_becomes_hz_and_zero_stays_unvoiced(folder):
    stats = write_stats(folder, {"mean": 165.0, "std": 55.0})
    torch.save(torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64), folder / "a.pt")
    assert find_pitch(folder, stats)("a", 3).tolist() == [0, 220, 110]


def test_normalised_pitch_without_its_statistics_is_refused(folder):
    torch.save(torch.tensor([0.0, 1.0, -1.0]), folder / "a.pt")
    with pytest.raises(
        AlignmentError, match=r"a\.pt: a pitch of 1 Hz, expected 20 to 2000 .* --pitch_stats"
    ):
        find_pitch(folder, None)("a", 3)


def test_statistics_for_pitch_in_hz_are_refused(folder):
    stats = write_stats(folder, {"mean": 165.0, "std": 55.0})
    with pytest.raises(AlignmentError, match=r"a pitch of 12265 Hz, .* values in Hz none"):
        find_pitch(folder, stats)("a", 3)


@pytest.mark.parametrize("row", [{"mean": 165.0}, {"mean": 1, "std": 0}, [1, 2], {"mean": "x"}])
def test_statistics_that_are_none_are_refused(folder, row):
    with pytest.raises(InputError, match=r"--pitch_stats .*train\.json: expected mean and std"):
        find_pitch(folder, write_stats(folder, row))


def test_statistics_that_are_missing_are_named(folder):
    with pytest.raises(InputError, match=r"nowhere\.json"):
        find_pitch(folder, folder / "nowhere.json")


def test_a_missing_file_a_wrong_length_and_a_wrong_shape_are_named(folder):
    torch.save(torch.full((3, 3), 100.0), folder / "three.pt")
    pitch = find_pitch(folder, None)
    with pytest.raises(AlignmentError, match=r"three\.pt: float32 of shape \(3, 3\), expected a n"):
        pitch("three", 3)
    with pytest.raises(AlignmentError, match=r"pitch_char has no pitch of it \(b\.pt or b\.npy\)"):
        pitch("b", 3)
    with pytest.raises(AlignmentError, match=r"a\.pt: pitch of 3 tokens, 4 durations"):
        pitch("a", 4)


def test_an_empty_folder_is_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"--pitch .*empty: no file that ends in \.pt or \.npy"):
        find_pitch(tmp_path / "empty", None)
