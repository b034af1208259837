"""Every format is read, and every damaged file is named in one line."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from preprocessors.manifest import Utterance, safe_id
from processors.alignment.aligner import AlignmentError
from processors.alignment.textgrid import Tiers, find_textgrid
from processors.durations import sources
from processors.durations.sources import FrameRate, Tokens, correct_sum, durations_in, find_pitch
from tests.processors.durations import examples
from tests.processors.durations.examples import COUNTED, DEMO, FILES, TIMED, read, write
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
    examples.write_counts(tmp_path / COUNTED[format], np.array([3, 0, 12], dtype=dtype))
    assert read(tmp_path, format).tolist() == [3, 0, 12]
    assert read(tmp_path, format).dtype == np.int64


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ((0.2, 0.3), (0.5, 0.4), r"AY1 lasts from 0.500 to 0.400 s, and must end after it starts"),
        ((0.2, 0.3), (float("nan"), 0.4), r"nan"),
        ((0.2, 0.5), (0.4, 0.6), r"times overlap .*: HH lasts until 0.500 s, and AY1 starts at 0."),
        ((-0.2, 0.3), (0.3, 0.6), r"HH lasts from -0.200 to 0.300 s, .*; align"),
        ((0.5, 0.6), (0.2, 0.3), r"not in order: HH lasts until .*, and AY1 starts at 0.200 s; al"),
    ],
)
@pytest.mark.parametrize("format", TIMED)
def test_times_that_make_no_sense_are_named(tmp_path, format, first, second, message):
    if format == "textgrid" and "order" in message:
        return  # the intervals of a tier are sorted
    write(tmp_path, format, [(*first, "HH"), (*second, "AY1")])
    with pytest.raises((AlignmentError, InputError), match=message):
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
    examples.write_counts(tmp_path / COUNTED[format], frames)
    with pytest.raises(AlignmentError, match=rf"{COUNTED[format]}: .*{message}"):
        read(tmp_path, format)


BROKEN = (b"", b"\0" * 40, "größer".encode("latin-1"), b"some words", None)


@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize("content", BROKEN)  # None: of a file cut short
def test_a_file_of_other_content_or_cut_short_is_one_line_with_the_name(tmp_path, format, content):
    path = tmp_path / FILES[format]
    if format in COUNTED:
        examples.write_counts(path, list(range(50)))
    else:
        write(tmp_path, format)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3] if content is None else content)
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
    for tiers in (Tiers("Phon"), Tiers("segmente", "Phon")):
        with pytest.raises(AlignmentError, match=r"tier `Phon`; its tiers are ORT-MAU, Segmente"):
            read(tmp_path, "textgrid", tiers=tiers)
    shutil.copy(DEMO / "TextGrid/LJ001-0002.TextGrid", tmp_path)
    for tiers in (Tiers("foo"), Tiers(words="foo")):  # which the usual ones do not replace
        with pytest.raises(AlignmentError, match=r"in a tier `foo`; its tiers are words, phones"):
            read(tmp_path, "textgrid", tiers=tiers)


def matched(names):
    entries = [sources.SourceEntry(name, Path(f"{name}.npy"), lambda: None) for name in names]
    return sources.match_names(sources.DurationSource(Path("source"), "npy", entries), {*IDS})


@pytest.mark.parametrize(
    "form", ["{}", "{}-durations", "{}_duration", "LJSpeech-duration-{}", "duration-{}"]
)
def test_names_as_projects_make_them_are_matched(form):
    assert [*matched([form.format("LJ001-0001")]).entries] == ["LJ001-0001"]


def test_files_of_durations_are_found_by_the_name_of_a_recording(tmp_path):
    name = "Recording (3)"
    utterance = Utterance(safe_id(name), tmp_path / f"{name}.wav", "One.", "x", name=name)
    (tmp_path / f"{name}.TextGrid").touch()
    assert find_textgrid(tmp_path, utterance) == tmp_path / f"{name}.TextGrid"
    found = sources.match_names(durations_in(tmp_path), {utterance.id})
    assert list(found.entries) == [utterance.id]


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
    table = sources.read_table(path)
    assert table.rate == FrameRate(300, 24000)
    assert table.tokens["u1"] == Tokens(("HH", "AY1", ",", "Y"), None)
    assert table.tokens["u2"] == Tokens(("sp", "Y"), 0.25)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        *((f"u0|HH\n{line}", r"t.txt:2: expected id\|P1 P2")
          for line in ("u1", "u1|", "u1|{}", "u1|HH|soon", "u1|HH|0|text")),
        ("# hop 300", r"t.txt:1: expected .*`# hop_size 256 sample_rate 22050`"),
        ("a|A B\nb|C\na|D", r"t.txt:3: a has a line already; remove one"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_row_of_the_table_is_named(tmp_path, lines, message):
    (tmp_path / "t.txt").write_text(f"{lines}\n")
    with pytest.raises(InputError, match=message):
        sources.read_table(tmp_path / "t.txt")


def test_boundaries_are_exact_at_any_hop_and_rate():
    rate = FrameRate(300, 24000)  # 12.5 ms
    assert rate.boundaries_s(np.array([2, 0, 4])).tolist() == [0, 0.025, 0.025, 0.075]
    assert rate.boundaries_s(np.array([8]), start=2400).tolist() == [0.1, 0.2]


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        # windows inside the audio and centred windows both fit
        *(([n], [max(n, 10)]) for n in (9, 10)),
        *(([n], [11]) for n in (11, 12)),
        ([3, 4, 1], [3, 4, 3]),  # the last token takes what is missing
        ([3, 4, 5, 2], [3, 4, 4, 0]),  # what is too much is taken from the end
        ([3, 4, 3], [3, 4, 3]),
        ([3, 4, 4], [3, 4, 4]),
    ],
)
@pytest.mark.parametrize("n_samples", [2560, 2561])
def test_a_few_frames_are_corrected_at_the_end(frames, expected, n_samples):
    assert correct_sum(np.array(frames), n_samples / 22050, OWN).tolist() == expected


def test_what_is_off_by_more_is_rejected_but_what_is_trimmed_may_end_early():
    message = r"add up to 6, the recording has 10 or 11: off by -4; .* another hop"
    with pytest.raises(AlignmentError, match=message):
        correct_sum(np.array([3, 3]), 2560 / 22050, OWN)
    assert correct_sum(np.array([3, 3]), 2560 / 22050, OWN, trimmed=True).tolist() == [3, 3]
    for trimmed in (False, True):
        with pytest.raises(AlignmentError, match=r"off by \+4"):
            correct_sum(np.array([3, 12]), 2560 / 22050, OWN, trimmed=trimmed)


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


def test_normalised_pitch_becomes_hz_by_its_statistics_and_zero_stays_unvoiced(folder):
    stats = write_stats(folder, {"mean": 165.0, "std": 55.0})
    with pytest.raises(AlignmentError, match=r"a pitch of 12265 Hz, .* values in Hz none"):
        find_pitch(folder, stats)("a", 3)
    torch.save(torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64), folder / "a.pt")
    assert find_pitch(folder, stats)("a", 3).tolist() == [0, 220, 110]
    match = r"a\.pt: a pitch of 1 Hz, expected 20 to 2000 .* --pitch_stats"
    with pytest.raises(AlignmentError, match=match):
        find_pitch(folder, None)("a", 3)


@pytest.mark.parametrize("row", [{"mean": 165.0}, {"mean": 1, "std": 0}, [1, 2], {"mean": "x"}])
def test_statistics_that_are_none_or_missing_are_refused(folder, row):
    with pytest.raises(InputError, match=r"--pitch_stats .*train\.json: expected mean and std"):
        find_pitch(folder, write_stats(folder, row))
    with pytest.raises(InputError, match=r"nowhere\.json"):
        find_pitch(folder, folder / "nowhere.json")


def test_an_unreadable_pitch_file_is_named_once(folder):
    (folder / "b.npy").write_bytes(b"no array")
    with pytest.raises(AlignmentError) as refused:
        find_pitch(folder, None)("b", 3)
    assert str(refused.value).startswith(f"{folder / 'b.npy'}: not a complete .npy file")


def test_a_missing_file_a_wrong_length_a_wrong_shape_and_an_empty_folder_are_named(folder):
    torch.save(torch.full((3, 3), 100.0), folder / "three.pt")
    pitch = find_pitch(folder, None)
    with pytest.raises(AlignmentError, match=r"three\.pt: float32 of shape \(3, 3\), expected a n"):
        pitch("three", 3)
    with pytest.raises(AlignmentError, match=r"pitch_char has no pitch of it \(b\.pt or b\.npy\)"):
        pitch("b", 3)
    with pytest.raises(AlignmentError, match=r"a\.pt: pitch of 3 tokens, 4 durations"):
        pitch("a", 4)
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match=r"--pitch .*empty: no file that ends in \.pt or \.npy"):
        find_pitch(folder / "empty", None)
