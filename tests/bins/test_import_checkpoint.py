from models.checkpoint.loading import load_model
from tests.commands import command
from tests.models.checkpoint.importers.hifigan_originals import (
    SIZES,
    random_generator,
    write_authors,
)


def test_the_command_makes_an_experiment_and_says_of_what(tmp_path):
    source = write_authors(tmp_path / "source", random_generator(SIZES))
    done = command("import_checkpoint", source, tmp_path / "hifigan")

    assert done.returncode == 0, done.stderr
    assert f"found: HiFi-GAN of its authors (g_* with config.json): {source}" in done.stderr
    assert load_model(tmp_path / "hifigan").config.model_type == "HiFiGAN"


def test_a_fault_is_one_message_without_a_traceback(tmp_path):
    source = write_authors(tmp_path / "source", random_generator(SIZES))
    (source / "config.json").unlink()
    done = command("import_checkpoint", source, tmp_path / "hifigan")

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {source / 'g_00000100'}: no config.json in its folder")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "hifigan").exists()
    assert command("import_checkpoint", source).returncode == 2
