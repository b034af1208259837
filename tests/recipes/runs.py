"""Runs of whole recipes on a few short clips."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.commands import ROOT, Done, command

EGS = Path(__file__).parents[2] / "egs"
DEMO = EGS / "_demo" / "LJSpeech-mini"
TRAINING = ["LJ001-0002", "LJ001-0008", "LJ002-0020", "LJ002-0035", "LJ042-0094"]
HELD_OUT = ["LJ011-0202", "LJ001-0006"]
SPLIT = {"test_ids": HELD_OUT, "valid_ids": TRAINING[:1], "golden_size": 1}
TEST_SET = ("--infer_mode", "batch", "--infer_dataset", "mini", "--infer_testing_set", "test")


class Place(NamedTuple):
    """Where a recipe was run."""

    folder: Path
    config: Path
    script: Path

    @property
    def experiment(self) -> Path:
        return self.folder / "ckpts" / "tiny voice"

    def run_sh(self, *flags: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs the recipe as a user does."""
        environment = os.environ | {"PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
        words = ["sh", str(self.script), "--gpu", "", *flags]
        return subprocess.run(words, capture_output=True, text=True, env=environment, cwd=cwd)

    def run(self, *flags: str, cwd: Path = ROOT) -> Done:
        """Runs a stage in this process."""
        recipe = "/".join(self.script.parts[-3:-1])
        return command("recipe", recipe, "--gpu", "", *flags, folder=cwd)

    def speak(self, *flags: str, model: str | Path = "", cwd: Path = ROOT) -> Done:
        """Runs stage 3 on what a user brings, by the experiment or another model."""
        voice = ("--infer_expt_dir", str(model or self.experiment))
        return self.run("--stage", "3", "--infer_mode", "single", *voice, *flags, cwd=cwd)


def write_corpus(folder: Path) -> None:
    """A few of the demo's shortest clips, in a folder whose name holds a space."""
    ids = TRAINING + HELD_OUT
    lines = (DEMO / "metadata.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "wavs").mkdir(parents=True)
    (folder / "metadata.csv").write_text("".join(line for line in lines if line[:10] in ids))
    for id in ids:
        shutil.copy(DEMO / "wavs" / f"{id}.flac", folder / "wavs")
    shutil.copytree(DEMO / "TextGrid", folder / "TextGrid")


def write_config(
    path: Path, *bases: Path, dataset: str, preprocess: dict[str, object], **sections: object
) -> Path:
    """An experiment on the corpus in the folder of the file, with other values in some sections.

    Stages work in one process: others would have to import PyTorch.
    """
    folder = path.parent
    config = {
        "base_config": [os.path.relpath(base, folder) for base in bases],
        "dataset": [dataset],
        "dataset_path": {dataset: str(folder / "corpus")},
        "log_dir": str(folder / "ckpts"),
        "preprocess": {"processed_dir": str(folder / "data"), "backend": "sequential"} | preprocess,
        **sections,
    }
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def prepare(folder: Path, recipe: Path, keys: dict | None = None, **sections: object) -> Place:
    """The corpus and the recipe for LJSpeech, in a folder that is not the repository's.

    Some `keys` of the section `preprocess` may be others.
    """
    write_corpus(folder / "corpus")
    keys = {"corpus": {"mini": {"format": "ljspeech"}}, "split": SPLIT} | (keys or {})
    path, base = folder / "exp config.json", recipe / "exp_config.json"
    config = write_config(path, base, dataset="mini", preprocess=keys, **sections)
    return Place(folder, config, recipe / "run.sh")


def run_stages(place: Place, *flags_of_stages: tuple[str, ...]) -> None:
    """Stage 1 and the following ones in this process, each with its flags."""
    for number, flags in enumerate(flags_of_stages, 1):
        words = ("--stage", str(number), "--config", place.config.name, "--name", "tiny")
        done = place.run(*words, *flags, cwd=place.folder)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr


def lines_of(folder: Path) -> list[dict]:
    return [json.loads(row) for row in (folder / "metadata.jsonl").read_text().splitlines()]
