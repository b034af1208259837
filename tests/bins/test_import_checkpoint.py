import subprocess
import sys
from pathlib import Path

from models.checkpoint.loading import load_model
from tests.models.checkpoint.importers.hifigan_originals import (
    SIZES,
    random_generator,
    write_authors,
)

REPOSITORY = Path(__file__).parents[2]


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "bins.import_checkpoint", *map(str, arguments)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_makes_an_experiment_and_says_of_what(tmp_path):
    source = write_authors(tmp_path / "source", random_generator(SIZES))
    done = run(source, tmp_path / "hifigan")

    assert done.returncode == 0, done.stderr
    assert f"found: HiFi-GAN of its authors (g_* with config.json): {source}" in done.stderr
    assert load_model(tmp_path / "hifigan").config.model_type == "HiFiGAN"


def test_a_fault_is_one_message_without_a_traceback(tmp_path):
    source = write_authors(tmp_path / "source", random_generator(SIZES))
    (source / "config.json").unlink()
    done = run(source, tmp_path / "hifigan")

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {source / 'g_00000100'}: no config.json in its folder")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "hifigan").exists()
    assert run(source).returncode == 2
