from pathlib import Path

import pytest

from models.evaluation.place import Place, names_of, place_of_config
from models.evaluation.references import References
from tests.models.stage_3 import preprocess_of
from utils.errors import InputError
from utils.files import write_json

VOCODER = Path(__file__).parents[3] / "config" / "vocoder" / "hifigan.json"


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["a/result"], ["a"]),
        (["a", "a/result"], ["a", "result"]),
        (["a/one", "a/two"], ["one", "two"]),
        (["a/result", "b/result", "other"], ["a", "b", "other"]),
        (["x/a/result", "y/a/result"], ["x/a", "y/a"]),
        (["out/copy", "a"], ["out/copy", "a"]),
        (["ckpts/a/result/single"], ["a/single"]),
        (["ckpts/a/result/single", "out/single"], ["a/single", "out/single"]),
    ],
)
def test_names_are_the_shortest_ends_that_tell_folders_apart(folders, names):
    assert names_of([Path(folder) for folder in folders], ("copy", "natural")) == names


def test_a_folder_that_is_named_twice_is_refused():
    with pytest.raises(InputError, match=r"--infer_output_dir names a/\.\./b twice"):
        names_of([Path("b"), Path("a/../b")])


def config_of(folder: Path, **languages: str) -> Path:
    """A configuration whose data sets have these languages."""
    path = folder / "exp_config.json"
    corpus = {name: {"language": language} for name, language in languages.items()}
    write_json(
        path,
        {
            "base_config": str(VOCODER),
            "dataset": list(languages),
            "dataset_path": dict.fromkeys(languages, "corpus"),
            "preprocess": {"corpus": corpus},
        },
    )
    return path


def test_speakers_that_nobody_knows_speak_the_language_of_all_data_sets(tmp_path):
    def languages(**by_dataset: str) -> dict[str, str]:
        place = place_of_config(config_of(tmp_path, **by_dataset), [tmp_path], [], None)
        assert place.references.datasets == tuple(by_dataset)
        return dict(place.references.languages)

    assert languages(Anna="de", Bert="de") == {"": "de"}
    assert languages(Anna="de", Bert="nl") == {}


def test_texts_and_the_folder_of_single_texts_are_put_in_its_place(tmp_path):
    (tmp_path / "texts").write_text("a|hello")
    place = Place((tmp_path / "x", tmp_path / "y"), References(preprocess_of(tmp_path)))
    assert place.with_texts(tmp_path / "texts").references.texts == {"a": "hello"}
    assert place.of_single().folders == (tmp_path / "x" / "single", tmp_path / "y" / "single")
