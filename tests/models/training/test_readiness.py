import pytest

from models.base.assets import Assets, Speaker
from models.training.readiness import empty_splits, last_speaker
from preprocessors.manifest import Splits, write_splits
from tests.models.training.small_tasks import PREPROCESS, write_voice_config


@pytest.mark.parametrize(
    ("splits", "empty"),
    [
        (Splits(["a"], ["b"], ["c"], []), []),
        (Splits(["a"], [], ["c"], ["c"]), ["valid of mini"]),
        (Splits(["a"], [], [], []), ["valid of mini", "test of mini"]),
    ],
)
def test_splits_that_stage_1_left_empty_are_listed(tmp_path, splits, empty):
    write_splits(tmp_path / "data" / "mini", splits)
    assert empty_splits(write_voice_config(tmp_path), []) == empty


@pytest.mark.parametrize(
    ("names", "last"), [((), None), (("anna",), None), (("kim", "anna"), "anna")]
)
def test_the_speaker_that_was_added_last_is_named_if_there_are_several(tmp_path, names, last):
    assets = Assets(PREPROCESS.mel, speakers=tuple(Speaker(name, "en") for name in names))
    folder = tmp_path / "ckpts" / "voice"
    folder.mkdir(parents=True)
    assets.save(folder)
    assert last_speaker(write_voice_config(tmp_path), [], "voice") == last
