from pathlib import Path

from config.schema import Config
from models.base.registry import load_config
from models.evaluation.inputs.options import inputs_of_config
from utils.files import write_json

VOCODER = Path(__file__).parents[4] / "config" / "vocoder" / "hifigan.json"


def config_of(folder: Path, *overrides: str, **languages: str) -> Config:
    """A configuration whose datasets have these languages."""
    path = folder / "exp_config.json"
    corpus = {name: {"language": language} for name, language in languages.items()}
    plain = {"base_config": str(VOCODER), "preprocess": {"corpus": corpus}}
    paths = dict.fromkeys(languages, "corpus")
    write_json(path, {**plain, "dataset": list(languages), "dataset_path": paths})
    return load_config(path, overrides)


def test_unknown_speakers_get_the_language_of_all_data_sets(tmp_path):
    def languages(**by_dataset: str) -> dict[str, str]:
        inputs = inputs_of_config(config_of(tmp_path, **by_dataset), [tmp_path], None)
        assert inputs.datasets == tuple(by_dataset)
        return dict(inputs.languages)

    assert languages(Anna="de", Bert="de") == {"": "de"}
    assert languages(Anna="de", Bert="nl") == {}


def test_a_configuration_alone_says_what_the_mel_is_and_where_recordings_are(tmp_path):
    overrides = [f"preprocess.processed_dir={tmp_path}", "preprocess.f_max=7000"]
    config = config_of(tmp_path, *overrides, Anna="de")
    inputs = inputs_of_config(config, [tmp_path / "out"], tmp_path / "recordings")
    assert inputs.folders == (tmp_path / "out",)
    assert inputs.recordings == tmp_path / "recordings"
    assert inputs.preprocess.mel.f_max == 7000
    assert inputs.preprocess.processed_dir == str(tmp_path)
