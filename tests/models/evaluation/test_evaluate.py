import importlib.util
import json
import math
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from models.evaluation import evaluate as evaluation
from models.evaluation import results
from models.evaluation.evaluate import warn_of_language
from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions
from models.evaluation.results import Evaluation, MeanScore, System, SystemReport, mean_scores
from modules.mel import MelConfig
from processors.audio.files import write_wav
from processors.metrics.recognition.user_models import UserModels, load_function
from processors.metrics.records import Copy, MetricValue
from processors.metrics.registry import METRICS
from processors.metrics.utterance_scorer import EvaluatedUtterance, ScoreColumn, UtteranceScores
from tests.models import stage_3
from tests.models.stage_3 import (
    RATE,
    copy_line,
    make_store,
    preprocess_of,
    text_line,
    write_results,
)
from utils.errors import InputError
from utils.files import read_json, read_jsonl
from utils.parallel import ChunkResult


@pytest.fixture
def recogniser(monkeypatch):
    """Hears "one" in quiet sounds, and "one two three" in loud ones."""

    def recognise(wav: np.ndarray, sample_rate: int) -> str:
        assert sample_rate == RATE
        return "one two three" if np.abs(wav).max() > 0.25 else "one"

    pytest.importorskip("jiwer")
    monkeypatch.setattr("processors.metrics.recognition.labelled_speech.recognise", recognise)


@pytest.fixture
def copies(tmp_path) -> EvaluationInputs:
    """Copies of two recordings at half their level, with their texts."""
    folder = stage_3.write_copies(tmp_path, make_store(tmp_path))
    return EvaluationInputs((folder,), preprocess_of(tmp_path))


def evaluate(inputs: EvaluationInputs, options: EvaluationOptions, n_jobs: int) -> SystemReport:
    """The results of the only system."""
    return evaluation.evaluate(inputs, options, n_jobs).systems[0].report


def only(*metrics: str) -> EvaluationOptions:
    return EvaluationOptions(metrics=metrics)


@pytest.mark.usefixtures("recogniser")
def test_copies_are_scored_by_known_answers_and_the_files_say_so(copies):
    report = evaluate(copies, only("mel_l1", "mstft", "wer"), n_jobs=1)
    means = {name: score.mean for name, score in report.scores.items()}
    assert means == {
        "mel_l1": pytest.approx(math.log(2), abs=2e-3),
        "mstft": pytest.approx(0.5 + math.log(2), abs=2e-3),
        "wer": pytest.approx(100 * 2 / 3, abs=1e-4),
        "wer_recorded": 0,
        "wer_difference": pytest.approx(100 * 2 / 3, abs=1e-4),
    }
    assert {score.n for score in report.scores.values()} == {2}
    assert (report.utterances, report.vocoder) == (2, "a vocoder")
    assert report.seconds == pytest.approx((48 + 70) * 64 / RATE, abs=1e-3)
    written = read_json(copies.folders[0] / "scores.json")
    assert {name: score["mean"] for name, score in written["scores"].items()} == means
    rows = read_jsonl(copies.folders[0] / "scores.jsonl")
    assert [row["id"] for row in rows] == ["rec-008", "rec-009"]
    assert rows[0]["notes"] == {"wer": "one", "wer_recorded": "one two three"}
    assert rows[1]["weights"]["mel_l1"] == 70


def set_score(monkeypatch, name: str, score) -> None:
    monkeypatch.setitem(METRICS, name, replace(METRICS[name], score=score))


@pytest.mark.usefixtures("recogniser")
def test_all_leaves_out_what_is_not_installed_and_says_so_once(copies, monkeypatch, caplog):
    find = importlib.util.find_spec

    def find_others(name, *more):
        return None if name == "pesq" else find(name, *more)

    monkeypatch.setattr("importlib.util.find_spec", find_others)
    with caplog.at_level("INFO", "arion"):
        report = evaluate(copies, EvaluationOptions(), n_jobs=1)
    assert report.skipped["pesq"] == "not installed (pip install pesq)"
    assert caplog.text.count("without pesq: not installed (pip install pesq)") == 1
    assert {"mel_l1", "mstft", "wer_difference"} <= set(report.scores)
    assert read_json(copies.folders[0] / "scores.json")["skipped"] == report.skipped


