"""`python -m bins.fetch`; downloading itself is tested with preprocessors/corpora.py."""

import json

from tests.commands import ROOT, command


def fetch(tmp_path, dataset, path, **corpus):
    config = {
        "base_config": str(ROOT / "config/tts/fastspeech2.json"),
        "dataset": [dataset],
        "dataset_path": {dataset: str(path)},
        "preprocess": {"corpus": {dataset: corpus}},
    }
    (tmp_path / "exp_config.json").write_text(json.dumps(config))
    return command("fetch", "--config", tmp_path / "exp_config.json")


def test_recordings_of_ones_own_have_nothing_to_fetch(tmp_path):
    folder = tmp_path / "mine"
    done = fetch(tmp_path, "Mine", folder, format="folder")
    assert done.returncode == 0
    assert f"Mine: nothing to fetch; put its recordings into {folder}" in done.stderr
    folder.mkdir()
    (folder / "metadata.csv").touch()
    done = fetch(tmp_path, "Mine", folder, format="folder")
    assert f"Mine: nothing to fetch; its recordings are read from {folder}" in done.stderr


def test_a_corpus_that_is_there_is_not_fetched_and_its_licence_is_said(tmp_path):
    done = fetch(tmp_path, "LJSpeech", "egs/_demo/LJSpeech-mini")
    assert done.returncode == 0
    assert "LJ Speech 1.1, Keith Ito 2017: public domain" in done.stderr
    assert "is there already, nothing to fetch" in done.stderr


def test_a_placeholder_for_the_folder_is_one_clear_line(tmp_path):
    done = fetch(tmp_path, "LJSpeech", "[dataset path]")
    assert done.returncode == 1
    assert done.stderr == (
        "error: dataset_path.LJSpeech is '[dataset path]': set it to the folder of the corpus\n"
    )
