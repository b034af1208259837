import subprocess
import sys

import pytest

from bins.evaluate import arguments
from utils.cli import UsageError


@pytest.mark.parametrize(
    "flags",
    [
        ["--infer_expt_dir", "m"],
        ["--infer_expt_dir", "m", "--infer_mode", "single", "--recordings", "r"],
        ["--config", "c", "--name", "n", "--infer_dataset", "A", "--infer_testing_set", "test"],
        ["--config", "c", "--infer_output_dir", "o", "--metrics", "wer", "--num_workers", "3"],
    ],
)
def test_flags_that_go_together_are_accepted(flags):
    given = arguments(flags)
    assert given.infer_mode in ("single", "batch")
    assert given.num_workers >= 1
    assert given.metrics in ("all", "wer")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "give --infer_expt_dir, or --config"),
        (["--infer_output_dir", "o"], "give --infer_expt_dir, or --config"),
        (["--config", "c"], "give --infer_expt_dir, --name or --infer_output_dir"),
        (["--infer_expt_dir", "m", "--config", "c"], "--infer_expt_dir and --config exclude"),
        (["--infer_expt_dir", "m", "--name", "n"], "--infer_expt_dir and --name exclude each"),
        (["--infer_expt_dir", "m", "--infer_testing_set", "test"], "needs --infer_dataset"),
        (["--infer_expt_dir", "m", "--num_workers", "0"], "--num_workers 0: expected 1 or more"),
    ],
)
def test_flags_that_do_not_go_together_are_named(flags, message):
    with pytest.raises(UsageError, match=message):
        arguments(flags)


def test_help_does_not_wait_for_torch():
    code = (
        "import sys; from bins.evaluate import parser; parser().format_help();"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