def test_a_metric_that_does_not_apply_is_refused_before_any_resynthesis(tmp_path, monkeypatch):
    def resynthesise(*_):
        raise AssertionError("resynthesised")

    folder, store = tmp_path / "out", make_store(tmp_path)
    wav = store.read(store.ids[-1]).wav / np.float32(32768)
    write_results(folder, [text_line(store.ids[-1])], [wav])
    inputs = EvaluationInputs((folder,), preprocess_of(tmp_path))
    monkeypatch.setattr("models.evaluation.inputs.references.resynthesise", resynthesise)
    with pytest.raises(InputError, match="--metrics mstft: compares copies"):
        evaluate(inputs, only("mstft"), 1)
    assert not (folder / "scores.json").exists()


@pytest.mark.usefixtures("recogniser")
def test_synthesised_texts_have_word_errors_and_no_scores_of_copies(tmp_path, caplog):
    make_store(tmp_path)
    # a third as long as the recording: a text has its own timing
    wavs = [np.full(900, level) for level in (0.2, 0.3)]
    write_results(tmp_path / "out", [text_line("rec-008"), text_line("rec-009")], wavs)
    inputs = EvaluationInputs((tmp_path / "out",), preprocess_of(tmp_path))
    with caplog.at_level("INFO", "arion"):
        report = evaluate(inputs, EvaluationOptions(), n_jobs=1)
    means = {name: score.mean for name, score in report.scores.items()}
    assert means == means | {
        "wer": pytest.approx(100 * 2 / 6, abs=1e-4),
        "wer_recorded": 0,
        "wer_difference": pytest.approx(100 * 2 / 6, abs=1e-4),
    }
    assert set(report.skipped) >= {"mel_l1", "mstft", "pesq", "stoi"}
    assert not set(means) & {"mel_l1", "mstft", "pesq", "stoi"}
    with pytest.raises(InputError, match="--metrics mel_l1: compares copies with their recordings"):
        evaluate(inputs, only("mel_l1"), n_jobs=1)


def test_recordings_without_a_text_have_no_word_error(tmp_path, caplog):
    folder = stage_3.write_copies(tmp_path, make_store(tmp_path, text=""))
    inputs = EvaluationInputs((folder,), preprocess_of(tmp_path))
    with caplog.at_level("INFO", "arion"):
        report = evaluate(inputs, EvaluationOptions(), n_jobs=1)
    assert report.skipped["wer"].startswith("lacks a text (--texts) in English")
    assert "without cer, wer, words: lacks a text (--texts) in English" in caplog.text
    with pytest.raises(InputError, match=r"--metrics wer: lacks a text .* in English"):
        evaluate(inputs, only("wer"), n_jobs=1)


def test_only_a_data_set_or_a_whole_split_is_scored(tmp_path, copies):
    wav = np.full(3000, 0.1)  # of the user's, next to the copies of the dataset
    write_wav(tmp_path / "mine.wav", wav * np.sin(np.arange(3000)), RATE)
    write_results(tmp_path / "out", [copy_line("mine", tmp_path / "mine.wav", dataset="")], [wav])
    chosen = {None: 3, ("Anna", None): 2, ("Anna", "test"): 2}
    for choice, n in chosen.items():
        dataset, split = choice or (None, None)
        selection = EvaluationOptions(("mel_l1",), dataset, split)
        assert evaluate(copies, selection, n_jobs=1).utterances == n
    with pytest.raises(InputError, match=r"nothing of the dataset 'Bert' \(synthesised: Anna\)"):
        evaluate(copies, EvaluationOptions(("mel_l1",), "Bert"), n_jobs=1)
    message = r"6 utterances of the split train were not synthesised \(rec-"
    with pytest.raises(InputError, match=message):
        evaluate(copies, EvaluationOptions(("mel_l1",), "Anna", "train"), n_jobs=1)


def test_a_mean_over_several_vocoders_is_refused(tmp_path, copies):
    line = copy_line("rec-001", tmp_path / "data" / "Anna", vocoder="another")
    write_results(copies.folders[0], [line], [np.full(16 * 64, 0.1)])
    with pytest.raises(InputError, match="holds files of several vocoders: a vocoder, another"):
        evaluate(copies, only("mel_l1"), n_jobs=1)


def test_an_utterance_that_crashes_its_process_is_named(copies, monkeypatch):
    def crash(function, chunks, n_jobs, backend):
        for key, items in chunks.items():
            yield ChunkResult(key, [], tuple(items))

    monkeypatch.setattr(evaluation, "run_chunks", crash)
    with pytest.raises(InputError, match=r"rec-008\.wav: a metric crashes; is it damaged"):
        evaluate(copies, only("mel_l1"), n_jobs=1)


