from models.checkpoint.loading import load_model
from tests.commands import command
from tests.models.checkpoint.importers import hifigan_originals


def test_the_command_makes_an_experiment_and_says_of_what_or_why_not(tmp_path):
    generator = hifigan_originals.random_generator(hifigan_originals.SIZES)
    source = hifigan_originals.write_authors(tmp_path / "source", generator)
    done = command("import_checkpoint", source, tmp_path / "hifigan")

    assert done.returncode == 0, done.stderr
    assert f"found: HiFi-GAN of its authors (g_* with config.json): {source}" in done.stderr
    assert load_model(tmp_path / "hifigan").config.model_type == "HiFiGAN"

    (source / "config.json").unlink()
    done = command("import_checkpoint", source, tmp_path / "other")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {source / 'g_00000100'}: no config.json in its folder")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "other").exists()
    assert command("import_checkpoint", source).returncode == 2
