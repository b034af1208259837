import pytest

from tests.commands import ROOT, command

CONFIG, SPEECH = ROOT / "egs/tts/FlowSpeech/exp_config_demo.json", ("--infer_output_dir",)
NOT_PREPARED = ("--config", CONFIG, "--set=preprocess.processed_dir=/nowhere", "--output", "a")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "give --config or --infer_output_dir, and not both"),
        (("--config", CONFIG, "--infer_output_dir", "a"), 2, "and not both"),
        (("--config", CONFIG), 2, "--config needs --output"),
        ((*SPEECH, "a", "--dataset", "b"), 2, "--dataset, --infer_expt_dir and --set go with"),
        ((*SPEECH, "nowhere"), 1, "metadata.jsonl lists no speech; run stage 3"),
        (NOT_PREPARED, 1, "audio.json is missing: stage 1 was not run or not finished"),
    ],
)
def test_what_is_wrong_is_one_line(words, code, message):
    done = command("export_alignments", "--format", "json", *words)
    assert done.returncode == code
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
