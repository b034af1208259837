import json
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from models.checkpoint.history import History
from models.synthesizer.runs.results import (
    ResultFolder,
    best_checkpoint,
    default_output,
    experiment_of,
    refuse,
    synthesise_each,
    utterances_of,
)
from preprocessors.manifest import Splits, Utterance, write_manifest, write_splits
from tests.models.training.small_tasks import write_voice_config
from tests.processes import Process
from utils.errors import InputError


def prepare(tmp_path: Path, dataset: str = "Anna", **texts: str) -> None:
    """What stage 1 leaves: every utterance is a test utterance."""
    folder = tmp_path / "data" / dataset
    utterances = [Utterance(id, Path(f"{id}.wav"), text, "one") for id, text in texts.items()]
    write_manifest(folder / "manifest.jsonl", utterances)
    ids = sorted(texts)
    write_splits(folder, Splits(train=[], valid=[], test=ids, golden_test=ids[:1]))


def test_the_best_checkpoint_is_the_one_that_the_history_names(tmp_path):
    with pytest.raises(
        InputError, match=r"history\.json there names no best checkpoint; --infer_best"
    ):
        best_checkpoint(tmp_path)
    History(step=6, best=0.5, best_step=4).save(tmp_path)
    assert best_checkpoint(tmp_path) == tmp_path / "checkpoints" / "step-00000004"


def test_an_unknown_dataset_is_an_error_that_lists_the_prepared_ones(tmp_path):
    prepare(tmp_path, "Anna", a="Aa.")
    prepare(tmp_path, "Bert", a="Aa.")
    with pytest.raises(InputError, match=r"no dataset 'Ana' \(prepared: Anna, Bert\)"):
        utterances_of(tmp_path / "data", "Ana", "test")


def test_a_dataset_before_stage_1_is_an_error_that_says_so(tmp_path):
    with pytest.raises(InputError, match=r"no dataset 'Anna' \(prepared: none\); .*run stage 1"):
        utterances_of(tmp_path / "data", "Anna", "test")


def test_an_empty_split_is_an_error(tmp_path):
    prepare(tmp_path, a="Aa.")
    with pytest.raises(InputError, match="the split train is empty"):
        utterances_of(tmp_path / "data", "Anna", "train")


def test_a_split_that_does_not_fit_its_manifest_is_an_error(tmp_path):
    prepare(tmp_path, a="Aa.", b="Bb.")
    write_manifest(tmp_path / "data" / "Anna" / "manifest.jsonl", [])
    with pytest.raises(InputError, match=r"a is not in manifest.jsonl; run stage 1 again"):
        utterances_of(tmp_path / "data", "Anna", "test")


def test_output_goes_into_a_local_experiment(tmp_path):
    assert default_output(tmp_path, tmp_path) == tmp_path / "result"


def test_output_of_a_model_on_the_hub_must_be_named(tmp_path):
    with pytest.raises(InputError, match=r"org/voice is no folder here.*--infer_output_dir"):
        default_output("org/voice", tmp_path)


def test_a_name_and_a_config_stand_for_an_experiment(tmp_path):
    config = write_voice_config(tmp_path)
    with pytest.raises(InputError, match=r"ckpts/anna: no such experiment; run stage 2"):
        experiment_of(config, "anna", [])
    (tmp_path / "ckpts" / "anna").mkdir(parents=True)
    assert experiment_of(config, "anna", []) == tmp_path / "ckpts" / "anna"


def test_a_long_list_of_faults_is_cut():
    refuse([], "nothing")
    with pytest.raises(InputError) as error:
        refuse([str(n) for n in range(23)], "23 things")
    assert str(error.value).splitlines()[:2] == ["23 things:", "  0"]
    assert str(error.value).splitlines()[-2:] == ["  19", "  and 3 more"]


@dataclass(frozen=True)
class NumberLine:
    """What is known about a file of zeros."""

    id: str
    file: str
    dataset: str
    value: int
    seconds: float = 2.0
    fingerprint: str = ""
    n_bytes: int = 0


def write_number(folder: Path, id: str) -> NumberLine:
    """The file of a number, which cannot be made if it is odd."""
    value = int(id)
    if value % 2:
        raise InputError(f"{value} is odd")
    folder.mkdir(exist_ok=True)
    (folder / f"{id}.wav").write_bytes(b"0")
    return NumberLine(id, f"{id}.wav", "", value)


def synthesise_numbers(folder: Path, *ids: str, **options: bool) -> list[NumberLine]:
    results = ResultFolder(folder, NumberLine)
    fingerprints = dict.fromkeys(ids, "of this model")
    synthesise_each(
        fingerprints, results, "numbers", lambda id: (write_number(folder, id), 0.5), **options
    )
    return [results.lines[id] for id in ids]


