import json
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import parselmouth
import pytest

from models.checkpoint.history import History
from models.synthesizer.runs.results import (
    CopyLine,
    ResultFolder,
    TextLine,
    best_checkpoint,
    default_output,
    experiment_of,
    export_speech,
    read_rows,
    synthesise_each,
    utterances_of,
)
from models.synthesizer.runs.text_synthesis import InputText, Settings, line_of
from modules.mel import MelConfig
from preprocessors.manifest import write_manifest
from processors.durations import EXPORT_FORMATS
from processors.durations.sources import durations_in
from processors.durations.subtitles import sentences_of
from processors.records import Word
from tests.models.stage_3 import copy_line, text_line
from tests.models.synthesizer.runs.test_text_synthesis import assert_killed, lines_of, prepare
from tests.models.synthesizer.speeches import make_speech
from tests.models.training.small_tasks import write_voice_config
from utils.errors import InputError

HOP, RATE = 256, 22050
PHONES = ("<sil>", "HH", "AY1", "<,>", "Y", "UW1", "<!>")
DURATIONS = (2, 7, 11, 0, 5, 0, 3)
WORDS = (Word("hi", 1, 3), Word("you", 4, 6))

SUBTITLES = ("srt", "vtt")


def folder_of(path) -> ResultFolder[TextLine]:
    return ResultFolder(path, TextLine)


def keep(results: ResultFolder[TextLine], *ids: str, **changes: str) -> None:
    """What a run writes that ends well."""
    results.folder.mkdir(parents=True, exist_ok=True)
    results.begin(ids)
    for id in ids:
        (results.folder / f"{id}.wav").write_bytes(b"RIFF")
        results.add(text_line(id, **changes))
    results.save()


def ids_in(path) -> list[str]:
    return [line["id"] for line in lines_of(path)]


def test_runs_add_to_the_lines_of_files_that_are_there_sorted_by_id(tmp_path):
    keep(folder_of(tmp_path), "b", "c")
    keep(folder_of(tmp_path), "a")
    assert ids_in(tmp_path) == ["a", "b", "c"]
    (tmp_path / "a.wav").unlink()
    first, second = folder_of(tmp_path), folder_of(tmp_path)  # at the same time
    keep(second, "e")
    keep(first, "d")
    second.save()
    assert ids_in(tmp_path) == ["b", "c", "d", "e"]


@pytest.mark.parametrize("content", ['{"id": "a"}\n', "garbage\n", '{"ID": "a"}\n', "[1]\n", "7\n"])
def test_another_metadata_file_is_refused(tmp_path, content: str):
    (tmp_path / "metadata.jsonl").write_text(content)
    with pytest.raises(InputError, match=r"was not written by stage 3 .*infer_output_dir"):
        folder_of(tmp_path)


def test_a_file_is_held_if_it_was_made_from_the_same_and_is_there_and_whole(tmp_path):
    keep(folder_of(tmp_path), "a", "b", fingerprint="f")
    asked = ("a", "f"), ("a", "g"), ("c", "f")
    assert [folder_of(tmp_path).holds(*one) for one in asked] == [True, False, False]
    folder_of(tmp_path).begin(["a"])  # killed after the wav was written, before its line
    assert [folder_of(tmp_path).holds(id, "f") for id in "ab"] == [False, True]
    (tmp_path / "b.wav").write_bytes(b"")  # cut short
    assert not folder_of(tmp_path).holds("b", "f")
    (tmp_path / "b.wav").unlink()
    assert not folder_of(tmp_path).holds("b", "f")
    row = lines_of(tmp_path)[0]
    del row["fingerprint"]  # a line of a version without fingerprints
    (tmp_path / "metadata.jsonl").write_text(json.dumps(row) + "\n")
    assert not folder_of(tmp_path).holds("a", "")


