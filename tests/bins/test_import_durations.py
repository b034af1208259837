import pytest

from tests.commands import ROOT, command
from tests.processors.small_corpus import copy_corpus

VOICE = "egs/_voices/choir"
CONFIG = ROOT / "egs/tts/FlowSpeech/exp_config_demo.json"


def flags(folder):
    values = {
        "dataset_path.LJSpeech-mini": folder / "corpus",
        "preprocess.processed_dir": folder / "processed",
        "preprocess.aligner": "imported",
        "preprocess.backend": "sequential",
        "preprocess.split.test_ids": '["LJ002-0035"]',
        "preprocess.split.valid_ids": '["LJ002-0020"]',
    }
    return ["--config", CONFIG, *(f"--set={key}={value}" for key, value in values.items())]


def test_durations_go_in_through_stage_1_and_out_again(tmp_path):
    corpus = copy_corpus(tmp_path / "corpus")
    options = flags(tmp_path)
    done = command("import_durations", corpus / "TextGrid", *options)
    assert done.returncode == 0, done.stderr
    assert "9 imported, 0 rejected, 0 extra" in done.stderr
    done = command("preprocess", *options)
    assert done.returncode == 0, done.stderr
    export = ("--format", "textgrid", "--output", tmp_path / "out")
    done = command("export_alignments", *options, *export)
    assert done.returncode == 0, done.stderr
    assert len([*(tmp_path / "out").glob("*.TextGrid")]) == 9
    (tmp_path / "out/LJ002-0020.TextGrid").write_text("nothing")
    options.append("--set=preprocess.max_bad_ratio=0")
    done = command("import_durations", tmp_path / "out", *options)
    assert done.returncode == 1
    assert "error: 1 of 9 utterances have no durations" in done.stderr
    assert "out/LJ002-0020.TextGrid: not a complete TextGrid" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("any", "--pitch_stats", "a.json"), 2, "--pitch_stats goes with --pitch"),
        (("any", "--format", "srt"), 2, "'srt': expected json, npy, pt, textgrid or attention"),
        (("nowhere",), 1, "'nowhere': no such file or folder"),
        ((VOICE,), 1, "choir is a FlowSpeech and has no attention"),
        ((VOICE, "--phone_tier", "5"), 2, "--phone_tier describes files, and"),
        (("egs", "--path", "argmax"), 2, "--path goes with a voice, and egs"),
        (("egs", "--dataset", "VCTK"), 1, "--dataset VCTK: the configuration"),
    ],
)
def test_flags_that_make_no_sense_and_what_is_not_there_are_one_line(words, code, message):
    done = command("import_durations", *words, "--config", CONFIG)
    assert (done.returncode, done.stderr.splitlines()[-1].startswith("error: ")) == (code, True)
    assert message in done.stderr
    assert code == 1 or done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
