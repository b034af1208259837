from pathlib import Path

import numpy as np
import pytest

from bins.evaluate import main
from processors.audio.files import write_wav
from utils.errors import InputError


def write_noise(folder: Path, **levels: float) -> str:
    """A second of sound each."""
    noise = np.random.default_rng(0).uniform(-1, 1, 22050)
    for name, level in levels.items():
        write_wav(folder / f"{name}.wav", level * noise, 22050)
    return str(folder)


def evaluate(monkeypatch, *flags: str) -> None:
    """Stage 4 of any wavs, in this process."""
    config = str(Path(__file__).parents[2] / "config" / "vocoder" / "hifigan.json")
    settings = ['dataset=["Anna"]', 'dataset_path={"Anna":"a"}', "preprocess.backend=sequential"]
    sets = [f"--set={setting}" for setting in settings]
    monkeypatch.setattr("sys.argv", ["bins.evaluate", "--config", config, *sets, *flags])
    monkeypatch.setattr("bins.evaluate.setup_logging", lambda: None)
    main()


def test_a_page_that_fails_hides_no_score(tmp_path, monkeypatch, capsys):
    recordings = write_noise(tmp_path / "recordings", x=0.2)
    spoken = write_noise(tmp_path / "spoken", x=0.1)
    flags = ["--infer_output_dir", spoken, "--recordings", recordings, "--metrics", "mstft"]
    (tmp_path / "spoken" / "report_files").mkdir()
    (tmp_path / "spoken" / "report_files" / "mine.txt").write_text("of the user's")
    with pytest.raises(InputError, match=r"report_files holds mine\.txt"):
        evaluate(monkeypatch, *flags)
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["mstft", "lower", "1.19"]
    assert (tmp_path / "spoken" / "scores.json").is_file()
    (tmp_path / "spoken" / "report_files" / "mine.txt").unlink()
    evaluate(monkeypatch, *flags)
    assert "mstft" in (tmp_path / "spoken" / "report.html").read_text(encoding="utf-8")


def test_two_plain_folders_are_compared_with_recordings(tmp_path, monkeypatch, capsys):
    recordings = write_noise(tmp_path / "recordings", x=0.2, y=0.4)
    half = write_noise(tmp_path / "half", x=0.1, y=0.2)
    tenth = write_noise(tmp_path / "tenth", x=0.02, y=0.04)
    what = ["--infer_output_dir", half, tenth, "--recordings", recordings, "--metrics", "mstft"]
    there = [
        "--report_dir",
        str(tmp_path / "there"),
        "--checks",
        "silence,clipping",
        "--page",
        "no",
    ]
    evaluate(monkeypatch, *what, *there)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["metric", "better", "half", "tenth"]
    assert lines[1].split()[:3] == ["mstft", "lower", "1.193"]  # 1 - 0.5 + ln 2
    assert lines[3].startswith("half - tenth")
    assert lines[4].endswith("  too few utterances")
    assert [line.split() for line in lines[-2:]] == [
        ["too", "long", "silence", "0", "0"], ["clipped", "samples", "0", "0"],
    ]  # fmt: skip
    assert (tmp_path / "there" / "comparison.json").is_file()
    assert (tmp_path / "half" / "scores.json").is_file()