def test_a_run_that_was_killed_while_it_wrote_a_line_loses_this_line_only(tmp_path):
    results = folder_of(tmp_path)
    for id in ("b", "a"):
        (tmp_path / f"{id}.wav").write_bytes(b"RIFF")
        results.add(text_line(id, text="Grüße", fingerprint="f"))
    whole = (tmp_path / "metadata.jsonl").read_bytes()
    start = whole.index(b"\n") + 1  # of the line about a
    for end in range(start, len(whole) + 1):
        (tmp_path / "metadata.jsonl").write_bytes(whole[:end])
        resumed = folder_of(tmp_path)
        assert resumed.holds("b", "f")
        assert resumed.holds("a", "f") == (end >= len(whole) - 1)
        assert [row["id"] for row in read_rows(tmp_path)] == sorted(resumed.lines)
    (tmp_path / "metadata.jsonl").write_bytes(whole[: start + 9])
    keep(folder_of(tmp_path), "a", text="Grüße", fingerprint="f")
    assert ids_in(tmp_path) == ["a", "b"]


def test_a_file_that_was_announced_is_unfinished_and_its_line_is_there_as_soon_as_it_is(tmp_path):
    folder = tmp_path / "out"
    folder_of(folder).announce(text_line("a", fingerprint="f"))
    assert read_rows(folder) == []
    (folder / "a.wav").write_bytes(b"RIFF")
    assert [row["id"] for row in read_rows(folder)] == ["a"]
    assert folder_of(folder).lines["a"].fingerprint == ""
    assert not folder_of(folder).holds("a", "f")


def test_a_file_that_is_replaced_keeps_its_line_until_the_new_one_is_whole(tmp_path):
    keep(folder_of(tmp_path), "a", text="old", fingerprint="old")
    folder_of(tmp_path).announce(text_line("a", text="new"))
    assert folder_of(tmp_path).lines["a"].text == "old"
    folder_of(tmp_path).add(text_line("a", fingerprint="new"))
    assert len((tmp_path / "metadata.jsonl").read_text().splitlines()) == 2
    assert folder_of(tmp_path).holds("a", "new")


def test_scores_of_files_that_are_made_anew_are_forgotten(tmp_path):
    results = folder_of(tmp_path)
    results.begin([])  # there are none
    keep(results, "a")
    scores = ("scores.json", "scores.jsonl", "report.html")
    stale = (*scores, "comparison/comparison.json", "comparison/report.html")
    (tmp_path / "comparison").mkdir()
    for name in (*stale, "notes.html"):
        (tmp_path / name).write_text("")
    results.begin(["a"])
    assert not any((tmp_path / name).exists() for name in stale)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"a.wav", "comparison", "metadata.jsonl", "notes.html"}


def spoken(folder, *ids):
    """A folder as stage 3 leaves it."""
    texts = {"text": "Hi, you!", "normalized": "hi, you!", "words": WORDS}
    speech = make_speech(PHONES, DURATIONS, mel=MelConfig(RATE, hop_length=HOP), **texts)
    speech = replace(speech, sentences=sentences_of(speech.text, speech.words))
    results = ResultFolder(folder, TextLine)
    folder.mkdir(exist_ok=True)
    for id in ids:
        (folder / f"{id}.wav").write_bytes(b"RIFF")
        item = InputText("Hi, you!", speaker="one", output=id)
        results.add(line_of(item, speech, Settings(), vocoder="none", work_s=0.1))
    results.save()
    return folder


def test_alignments_of_mode_single_are_found_in_its_folder_if_something_was_spoken(tmp_path):
    with pytest.raises(InputError, match=r"metadata.jsonl lists no speech; run stage 3"):
        export_speech(tmp_path, "json", None)
    spoken(tmp_path / "single", "a")
    assert export_speech(tmp_path, "json", None) == 1
    assert (tmp_path / "single/a.json").is_file()


def test_textgrids_lie_beside_the_wavs_and_open_in_praat(tmp_path):
    assert export_speech(spoken(tmp_path, "a", "b"), "textgrid", None) == 2
    grid = parselmouth.read(str(tmp_path / "b.TextGrid"))
    call = parselmouth.praat.call
    assert call(grid, "Get end time") == pytest.approx(28 * HOP / RATE)
    words = [
        (call(grid, "Get label of interval", 1, n), call(grid, "Get start time of interval", 1, n))
        for n in range(1, call(grid, "Get number of intervals", 1) + 1)
    ]
    assert [label for label, _ in words if label] == ["hi", "you"]
    assert dict(words)["hi"] == pytest.approx(2 * HOP / RATE, abs=1e-4)


