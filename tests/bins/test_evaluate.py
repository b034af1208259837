import json
import logging
from pathlib import Path

import numpy as np
import pytest
import soundfile

from processors.audio.files import write_wav
from tests.commands import call
from tests.processors.metrics.packages import skip_without
from utils.errors import InputError


def write_noise(folder: Path, **levels: float) -> str:
    """A second of sound each."""
    noise = np.random.default_rng(0).uniform(-1, 1, 22050)
    for name, level in levels.items():
        write_wav(folder / f"{name}.wav", level * noise, 22050)
    return str(folder)


def evaluate(*flags: str) -> None:
    """Stage 4 of any wavs, in this process."""
    config = str(Path(__file__).parents[2] / "config" / "vocoder" / "hifigan.json")
    settings = ['dataset=["Anna"]', 'dataset_path={"Anna":"a"}', "preprocess.backend=sequential"]
    sets = [f"--set={setting}" for setting in settings]
    call("evaluate", "--config", config, *sets, *flags)


def test_a_page_that_fails_hides_no_score(tmp_path, capsys):
    recordings = write_noise(tmp_path / "recordings", x=0.2)
    spoken = write_noise(tmp_path / "spoken", x=0.1)
    flags = ["--infer_output_dir", spoken, "--recordings", recordings, "--metrics", "mstft"]
    (tmp_path / "spoken" / "report_files").mkdir()
    (tmp_path / "spoken" / "report_files" / "mine.txt").write_text("of the user's")
    with pytest.raises(InputError, match=r"report_files holds mine\.txt"):
        evaluate(*flags)
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["mstft", "lower", "1.19"]
    assert (tmp_path / "spoken" / "scores.json").is_file()
    (tmp_path / "spoken" / "report_files" / "mine.txt").unlink()
    evaluate(*flags)
    assert "mstft" in (tmp_path / "spoken" / "report.html").read_text(encoding="utf-8")


def test_two_plain_folders_are_compared_with_recordings(tmp_path, capsys):
    recordings = write_noise(tmp_path / "recordings", x=0.2, y=0.4)
    half = write_noise(tmp_path / "half", x=0.1, y=0.2)
    tenth = write_noise(tmp_path / "tenth", x=0.02, y=0.04)
    what = ["--infer_output_dir", half, tenth, "--recordings", recordings, "--metrics", "mstft"]
    there = ["--report_dir", str(tmp_path / "there"), "--checks", "silence,clipping", "--page=no"]
    evaluate(*what, *there)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["metric", "better", "half", "tenth"]
    assert lines[1].split()[:3] == ["mstft", "lower", "1.193"]  # 1 - 0.5 + ln 2
    assert lines[3].startswith("half - tenth")
    assert lines[4].endswith("  too few utterances")
    assert lines[-2].split() == ["too", "long", "silence", "0", "0"]
    assert lines[-1].split() == ["clipped", "samples", "0", "0"]
    assert (tmp_path / "there" / "comparison.json").is_file()
    assert (tmp_path / "half" / "scores.json").is_file()


def test_pretrained_models_compare_two_folders_and_the_page_shows_it(tmp_path, capsys, caplog):
    skip_without("distillmos", "similarity")
    demo = Path(__file__).parents[2] / "egs" / "_demo" / "LJSpeech-mini" / "wavs"
    wav, rate = soundfile.read(demo / "LJ001-0002.flac")
    noise = np.random.default_rng(0).normal(scale=0.1 * wav.std(), size=len(wav))
    for name, sound in {"quiet": 0.5 * wav, "noisy": wav + noise}.items():
        write_wav(tmp_path / name / "LJ001-0002.wav", sound, rate)
    folders = [str(tmp_path / name) for name in ("quiet", "noisy")]
    with caplog.at_level(logging.INFO, "arion"):
        evaluate(
            *("--infer_output_dir", *folders, "--recordings", str(demo)),
            *("--metrics", "distillmos,similarity"),
        )
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert table[0][-2:] == ["quiet", "noisy"]
    assert {"distillmos", "similarity"} <= {row[0] for row in table if row}
    report = json.loads((tmp_path / "quiet/comparison/comparison.json").read_text())
    (comparison,) = report["comparisons"]
    means = {name: score["mean"] for name, score in comparison["differences"].items()}
    assert means["distillmos"] > 0.5
    assert 0.01 < means["similarity"] < 0.5
    scores = json.loads((tmp_path / "quiet" / "scores.json").read_text())["scores"]
    assert scores["distillmos_difference"]["mean"] == pytest.approx(0, abs=0.06)
    assert scores["similarity"]["mean"] == pytest.approx(1, abs=1e-3)
    page = (tmp_path / "quiet" / "comparison" / "report.html").read_text(encoding="utf-8")
    assert all(name in page for name in ("distillmos_difference", "similarity"))
    encoder = "GE2E of the package resemblyzer (or your --speaker_encoder)"
    assert f"similarity: by {encoder}" in caplog.text