def test_what_was_made_is_logged_and_recorded(tmp_path, caplog):
    with caplog.at_level("INFO", "arion"):
        lines = synthesise_numbers(tmp_path / "out", "4", "2")
    assert [line.value for line in lines] == [4, 2]
    rows = (tmp_path / "out" / "metadata.jsonl").read_text().splitlines()
    assert [json.loads(row)["value"] for row in rows] == [2, 4]
    assert "2 numbers, 4.0 s of speech in 1.0 s (real-time factor 0.250)" in caplog.text


def test_one_is_not_many(tmp_path, caplog):
    with caplog.at_level("INFO", "arion"):
        synthesise_numbers(tmp_path / "out", "4")
        synthesise_numbers(tmp_path / "out", "4")
    log = " ".join(caplog.text.split())
    assert f"(real-time factor 0.250): {tmp_path}/out/4.wav" in log
    assert f"same model and settings in {tmp_path}/out/4.wav; to repeat them, remove" in log
    assert "1 number, 2.0 s of speech" in log
    with pytest.raises(InputError, match=r"^1 of 1 number could .*:\n  3: 3 is odd$"):
        synthesise_numbers(tmp_path / "out", "3")


def test_what_is_done_is_skipped_and_counts_in_no_real_time_factor(tmp_path, caplog):
    synthesise_numbers(tmp_path / "out", "2", "4")
    (tmp_path / "out" / "2.wav").write_bytes(b"9")
    with caplog.at_level("INFO", "arion"):
        lines = synthesise_numbers(tmp_path / "out", "4", "6", "2")
    assert [line.value for line in lines] == [4, 6, 2]
    assert "skipped 2 of 3 numbers, finished with the same model and" in caplog.text
    assert "or give stage 3 --overwrite" in caplog.text
    assert "1 number, 2.0 s of speech in 0.5 s" in caplog.text
    assert "1/1 (100 %)" in caplog.text
    assert (tmp_path / "out" / "2.wav").read_bytes() == b"9"


def test_all_is_spoken_again_if_asked_for(tmp_path, caplog):
    synthesise_numbers(tmp_path / "out", "2")
    (tmp_path / "out" / "2.wav").write_bytes(b"9")
    with caplog.at_level("INFO", "arion"):
        synthesise_numbers(tmp_path / "out", "2", overwrite=True)
    assert (tmp_path / "out" / "2.wav").read_bytes() == b"0"
    assert "skipped" not in caplog.text


def test_scores_stay_where_nothing_is_made(tmp_path):
    synthesise_numbers(tmp_path / "out", "4")
    (tmp_path / "out" / "scores.json").write_text("{}")
    synthesise_numbers(tmp_path / "out", "4")
    assert (tmp_path / "out" / "scores.json").exists()


def test_a_run_that_is_killed_is_continued(tmp_path, caplog):
    """SIGKILL at the third number: no handler runs, no file is closed."""
    script = """
import os, signal, sys
from pathlib import Path
from tests.models.synthesizer.runs import test_synthesis_run as t

def write(folder, id, made=t.write_number):
    if id == "6":
        os.kill(os.getpid(), signal.SIGKILL)
    return made(folder, id)

t.write_number = write
t.synthesise_numbers(Path(sys.argv[1]), "4", "2", "6", "8")
"""
    killed = Process("-c", script, tmp_path / "out").finish()
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with caplog.at_level("INFO", "arion"):
        lines = synthesise_numbers(tmp_path / "out", "4", "2", "6", "8")
    assert "skipped 2 of 4 numbers" in caplog.text
    assert [line.value for line in lines] == [4, 2, 6, 8]
    rows = (tmp_path / "out" / "metadata.jsonl").read_text().splitlines()
    assert [json.loads(row)["value"] for row in rows] == [2, 4, 6, 8]


def test_scores_do_not_outlive_what_they_are_of(tmp_path):
    scores = tmp_path / "out" / "scores.json"
    scores.parent.mkdir()
    scores.write_text("{}")
    synthesise_numbers(tmp_path / "out", "4")
    assert not scores.exists()


def test_what_could_not_be_spoken_is_not_shown_as_done(tmp_path, caplog):
    with caplog.at_level("INFO", "arion"), pytest.raises(InputError, match="2 of 3 numbers"):
        synthesise_numbers(tmp_path / "out", "1", "2", "3")
    assert "100 %" not in caplog.text


def test_failures_are_counted_and_the_first_of_them_listed_at_the_end(tmp_path):
    odd = [str(number) for number in range(1, 47, 2)]
    with pytest.raises(InputError) as failure:
        synthesise_numbers(tmp_path / "out", "2", *odd)
    lines = str(failure.value).splitlines()
    assert lines[0] == "23 of 24 numbers could not be synthesised:"
    assert lines[1] == "  1: 1 is odd"
    assert lines[-1] == "  and 3 more"
    assert len(lines) == 22