@pytest.mark.processes
def test_processes_give_the_scores_of_one(copies):
    reports = []
    for backend in ("loky", "sequential"):
        inputs = replace(copies, preprocess=replace(copies.preprocess, backend=backend))
        reports.append(evaluate(inputs, only("mel_l1", "mstft"), n_jobs=2))
    assert reports[0] == reports[1]


def write_levels(root: Path, store, **levels: float) -> list[Path]:
    """Copies of the test split at several levels, a folder each."""
    folders = []
    for name, level in levels.items():
        stage_3.write_copies(root, store, level).rename(root / name)
        folders.append(root / name)
    return folders


def test_systems_are_scored_together_and_compared(tmp_path):
    store = make_store(tmp_path)
    folders = write_levels(tmp_path, store, quarter=0.25, half=0.5)
    inputs = EvaluationInputs(tuple(folders), preprocess_of(tmp_path))
    found = evaluation.evaluate(inputs, only("mel_l1"), 1)
    assert [system.name for system in found.systems] == ["quarter", "half"]
    assert [list(system.scored) for system in found.systems] == [["rec-008", "rec-009"]] * 2
    assert [item.id for item in found.items] == ["rec-008", "rec-009"]
    means = [system.report.scores["mel_l1"].mean for system in found.systems]
    assert means == pytest.approx([math.log(4), math.log(2)], abs=5e-3)
    (comparison,) = found.comparisons
    difference = comparison.differences["mel_l1"]
    assert difference.mean == pytest.approx(means[0] - means[1], abs=1e-6)
    assert difference.low > 0.69
    for folder, mean in zip(folders, means, strict=True):
        assert read_json(folder / "scores.json")["scores"]["mel_l1"]["mean"] == mean
    written = read_json(folders[0] / "comparison" / "comparison.json")
    assert written["comparisons"][0]["differences"]["mel_l1"]["first_is"] == "too few"


def test_files_may_have_any_name_that_is_unicode(tmp_path):
    (folder,) = write_levels(tmp_path, make_store(tmp_path), a=0.5)
    recordings, spoken = tmp_path / "recordings [1]", tmp_path / "café <&|> '$x' %20"
    inputs = EvaluationInputs((spoken,), preprocess_of(tmp_path), recordings)
    for target in (recordings, spoken):
        target.mkdir()
        shutil.copy(folder / "rec-008.wav", target / "über #1?\n.wav")
    evaluate(inputs, only("mel_l1"), n_jobs=2)
    assert [row["id"] for row in read_jsonl(spoken / "scores.jsonl")] == ["über #1?\n"]
    (spoken / "über #1?\n.wav").rename(spoken / os.fsdecode(b"\xfcber.wav"))
    with pytest.raises(InputError, match="its name is not UTF-8"):
        evaluate(inputs, only("mel_l1"), n_jobs=2)


@pytest.mark.usefixtures("recogniser")
def test_second_readings_are_scored_as_a_reference(tmp_path):
    store = make_store(tmp_path)
    wavs = [np.full(900, level) for level in (0.2, 0.3)]
    write_results(tmp_path / "out", [text_line("rec-008"), text_line("rec-009")], wavs)
    write_wav(tmp_path / "again" / "rec-001.wav", np.full(900, 0.2), RATE)
    write_wav(tmp_path / "again" / "rec-008.wav", np.full(900, 0.3), RATE)
    options = EvaluationOptions(("wer",), natural=tmp_path / "again")
    inputs = EvaluationInputs((tmp_path / "out",), preprocess_of(tmp_path), datasets=("Anna",))
    found = evaluation.evaluate(inputs, options, 1)
    (own,), (copy, natural) = found.systems, found.references
    assert (own.is_reference, copy.is_reference, natural.is_reference) == (False, True, True)
    assert (natural.name, list(natural.scored)) == ("natural", ["rec-001", "rec-008"])
    assert [item.id for item in found.items] == ["rec-008", "rec-009"]
    assert [list(item.spoken) for item in found.items] == [
        ["out", "copy", "natural"], ["out", "copy"],
    ]  # fmt: skip
    floor = own.report.references["natural"]["wer"]
    assert (floor.mean, floor.n) == (pytest.approx(100 * 2 / 6, abs=1e-4), 2)
    assert own.report.references["copy"]["wer"].n == 2
    written = read_json(tmp_path / "out" / "scores.json")
    assert written["references"]["natural"]["wer"]["n"] == 2
    assert not (tmp_path / "again" / "scores.json").exists()
    assert len(store.ids) > 2


