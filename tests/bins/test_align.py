"""`arion align` and `arion check`, on recordings of the demo."""

import csv
import json
from pathlib import Path

import pytest

from bins import align, check_corpus
from bins._flags.corpus import DATASET
from processors.alignment import fit
from processors.alignment.textgrid import read_textgrid
from processors.extraction import run
from utils.errors import InputError
from utils.files import write_jsonl

DEMO = Path(__file__).parents[2] / "egs" / "_demo" / "LJSpeech-mini"
IDS = ("LJ001-0002", "LJ001-0004", "LJ001-0008", "LJ001-0005")


@pytest.fixture
def corpus(tmp_path, monkeypatch):
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


def run_command(monkeypatch, module, *words):
    flags = ("--corpus_format", "ljspeech", "--num_workers", "1")
    monkeypatch.setattr("sys.argv", ["arion", *map(str, words), *flags])
    module.main()


def test_recordings_are_aligned_and_the_worst_fitting_listed_first(
    corpus, tmp_path, monkeypatch, caplog
):
    out = tmp_path / "out"
    run_command(monkeypatch, align, corpus, out)
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


def test_files_of_others_are_not_removed(corpus, tmp_path, monkeypatch):
    other = tmp_path / "out" / "stage_1" / "mine.txt"
    other.parent.mkdir(parents=True)
    other.touch()
    with pytest.raises(InputError, match=r"mine\.txt is not of an interrupted call; choose"):
        run_command(monkeypatch, align, corpus, tmp_path / "out")
    assert other.exists()


def test_a_handful_is_aligned_by_pocketsphinx(corpus, tmp_path, monkeypatch):
    out = tmp_path / "out"
    run_command(monkeypatch, align, corpus, out, "--aligner", "pocketsphinx", "--format", "json")
    assert {path.name for path in out.glob("*.json")} == {f"{id}.json" for id in IDS}
    assert not (out / "misfits.tsv").exists()
    assert json.loads((out / "LJ001-0002.json").read_text())


@pytest.mark.parametrize("module", [align, check_corpus])
def test_an_unknown_language_is_refused_before_anything_is_written(
    module, corpus, tmp_path, monkeypatch
):
    words = [corpus, *([tmp_path / "out"] if module is align else []), "--language", "xx"]
    with pytest.raises(InputError, match="espeak has no language 'xx'"):
        run_command(monkeypatch, module, *words)
    assert not (tmp_path / "out").exists()


def test_a_check_lists_all_doubled_ids_with_the_other_faults(corpus, monkeypatch, capsys):
    table = corpus / "metadata.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines, *lines[:2]]) + "\n")
    with pytest.raises(SystemExit):
        run_command(monkeypatch, check_corpus, corpus, "--no_misfits")
    found = capsys.readouterr().out
    assert "Stage 1 would reject 3 of 5" in found
    assert f"{IDS[0]}: the id {IDS[0]} occurs 2 times: metadata.csv:1, metadata.csv:6" in found
    assert f"{IDS[1]}: the id {IDS[1]} occurs 2 times" in found
    assert "LJ001-0009.wav: the file is empty" in found


def scored(config, _n_jobs):
    """As stage 1 with the aligner hmm."""
    rows = [
        {"id": "a", "misfit": 70.4, "words": "that is", "start_s": 2.68, "end_s": 3.19},
        {"id": "b", "misfit": 20.0, "words": "for", "start_s": 0.0, "end_s": 1.0},
    ]
    folder = Path(config.preprocess.processed_dir) / DATASET
    folder.mkdir()
    assert config.preprocess.aligner == "hmm"
    write_jsonl(folder / fit.SCORES_FILE, rows)


def test_a_check_lists_faults_and_misfits_with_words_and_times(corpus, monkeypatch, capsys):
    monkeypatch.setattr(run, "prepare_datasets", scored)
    table = corpus / "metadata.csv"
    good = table.read_text()
    for n in range(5):
        (corpus / "wavs" / f"empty-{n}.wav").touch()
        table.write_text(table.read_text() + f"empty-{n}|Nothing.|Nothing.\n")
    with pytest.raises(SystemExit) as ended:
        run_command(monkeypatch, check_corpus, corpus)
    assert ended.value.code == 1
    assert "empty-4.wav: the file is empty" in capsys.readouterr().out

    table.write_text(good)
    run_command(monkeypatch, check_corpus, corpus)
    found = capsys.readouterr().out
    assert "recordings that may differ from their texts: 1\n" in found
    assert "  a: misfit 70 at 'that is', 2.68-3.19 s\n" in found
    run_command(monkeypatch, check_corpus, corpus, "--no_misfits")
    assert "differ" not in capsys.readouterr().out
