"""`arion align` and `arion check`, on recordings of the demo."""

import csv
import json
from pathlib import Path

import pytest

from bins.check_corpus import DATASET
from processors.alignment import fit
from processors.alignment.hmm import training
from processors.alignment.textgrid import read_textgrid
from processors.extraction import run
from tests.commands import call
from utils.errors import InputError
from utils.files import write_jsonl

DEMO = Path(__file__).parents[2] / "egs" / "_demo" / "LJSpeech-mini"
IDS = ("LJ001-0002", "LJ001-0008", "LJ002-0020", "LJ002-0035")  # the shortest
LJSPEECH = ("--corpus_format", "ljspeech", "--num_workers", "1")


@pytest.fixture
def corpus(tmp_path):
    """Four recordings in the layout of LJ Speech, and one that is empty."""
    folder = tmp_path / "corpus"
    (folder / "wavs").mkdir(parents=True)
    lines = {line.split("|")[0]: line for line in (DEMO / "metadata.csv").read_text().splitlines()}
    for id in IDS:
        (folder / "wavs" / f"{id}.flac").symlink_to(DEMO / "wavs" / f"{id}.flac")
    (folder / "wavs" / "LJ001-0009.wav").touch()
    rows = [lines[id] for id in IDS] + ["LJ001-0009|Nothing.|Nothing."]
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_recordings_are_aligned_the_worst_first(corpus, tmp_path, monkeypatch, caplog):
    out = tmp_path / "out"
    monkeypatch.setattr(training, "_MAX_ITERATIONS", 2)
    call("align", *LJSPEECH, corpus, out)
    files = {f"{id}.TextGrid" for id in IDS} | {"misfits.tsv", "rejected.jsonl"}
    assert {path.name for path in out.iterdir()} == files
    assert "which is too little: expect boundaries that are far off" in caplog.text
    words = [word.text for word in read_textgrid(out / "LJ001-0002.TextGrid").words]
    assert "in being comparatively modern" in " ".join(words).lower()
    rows = list(csv.DictReader((out / "misfits.tsv").open(), delimiter="\t"))
    assert {row["id"] for row in rows} == set(IDS)
    scores = [float(row["misfit"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert "LJ001-0009" in (out / "rejected.jsonl").read_text()


def test_files_of_others_and_of_an_earlier_call_stay(corpus, tmp_path):
    for name, fault in (
        ("a/stage_1/mine.txt", r"mine\.txt is not of an interrupted call; choose"),
        ("b/rejected.jsonl", r"b holds the alignments of an earlier call"),
    ):
        path, out = tmp_path / name, tmp_path / name[0]
        path.parent.mkdir(parents=True)
        path.touch()
        with pytest.raises(InputError, match=fault):
            call("align", *LJSPEECH, corpus, out)
        assert [file for file in out.rglob("*") if file.is_file()] == [path]


def test_a_handful_is_aligned_by_pocketsphinx(corpus, tmp_path):
    out = tmp_path / "out"
    call("align", *LJSPEECH, corpus, out, "--aligner", "pocketsphinx", "--format", "json")
    assert {path.name for path in out.glob("*.json")} == {f"{id}.json" for id in IDS}
    assert not (out / "misfits.tsv").exists()
    assert json.loads((out / "LJ001-0002.json").read_text())


def test_an_unknown_language_is_refused_before_anything_is_written(corpus, tmp_path):
    out = tmp_path / "out"
    for module, words in (("align", [corpus, out]), ("check_corpus", [corpus])):
        with pytest.raises(InputError, match="espeak has no language 'xx'"):
            call(module, *LJSPEECH, *words, "--language", "xx")
    assert not out.exists()


def check_fails(capsys, *words):
    """The output of a check that finds something to correct."""
    with pytest.raises(SystemExit) as ended:
        call("check_corpus", *LJSPEECH, *words)
    assert ended.value.code == 1
    return capsys.readouterr().out


def test_a_check_lists_all_doubled_ids_with_the_other_faults(corpus, capsys):
    table = corpus / "metadata.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines, *lines[:2]]) + "\n")
    found = check_fails(capsys, corpus, "--no_misfits")
    assert "  3 to correct\n" in found
    assert f"{IDS[0]}  the id {IDS[0]} occurs 2 times: metadata.csv:1, metadata.csv:6" in found
    assert f"{IDS[1]}  the id {IDS[1]} occurs 2 times" in found
    assert "LJ001-0009.wav: the file is empty" in found


def scored(config, _n_jobs):
    """As stage 1 with the aligner hmm."""
    rows = [
        {"id": "a", "misfit": 70.4, "words": "that is", "start_s": 2.68, "end_s": 3.19},
        {"id": "b", "misfit": 60.0, "words": "for", "start_s": 0.0, "end_s": 1.0},
        {"id": "c", "misfit": 20.0, "words": "for", "start_s": 0.0, "end_s": 1.0},
    ]
    folder = Path(config.preprocess.processed_dir) / DATASET
    folder.mkdir()
    assert config.preprocess.aligner == "hmm"
    write_jsonl(folder / fit.SCORES_FILE, ({**row, "text": "The text."} for row in rows))
    rejected = {"id": "b", "stage": "alignment", "reason": "no path leads through all words"}
    write_jsonl(folder / run.REJECTED, [rejected])


def test_a_check_lists_all_faults_and_misfits_the_worst_first(corpus, monkeypatch, capsys):
    monkeypatch.setattr(run, "prepare_datasets", scored)
    found = check_fails(capsys, corpus)
    of_little = "less than 5 minutes of recordings, misfits are no faults: listen to them\n"
    assert f"{of_little}  1 to correct" in found
    assert "misfit 70  a           at 'that is'" in found
    monkeypatch.setattr(fit, "RELIABLE_S", 1.0)
    found = check_fails(capsys, corpus)
    assert "misfits are no faults" not in found
    worst = "misfit 70  a           at 'that is', 2.68-3.19 s: probably not spoken as written: The"
    assert f"alignment  b           no path leads through all words\n{worst}" in found
    assert "  2 to correct\n" in found
    found = json.loads(check_fails(capsys, corpus, "--json"))
    assert (found["utterances"], found["to_correct"]) == (5, 2)
    kinds = [(row["kind"], row["ids"]) for row in found["findings"]]
    assert kinds[:2] == [("alignment", ["b"]), ("misfit", ["a"])]


def test_a_check_without_faults_ends_with_0(corpus, capsys):
    (corpus / "metadata.csv").write_text((corpus / "metadata.csv").read_text().rsplit("LJ", 1)[0])
    call("check_corpus", *LJSPEECH, corpus, "--no_misfits", "--json")
    assert json.loads(capsys.readouterr().out)["to_correct"] == 0


def test_a_check_lists_more_faults_than_stage_1_would_accept(corpus, capsys):
    lines = []
    for n in range(5):
        (corpus / "wavs" / f"empty-{n}.wav").touch()
        lines.append(f"empty-{n}|Nothing at all.|Nothing at all.\n")
    (corpus / "metadata.csv").write_text("".join(lines))
    found = check_fails(capsys, corpus)
    assert all(f"empty-{n}.wav: the file is empty" in found for n in range(5))


def test_a_check_says_why_recordings_and_texts_were_not_compared(corpus, monkeypatch, capsys):
    def fail(_config, _n_jobs):
        raise InputError("no room")

    monkeypatch.setattr(run, "prepare_datasets", fail)
    found = check_fails(capsys, corpus)
    assert "recordings and texts were not compared: no room\n" in found
    assert "LJ001-0009.wav: the file is empty" in found
