from pathlib import Path, PurePosixPath

import pytest

from models.checkpoint.importers._files import age_of, first_file, named_part, step_in, upwards


def test_the_newest_has_most_updates_then_the_latest_epoch():
    names = ["best", "epoch-1_step-20_loss-1", "final_epoch-3_step-20_loss-1", "epoch-9_step-3"]
    assert sorted(names, key=age_of) == [names[0], names[3], names[1], names[2]]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("epoch-0125_step-0097902_loss-1.07", 97902),
        ("g_02500000", 2500000),
        ("900000.pth.tar", 900000),
        ("best.pth.tar", None),
        ("checkpoint_7", None),
    ],
)
def test_updates_are_read_from_the_names_of_each_project(name, step):
    assert step_in(name) == step


def test_weights_of_accelerate_are_named_by_their_folder():
    assert named_part(PurePosixPath("a/step-1/pytorch_model.bin")).name == "step-1"
    assert named_part(PurePosixPath("a/step-1.pt")).name == "step-1.pt"


def test_paths_that_no_file_can_have_are_passed_over(tmp_path):
    (tmp_path / "here").touch()
    paths = [Path("/" + "x" * 300), tmp_path / "missing", tmp_path, tmp_path / "here"]
    assert first_file(paths) == tmp_path / "here"
    assert first_file(paths[:3]) is None


def test_folders_above_a_link_are_those_of_its_target(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b")
    assert upwards(tmp_path / "link", 2) == [tmp_path / "a" / "b", tmp_path / "a", tmp_path]
