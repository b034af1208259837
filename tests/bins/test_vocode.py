import subprocess
import sys

import pytest

from bins.vocode import arguments
from utils.cli import UsageError

SINGLE = ["--infer_expt_dir", "m", "--infer_mode", "single"]
BATCH = [*SINGLE[:-1], "batch", "--infer_dataset", "Anna", "--infer_testing_set", "test"]


@pytest.mark.parametrize(
    "flags",
    [
        [*SINGLE, "--infer_audio_dir", "clips"],
        [*SINGLE, "--infer_feature_dir", "mels"],
        ["--config", "c", "--name", "n", *SINGLE[2:], "--infer_audio_dir", "clip.wav"],
        BATCH,
    ],
)
def test_flags_that_go_together_are_accepted(flags):
    assert arguments(flags).infer_mode in flags


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (SINGLE, "single needs one of --infer_audio_dir and --infer_feature_dir"),
        (
            [*SINGLE, "--infer_audio_dir", "a", "--infer_feature_dir", "b"],
            "single needs one of --infer_audio_dir and --infer_feature_dir",
        ),
        ([*BATCH, "--infer_feature_dir", "b"], "--infer_feature_dir and --infer_mode batch excl"),
        ([*BATCH, "--name", "n"], "--infer_expt_dir and --name exclude each other"),
    ],
)
def test_flags_that_do_not_go_together_are_named(flags, message):
    with pytest.raises(UsageError, match=message):
        arguments(flags)


def test_help_does_not_wait_for_torch():
    code = (
        "import sys; from bins.vocode import parser; parser().format_help();"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
