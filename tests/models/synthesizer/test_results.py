import json

import numpy as np
import pytest

from models.synthesizer.results import Results, Settings, TextLine, line_of
from models.synthesizer.speech import Part, join
from processors.records import Word
from utils.errors import InputError


def line(id: str, text: str = "Hello.", dataset: str = "", settings: Settings | None = None):
    words = (Word("hello", 1, 2),)
    zeros = np.zeros(3, dtype=np.float32)
    part = Part("hello.", ("<sil>", "AH", "<.>"), words, np.array([1, 1, 1]), np.ones(300),
                np.zeros((2, 3)), zeros, zeros)  # fmt: skip
    speech = join([part], text=text, speaker="one", sample_rate=1000, hop_length=100)
    return line_of(
        id, speech, settings or Settings(), dataset=dataset, vocoder="Griffin-Lim", work_s=0.03
    )


def keep(results: Results, entry: TextLine) -> None:
    results.folder.mkdir(parents=True, exist_ok=True)
    (results.folder / entry.file).write_bytes(b"RIFF")
    results.add(entry)
    results.save()


def test_a_line_says_what_was_spoken_and_when(tmp_path):
    keep(Results(tmp_path), line("text-0001"))
    row = json.loads((tmp_path / "metadata.jsonl").read_text())
    assert row["file"] == "text-0001.wav"
    assert (row["text"], row["normalized"], row["speaker"]) == ("Hello.", "hello.", "one")
    assert row["words"] == [{"word": "hello", "start_s": 0.1, "end_s": 0.2}]
    assert row["phones"][1] == {"phone": "AH", "start_s": 0.1, "duration_s": 0.1}
    assert row["seconds"] == 0.3
    assert row["real_time_factor"] == 0.1


def test_texts_are_numbered_in_order(tmp_path):
    results = Results(tmp_path)
    ids = [results.id_for(text, "one", Settings()) for text in ("a", "b", "c")]
    assert ids == ["text-0001", "text-0002", "text-0003"]


def test_another_run_does_not_overwrite_another_text(tmp_path):
    keep(Results(tmp_path), line("text-0001", "first"))
    assert Results(tmp_path).id_for("second", "one", Settings()) == "text-0002"


def test_the_same_text_with_the_same_settings_keeps_its_file(tmp_path):
    keep(Results(tmp_path), line("text-0007", "first"))
    assert Results(tmp_path).id_for("first", "one", Settings()) == "text-0007"


@pytest.mark.parametrize(
    "settings", [Settings(pitch_control=1.1), Settings(duration_control=2.0), Settings(seed=1)]
)
def test_the_same_text_with_other_settings_gets_another_file(tmp_path, settings: Settings):
    keep(Results(tmp_path), line("text-0001", "first"))
    assert Results(tmp_path).id_for("first", "one", settings) == "text-0002"
    assert Results(tmp_path).id_for("first", "two", Settings()) == "text-0002"


def test_a_line_that_stands_twice_in_a_file_gets_two_files(tmp_path):
    keep(Results(tmp_path), line("text-0001", "yes"))
    results = Results(tmp_path)
    assert results.id_for("yes", "one", Settings()) == "text-0001"
    assert results.id_for("yes", "one", Settings()) == "text-0002"


def test_a_file_that_no_line_knows_is_not_overwritten(tmp_path):
    (tmp_path / "text-0041.wav").write_bytes(b"RIFF")
    assert Results(tmp_path).id_for("a", "one", Settings()) == "text-0042"


def test_runs_into_one_folder_add_to_its_lines(tmp_path):
    keep(Results(tmp_path), line("b"))
    keep(Results(tmp_path), line("a"))
    rows = [json.loads(row) for row in (tmp_path / "metadata.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == ["a", "b"]


def test_lines_of_deleted_files_are_forgotten(tmp_path):
    keep(Results(tmp_path), line("a"))
    (tmp_path / "a.wav").unlink()
    keep(Results(tmp_path), line("b"))
    assert len((tmp_path / "metadata.jsonl").read_text().splitlines()) == 1


def test_a_sentence_of_another_dataset_is_not_overwritten(tmp_path):
    keep(Results(tmp_path), line("0001", dataset="Anna"))
    results = Results(tmp_path)
    results.check_dataset("Anna", ["0001"])
    with pytest.raises(InputError, match="is of the dataset 'Anna'; the 0001 of 'Bert'"):
        results.check_dataset("Bert", ["0001", "0002"])


@pytest.mark.parametrize("content", ['{"id": "a"}\n', "[1]\n", "7\n"])
def test_another_metadata_file_is_refused(tmp_path, content: str):
    (tmp_path / "metadata.jsonl").write_text(content)
    with pytest.raises(
        InputError, match=r"is not a list of what this stage makes .*infer_output_dir"
    ):
        Results(tmp_path)


def test_scores_of_files_that_are_made_anew_are_forgotten(tmp_path):
    results = Results(tmp_path)
    results.forget_scores()  # there are none
    keep(results, line("a"))
    stale = ["scores.json", "scores.jsonl", "report.html", "comparison/comparison.json",
             "comparison/report.html", "unfinished/1.json",
             "comparison/unfinished/2.json"]  # fmt: skip
    for folder in ("unfinished", "comparison/unfinished"):
        (tmp_path / folder).mkdir(parents=True)
    for name in (*stale, "notes.html"):
        (tmp_path / name).write_text("")
    results.forget_scores()
    assert not any((tmp_path / name).exists() for name in stale)
    assert {path.name for path in tmp_path.iterdir()} == {
        "a.wav", "comparison", "metadata.jsonl", "notes.html",
    }  # fmt: skip
