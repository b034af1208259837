from pathlib import Path

import pytest

from tests.commands import command

REPOSITORY = Path(__file__).parents[2]
CONFIG = REPOSITORY / "egs/tts/FlowSpeech/exp_config_demo.json"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "give --config or --infer_output_dir, and not both"),
        (("--config", CONFIG, "--infer_output_dir", "a"), 2, "and not both"),
        (("--config", CONFIG), 2, "--config needs --output"),
        (
            ("--infer_output_dir", "a", "--dataset", "b"),
            2,
            "--dataset, --infer_expt_dir and --set go with",
        ),
        (("--infer_output_dir", "nowhere"), 1, "metadata.jsonl lists no speech; run stage 3"),
        (
            ("--config", CONFIG, "--set=preprocess.processed_dir=/nowhere", "--output", "a"),
            1,
            "audio.json is missing: stage 1 was not run or not finished",
        ),
    ],
)
def test_what_is_wrong_is_one_line(words, code, message):
    done = command("export_alignments", "--format", "json", *words)
    assert done.returncode == code
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