@pytest.mark.usefixtures("recogniser")
def test_texts_of_the_users_own_are_scored_without_recordings(tmp_path, caplog):
    wavs = [np.full(900, level) for level in (0.2, 0.3)]
    lines = [text_line(f"text-000{n}", dataset="") for n in (1, 2)]
    write_results(tmp_path / "single", lines, wavs)
    folders, languages = (tmp_path / "single",), {"anna": "en-us"}
    inputs = EvaluationInputs(folders, preprocess_of(tmp_path), languages=languages)
    with caplog.at_level("INFO", "arion"):
        report = evaluate(inputs, EvaluationOptions(), n_jobs=1)
    assert report.scores["wer"].mean == pytest.approx(100 * 2 / 6, abs=1e-4)
    assert not {"wer_recorded", "wer_difference", "mcd"} & set(report.scores)
    names = r"mcd, mcd_frames, (similarity, )?speech_rate, v_uv_f1"  # with its package
    assert re.search(f"{names}: there are no recordings to", caplog.text)
    assert "silence" in report.flags
    with pytest.raises(InputError, match="--metrics mcd: there are no recordings"):
        evaluate(inputs, only("mcd"), n_jobs=1)


def test_failures_are_found_and_counted(tmp_path):
    store = make_store(tmp_path)
    (folder,) = write_levels(tmp_path, store, loud=0.5)
    wav, _ = soundfile.read(folder / "rec-009.wav")
    write_wav(folder / "rec-009.wav", 0 * wav, RATE)
    inputs = EvaluationInputs((folder,), preprocess_of(tmp_path))
    selection = EvaluationOptions(("mel_l1",), checks=("silence",))
    report = evaluate(inputs, selection, n_jobs=1)
    assert report.flags == {"silence": 1}
    rows = read_jsonl(folder / "scores.jsonl")
    assert rows[0]["flags"] == {}
    assert list(rows[1]["flags"]) == ["silence"]


@pytest.mark.usefixtures("recogniser")
def test_a_metric_that_fails_leaves_all_other_scores(copies, monkeypatch, caplog):
    def fail(copy: Copy) -> MetricValue:
        raise IndexError("list index out of range")

    score = METRICS["mel_l1"].score
    failing = {"mel_l1": lambda c: fail(c) if len(c.wav) < 4000 else score(c), "fpc": fail}
    for name, function in failing.items():
        set_score(monkeypatch, name, function)
    with caplog.at_level("WARNING", "arion"):
        report = evaluate(copies, EvaluationOptions(checks=("silence",)), n_jobs=1)
    assert report.scores["mel_l1"].n == 1
    assert report.scores["mstft"].n == 2
    fault = "fails: IndexError: list index out of range"
    assert f"no mel_l1 of 1 of 2 ({fault}): rec-008" in caplog.text
    assert report.skipped["fpc"] == fault
    rows = read_jsonl(copies.folders[0] / "scores.jsonl")
    failed = [name for name, why in rows[0]["unscored"].items() if why.startswith("fails")]
    assert failed == ["mel_l1"]
    with pytest.raises(InputError, match="--metrics fpc: fails: IndexError"):
        evaluate(copies, only("fpc"), n_jobs=1)


def boom(wav: np.ndarray, sample_rate: int, language: str) -> str:
    raise OSError("no model\nat all")


def test_a_recogniser_that_fails_ends_the_run_at_once_with_the_utterance(copies):
    recogniser = load_function(f"{__name__}:boom")
    options = EvaluationOptions(("mel_l1", "wer"), user_models=UserModels(recogniser=recogniser))
    with pytest.raises(InputError) as error:
        evaluation.evaluate(copies, options, 2)
    fault = r"rec-00[89]: \S+:boom fails: OSError: no model \(.*test_evaluate.py, line"
    assert re.match(fault, str(error.value))
    assert "\n" not in str(error.value)


