from pathlib import Path

import numpy as np
import pytest

from models.evaluation.evaluate import evaluate
from models.evaluation.inputs import systems as inputs_systems
from models.evaluation.inputs.evaluation_set import EvaluationSet, transcripts_by_system
from models.evaluation.inputs.options import EvaluationInputs, EvaluationOptions
from models.evaluation.inputs.systems import SystemFile, read_system_files, read_texts
from models.synthesizer.runs.results import row_of
from processors.audio.files import write_wav
from processors.metrics.recognition.user_models import UserModels
from processors.records import TimedPhone
from tests.models import stage_3
from tests.models.stage_3 import copy_line, make_store, preprocess_of, text_line, write_results
from utils.errors import InputError
from utils.files import append_jsonl


def test_a_synthesised_text_has_its_phones_and_speaker(tmp_path):
    phones = TimedPhone("<sil>", 0.0, 0.25), TimedPhone("AH0", 0.25, 0.75)
    write_results(tmp_path, [text_line("a", phones)], [np.full(9, 0.1)])
    (result,) = read_system_files(tmp_path)
    spoken = "One two, three!", "one two, three!", "anna", "Griffin-Lim", phones
    assert result == SystemFile("a", tmp_path / "a.wav", "text", "Anna", *spoken)


def test_a_copy_knows_what_its_mel_comes_from(tmp_path):
    write_results(tmp_path, [copy_line("a", tmp_path / "data")], [np.full(9, 0.1)])
    (result,) = read_system_files(tmp_path)
    assert (result.kind, result.source, result.vocoder) == ("copy", tmp_path / "data", "a vocoder")
    assert result.phones == ()


def test_what_a_killed_stage_3_has_recorded_is_scored_once_and_by_id(tmp_path):
    wavs = [np.full(9, 0.1)] * 2
    write_results(tmp_path, [text_line("a", text="old"), text_line("b")], wavs)
    append_jsonl(tmp_path / "metadata.jsonl", row_of(text_line("a", text="new")))
    with (tmp_path / "metadata.jsonl").open("a") as file:
        file.write('{"id": "c", "fi')
    results = [(result.id, result.text) for result in read_system_files(tmp_path)]
    assert results == [("a", "new"), ("b", "One two, three!")]


def test_sounds_that_stage_3_did_not_write_are_named_after_their_utterances(tmp_path):
    for name in ("b.wav", "a.wav"):
        write_wav(tmp_path / name, np.full(9, 0.1), stage_3.RATE)
    (tmp_path / "notes.txt").write_text("hello")
    assert read_system_files(tmp_path) == [
        SystemFile("a", tmp_path / "a.wav", "file"),
        SystemFile("b", tmp_path / "b.wav", "file"),
    ]
    with pytest.raises(InputError, match=r"metadata\.jsonl is missing: run stage 3.*\.flac"):
        read_system_files(tmp_path / "elsewhere")


def test_copies_of_unknown_origin_count_as_part_of_the_dataset(tmp_path):
    copy = SystemFile("a", tmp_path / "a.wav", "copy", source=tmp_path / "a.npy")
    (selected,) = inputs_systems.select_files([copy], "corpus", None, tmp_path)
    assert selected.dataset == "corpus"
    spoken = SystemFile("a", tmp_path / "a.wav", "text")
    with pytest.raises(InputError, match="synthesised nothing of the dataset 'corpus'"):
        inputs_systems.select_files([spoken], "corpus", None, tmp_path)


def test_a_table_gives_the_last_text_of_each_line(tmp_path):
    table = tmp_path / "texts.txt"
    table.write_text("\ufeffa|Mr. Smith|mister smith\n\nb| Two \n", encoding="utf-8")
    assert read_texts(table) == {"a": "mister smith", "b": "Two"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("a|one\na|two\n", r"texts\.txt:2: a occurs twice"),
        ("a|one\nb\n", r"texts\.txt:2: expected id\|text, found 'b'"),
        ("a|one|two|three\n", r"texts\.txt:1: expected id\|text"),
        ("|one\n", r"texts\.txt:1: expected id\|text"),
    ],
)
def test_a_table_of_other_lines_is_refused(tmp_path, lines, message):
    (tmp_path / "texts.txt").write_text(lines)
    with pytest.raises(InputError, match=message):
        read_texts(tmp_path / "texts.txt")


@pytest.mark.parametrize("id", ["../a", "", "..", "a/b"])
def test_an_id_that_cannot_name_a_file_is_refused(tmp_path, id):
    with pytest.raises(InputError, match=r"a\.wav: its id is .*, which cannot name a file"):
        SystemFile(id, tmp_path / "a.wav", "file")


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["a/result"], ["a"]),
        (["x/a", "x/a/result"], ["a", "result"]),
        (["a/one", "a/two"], ["one", "two"]),
        (["a/result", "b/result", "other"], ["a", "b", "other"]),
        (["x/a/result", "y/a/result"], ["x/a", "y/a"]),
        (["out/copy", "b/a"], ["out/copy", "b/a"]),
        (["ckpts/a/result/single"], ["a"]),
        (["ckpts/a/result/single", "out/single"], ["a", "out"]),
        (["a/result/single", "a/result"], ["single", "result"]),
    ],
)
def test_names_are_the_shortest_ends_that_tell_folders_apart(folders, names):
    paths = [Path(folder) for folder in folders]
    assert inputs_systems.system_names(paths, ("copy", "natural")) == names


def test_a_folder_that_is_named_twice_is_refused():
    with pytest.raises(InputError, match=r"--infer_output_dir names a/\.\./b twice"):
        inputs_systems.system_names([Path("b"), Path("a/../b")])


def test_transcripts_of_several_systems_are_in_folders_of_their_names(tmp_path):
    def folders(names, systems):
        data = EvaluationSet({n: Path(n) for n in names}, dict.fromkeys(systems, ""), [], tmp_path)
        by_system = transcripts_by_system(data, tmp_path)
        return {name: str(folder.relative_to(tmp_path)) for name, folder in by_system.items()}

    recorded = {"recorded": "recorded"}
    assert folders(["a", "natural"], ["a"]) == {"a": ".", "natural": "natural", **recorded}
    with pytest.raises(InputError, match=r"--transcripts: .*a is missing, for the system a"):
        folders(["a", "b"], ["a", "b"])
    for name in "ab":
        (tmp_path / name).mkdir()
    expected = {"a": "a", "b": "b", "copy": "copy", **recorded}
    assert folders(["a", "b", "copy"], ["a", "b"]) == expected


def test_transcripts_that_are_missing_are_listed(tmp_path):
    make_store(tmp_path)
    lines = [text_line(id) for id in ("rec-001", "rec-002")]
    write_results(tmp_path / "out", lines, [np.full(900, 0.1)] * 2)
    inputs = EvaluationInputs((tmp_path / "out",), preprocess_of(tmp_path))
    heard = tmp_path / "heard"
    (heard / "recorded").mkdir(parents=True)
    for name in ("rec-001", "recorded/rec-002"):
        (heard / f"{name}.txt").write_text("one two three")
    models = UserModels(transcripts=heard)
    options = EvaluationOptions(("wer",), copies=False, user_models=models)
    expected = r"2 of 2 utt.*\n.*heard.rec-002\.txt: No such.*\n.*recorded.rec-001\.txt: No such"
    with pytest.raises(InputError, match=expected):
        evaluate(inputs, options, 1)