def test_durations_are_the_frames_that_were_spoken_and_subtitles_show_the_text_as_given(tmp_path):
    for format in ("npy", *SUBTITLES):
        export_speech(spoken(tmp_path / "spoken", "a"), format, tmp_path / "out")
    assert np.load(tmp_path / "out/a-durations.npy").tolist() == [*DURATIONS]
    assert (tmp_path / "out/phones.txt").read_text().splitlines() == [
        "# hop_size 256 sample_rate 22050",
        f"a|{' '.join(PHONES)}|0.0",
    ]
    assert "00:00:00,023 --> 00:00:00,857\nHi, you!\n" in (tmp_path / "out/a.srt").read_text()
    assert "\nHi, <00:00:00.232>you!\n" in (tmp_path / "out/a.vtt").read_text()


@pytest.mark.parametrize("format", sorted({*EXPORT_FORMATS} - {"npy", *SUBTITLES}))
def test_every_phone_and_its_frames_can_be_read_back(tmp_path, format):
    export_speech(spoken(tmp_path / "spoken", "a"), format, tmp_path / "out")
    (entry,) = durations_in(tmp_path / "out", format).entries
    grid = entry.read()
    assert tuple(phone.name for phone in grid.phones) == PHONES
    edges = [phone.start_s for phone in grid.phones] + [grid.phones[-1].end_s]
    assert np.diff(np.round(np.array(edges) * RATE / HOP)).tolist() == [*DURATIONS]
    assert [word.text for word in grid.words] == ["hi", "you"]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"phones": [{"phone": "k"}]}, "a lacks 'start_s'"),
        ({"phones": [{"phone": "k", "start_s": None}]}, "a: start_s is None, expected a number"),
        ({"phones": ["k"]}, "a: .*"),
        ({"sample_rate": "22050"}, "a: sample_rate is '22050', expected a number"),
        ({"hop_length": None}, "a: hop_length is None, expected a number"),
    ],
)
def test_a_line_that_somebody_changed_is_named(tmp_path, changes, fault):
    path = spoken(tmp_path, "a") / "metadata.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes) + "\n")
    message = rf"was not written by stage 3 \({fault}\); move it away and run stage 3"
    with pytest.raises(InputError, match=rf"metadata.jsonl {message}"):
        export_speech(tmp_path, "json", None)


def test_the_best_checkpoint_is_the_one_that_the_history_names(tmp_path):
    message = r"history\.json there names no best checkpoint; --infer_best"
    with pytest.raises(InputError, match=message):
        best_checkpoint(tmp_path)
    History(step=6, best=0.5, best_step=4).save(tmp_path)
    assert best_checkpoint(tmp_path) == tmp_path / "checkpoints" / "step-00000004"


def test_a_dataset_without_the_utterances_that_are_asked_for_is_an_error(tmp_path):
    prepare(tmp_path, "Anna", a="Aa.", b="Bb.")
    prepare(tmp_path, "Bert", a="Aa.")
    write_manifest(tmp_path / "data" / "Bert" / "manifest.jsonl", [])
    for processed, dataset, split, message in (
        ("data", "Ana", "test", r"no dataset 'Ana' \(prepared: Anna, Bert\)"),
        ("none", "Anna", "test", r"no dataset 'Anna' \(prepared: none\); .*run stage 1"),
        ("data", "Anna", "train", "the split train is empty"),
        ("data", "Bert", "test", r"a is not in manifest.jsonl; run stage 1 again"),
    ):
        with pytest.raises(InputError, match=message):
            utterances_of(tmp_path / processed, dataset, split)


def test_output_goes_into_a_local_experiment_which_name_and_config_stand_for(tmp_path):
    assert default_output(tmp_path, tmp_path) == tmp_path / "result"
    with pytest.raises(InputError, match=r"org/voice is no folder here.*--infer_output_dir"):
        default_output("org/voice", tmp_path)
    config = write_voice_config(tmp_path)
    with pytest.raises(InputError, match=r"ckpts/anna: no such experiment; run stage 2"):
        experiment_of(config, "anna", [])
    (tmp_path / "ckpts" / "anna").mkdir(parents=True)
    assert experiment_of(config, "anna", []) == tmp_path / "ckpts" / "anna"


def write_number(folder: Path, id: str) -> CopyLine:
    """The file of a number, which cannot be made if it is odd."""
    if int(id) % 2:
        raise InputError(f"{id} is odd")
    folder.mkdir(exist_ok=True)
    (folder / f"{id}.wav").write_bytes(b"0")
    return copy_line(id, folder)