def test_all_utterances_that_cannot_be_scored_are_listed(tmp_path):
    folder = stage_3.write_copies(tmp_path, make_store(tmp_path))
    for id in ("rec-008", "rec-009"):
        write_wav(folder / f"{id}.wav", np.full(50, 0.1), RATE)
    inputs = EvaluationInputs((folder,), preprocess_of(tmp_path))
    with pytest.raises(InputError, match="2 of 2 utterances could not be scored") as error:
        evaluate(inputs, only("mel_l1"), n_jobs=1)
    lines = str(error.value).splitlines()[1:]
    assert [("rec-008" in line, "rec-009" in line) for line in lines] == [
        (True, False), (False, True),
    ]  # fmt: skip
    assert all("50 samples, and its recording has" in line for line in lines)
    assert not (folder / "scores.json").exists()


def system_of(wer_recorded: float) -> System:
    score = MeanScore("%", "", wer_recorded, None, None, 1)
    report = SystemReport(1, 1.0, "", {"wer_recorded": score}, {})
    return System("a", Path("a"), report, {})


def test_recordings_that_the_recogniser_misreads_are_logged_once_with_the_language(caplog):
    def found(*systems: System, references=()) -> Evaluation:
        items = (EvaluatedUtterance("x", None, "Guten Tag.", "en-us", tuple, {}),)
        return Evaluation(systems, items, MelConfig(), references=references)

    warn_of_language(found(system_of(80), references=(system_of(188),)))
    assert caplog.records == []
    warn_of_language(found(system_of(90), system_of(188)))
    (record,) = caplog.records
    assert "misreads 188 % of the words of the recordings" in record.getMessage()
    assert "is their language en-us? Set it by --set preprocess.corpus." in record.getMessage()


def test_files_say_what_the_table_says_and_more(tmp_path):
    value = {"mel_l1": MetricValue(0.12345678, 7), "wer": MetricValue(50.0, 2, "hello word")}
    flags, unscored = {"silence": "2 s of it"}, {"stoi": "no speech", "pesq": "no"}
    scored = [UtteranceScores("a", 1.23456, value, flags, unscored)]
    nats, percent = ScoreColumn("mel_l1", "nats", "lower"), ScoreColumn("wer", "%", "lower")
    scores = mean_scores([nats, percent], scored)
    lists = {"pesq": "no"}, {"silence": 1}, {"natural": {"wer": scores["wer"]}}
    report = SystemReport(1, 1.235, "org/hifigan", scores, *lists)
    one = System("a", tmp_path, report, {"a": scored[0]})
    evaluation.write_results(Evaluation((one,), (), MelConfig()))
    (row,) = read_jsonl(tmp_path / "scores.jsonl")
    assert row == {
        "id": "a", "seconds": 1.2346, "mel_l1": 0.123457, "wer": 50.0,
        "weights": {"mel_l1": 7, "wer": 2}, "notes": {"wer": "hello word"},
        "flags": {"silence": "2 s of it"}, "unscored": {"stoi": "no speech"},
    }  # fmt: skip
    whole = json.loads((tmp_path / "scores.json").read_text())
    assert whole["scores"]["wer"] == {
        "unit": "%", "better": "lower", "mean": 50.0, "low": None, "high": None, "n": 1,
    }  # fmt: skip
    assert whole["references"]["natural"]["wer"] == whole["scores"]["wer"]
    assert whole | {"scores": {}, "references": {}} == {
        "confidence": 0.95, "utterances": 1, "seconds": 1.235, "vocoder": "org/hifigan",
        "scores": {}, "skipped": {"pesq": "no"}, "flags": {"silence": 1}, "references": {},
    }  # fmt: skip


def test_the_file_of_a_comparison_has_folders_and_verdicts(tmp_path):
    differences = {"wer": MeanScore("%", "lower", -5.0, -6.0, -4.5, 50)}
    empty = SystemReport(20, 60.0, "", {}, {})
    systems = tuple(System(name, tmp_path / name, empty, {}) for name in ("b", "a"))
    comparisons = (results.Comparison("b", "a", differences),)
    evaluation.write_results(Evaluation(systems, (), MelConfig(), comparisons, tmp_path))
    written = read_json(tmp_path / "comparison.json")
    assert written["confidence"] == 0.95
    assert written["systems"]["b"] == str(tmp_path / "b")
    (pair,) = written["comparisons"]
    assert (pair["first"], pair["second"]) == ("b", "a")
    assert pair["differences"] == {
        "wer": {
            "unit": "%", "better": "lower", "mean": -5.0, "low": -6.0, "high": -4.5, "n": 50,
            "first_is": "better",
        }
    }  # fmt: skip