def synthesise_numbers(folder: Path, *ids: str, write=write_number, **options: bool) -> list:
    results = ResultFolder(folder, CopyLine)
    fingerprints = dict.fromkeys(ids, "of this model")
    synthesise_each(
        fingerprints, results, "numbers", lambda id: (write(folder, id), 0.5), **options
    )
    return [results.lines[id] for id in ids]


def test_what_was_made_is_logged_recorded_and_spoken_again_if_asked_for(tmp_path, caplog):
    with caplog.at_level("INFO", "arion"):
        lines = synthesise_numbers(tmp_path / "out", "4", "2")
        (tmp_path / "out" / "2.wav").write_bytes(b"9")
        synthesise_numbers(tmp_path / "out", "2", overwrite=True)
    assert [line.id for line in lines] == ["4", "2"]
    assert ids_in(tmp_path / "out") == ["2", "4"]
    assert "2 numbers, 2.0 s of speech in 1.0 s (real-time factor 0.500)" in caplog.text
    assert (tmp_path / "out" / "2.wav").read_bytes() == b"0"
    assert "skipped" not in caplog.text


def test_one_is_not_many(tmp_path, caplog):
    with caplog.at_level("INFO", "arion"):
        synthesise_numbers(tmp_path / "out", "4")
        synthesise_numbers(tmp_path / "out", "4")
    log = " ".join(caplog.text.split())
    assert f"(real-time factor 0.500): {tmp_path}/out/4.wav" in log
    assert f"same model and settings in {tmp_path}/out/4.wav; to repeat them, remove" in log
    assert "1 number, 1.0 s of speech" in log
    with pytest.raises(InputError, match=r"^1 of 1 number could .*:\n  3: 3 is odd$"):
        synthesise_numbers(tmp_path / "out", "3")


def test_what_is_done_is_skipped_and_counts_in_no_real_time_factor(tmp_path, caplog):
    synthesise_numbers(tmp_path / "out", "2", "4")
    (tmp_path / "out" / "2.wav").write_bytes(b"9")
    with caplog.at_level("INFO", "arion"):
        lines = synthesise_numbers(tmp_path / "out", "4", "6", "2")
    assert [line.id for line in lines] == ["4", "6", "2"]
    assert "skipped 2 of 3 numbers, finished with the same model and" in caplog.text
    assert "or give stage 3 --overwrite" in caplog.text
    assert "1 number, 1.0 s of speech in 0.5 s" in caplog.text
    assert "1/1 (100 %)" in caplog.text
    assert (tmp_path / "out" / "2.wav").read_bytes() == b"9"


def kill_at_6(folder: Path, id: str) -> CopyLine:
    if id == "6":
        os.kill(os.getpid(), signal.SIGKILL)
    return write_number(folder, id)


def test_a_run_that_is_killed_is_continued(tmp_path, caplog):
    run = tmp_path / "out", "4", "2", "6", "8"
    assert_killed(partial(synthesise_numbers, write=kill_at_6), *run)
    with caplog.at_level("INFO", "arion"):
        lines = synthesise_numbers(*run)
    assert "skipped 2 of 4 numbers" in caplog.text
    assert [line.id for line in lines] == ["4", "2", "6", "8"]
    assert ids_in(tmp_path / "out") == ["2", "4", "6", "8"]


def test_scores_do_not_outlive_what_they_are_of(tmp_path):
    scores = tmp_path / "out" / "scores.json"
    scores.parent.mkdir()
    scores.write_text("{}")
    synthesise_numbers(tmp_path / "out", "4")
    assert not scores.exists()
    scores.write_text("{}")
    synthesise_numbers(tmp_path / "out", "4")  # nothing is made
    assert scores.exists()


def test_failures_are_counted_and_the_first_of_them_listed_at_the_end(tmp_path, caplog):
    odd = [str(number) for number in range(1, 47, 2)]
    with caplog.at_level("INFO", "arion"), pytest.raises(InputError) as failure:
        synthesise_numbers(tmp_path / "out", "2", *odd)
    lines = str(failure.value).splitlines()
    assert lines[:2] == ["23 of 24 numbers could not be synthesised:", "  1: 1 is odd"]
    assert lines[-1] == "  and 3 more"
    assert len(lines) == 22
    assert "100 %" not in caplog.text
