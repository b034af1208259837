import pytest

from tests.utils.test_config import Adam, Train, fault, load
from utils.config_tree import ConfigError, read_tree, read_values


@pytest.fixture(autouse=True)
def _work_in_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{\n  name: \n}", "exp.json: line 3 Unexpected"),
        ("", "exp.json: "),
        ("[1]", "exp.json: expected { ... } with keys, found list"),
        ("\n", "exp.json: line 2 Unexpected end of input"),
        ('{"name": "a", "name": "b"}', 'exp.json: Duplicate key "name"'),
        ('{name: "a", name: "b"}', 'exp.json: Duplicate key "name"'),
        ("[" * 6000, "exp.json: more than 50 brackets inside each other; correct the file"),
        ("{a:" * 6000, "exp.json: more than 50 brackets inside each other; correct the file"),
        ('{"a":' * 99 + "1" + "}" * 99, "exp.json: more than 50 brackets inside each other"),
    ],
)
def test_a_file_that_is_not_json5_is_named_with_the_line(tmp_path, text, said):
    assert fault(tmp_path, text).startswith(said)


def test_a_missing_file_and_bytes_that_are_not_text_are_named(tmp_path):
    assert load(tmp_path, "\ufeff" + '{"name": "a"}').name == "a"  # a byte-order mark is text
    with pytest.raises(ConfigError, match=r"none\.json: No such file"):
        read_tree(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b'{"name": "\xe9"}')
    with pytest.raises(ConfigError, match=r"latin\.json: not UTF-8 at byte 10"):
        read_tree(tmp_path / "latin.json")


def test_base_config_is_relative_to_the_file_that_names_it_and_the_child_wins(tmp_path):
    (tmp_path / "bases" / "deep").mkdir(parents=True)
    root = (
        '{"name": "root", "dataset": ["x", "y"], "paths": {"x": "1"}, "train": {"batch_size": 4}}'
    )
    base = '{"base_config": "deep/root.json", "train": {"pin": false}}'
    (tmp_path / "bases" / "deep" / "root.json").write_text(root)
    (tmp_path / "bases" / "base.json").write_text(base)
    text = '{"base_config": "bases/base.json", "dataset": ["z"], "paths": {"z": "2"}}'
    config = load(tmp_path, text)
    assert (config.name, config.dataset) == ("root", ("z",))
    assert config.paths == {"x": "1", "z": "2"}
    assert config.train == Train(batch_size=4, pin=False)


def test_of_several_base_configs_the_later_one_wins_and_is_the_origin(tmp_path):
    for name, text in (
        ("root", '{"name": "root", "train": {"batch_size": 4}}'),
        ("model", '{"base_config": "root.json", "train": {"batch_size": 8, "pin": false}}'),
        ("data", '{"dataset": ["x"], "train": {"batch_size": 2}}'),
        ("exp", '{"base_config": ["model.json", "data.json"], "dataset": ["y"]}'),
    ):
        (tmp_path / f"{name}.json").write_text(text)
    tree = read_tree(tmp_path / "exp.json")
    train = {"batch_size": 2, "pin": False}
    assert tree.values == {"name": "root", "train": train, "dataset": ["y"]}
    origins = [tree.origin(("train", key)) for key in ("batch_size", "pin")]
    assert origins == ["data.json", "model.json"]
    assert tree.origin(("dataset",)) == "exp.json"


def test_a_base_of_two_base_configs_is_applied_once(tmp_path):
    (tmp_path / "base.json").write_text('{"name": "base", "dataset": ["base"]}')
    (tmp_path / "a.json").write_text('{"base_config": "base.json", "name": "a"}')
    (tmp_path / "b.json").write_text('{"base_config": "base.json", "dataset": ["b"]}')
    experiment = load(tmp_path, '{"base_config": ["a.json", "b.json"]}')
    assert (experiment.name, experiment.dataset) == ("a", ("b",))


@pytest.mark.parametrize("base", ['"exp.json"', '["a.json", "exp.json"]'])
def test_a_circle_of_base_configs_is_shown(tmp_path, base):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_text(f'{{"base_config": {base}}}')
    message = fault(tmp_path, '{"base_config": ["a.json", "b.json"]}')
    assert message == ("exp.json: base_config is circular: exp.json -> b.json -> exp.json")


def test_an_error_names_the_file_of_the_chain_that_holds_it(tmp_path):
    (tmp_path / "base.json").write_text('{"name": "a", "train": {"pin": 3, "batch_size": 1}}')
    message = fault(tmp_path, '{"base_config": "base.json", "train": {"batch_size": 2}}')
    assert message.startswith("base.json: train.pin is 3")
    text = '{"base_config": "base.json", "train": {"pin": true, "batch_size": ""}}'
    message = fault(tmp_path, text)
    assert message.startswith("exp.json: train.batch_size")


def test_a_base_config_that_is_no_file_is_named(tmp_path):
    for base in ('"none.json"', '"."', "3", '""', r'"a\u0000"', "[3]", '["none.json"]', "{}"):
        assert fault(tmp_path, f'{{"base_config": {base}}}').startswith("exp.json: base_config ")


def test_overrides_are_read_as_json5_or_as_text(tmp_path):
    overrides = ("train.batch_size=8", "train.adam.betas=[0.5, 0.6]", "train.optimizer=adamw")
    overrides += ('paths={"y": "2"}', "paths.z=/my corpus/a=b", "name=")
    config = load(tmp_path, '{"name": "a", "paths": {"x": "1"}}', *overrides)
    assert config.train == Train(8, optimizer="adamw", adam=Adam(betas=(0.5, 0.6)))
    assert config.paths == {"x": "1", "y": "2", "z": "/my corpus/a=b"}
    assert config.name == ""


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("train.batch_sise=8", "--set: unknown key train.batch_sise; did you mean train.batch_siz"),
        ("train.batch_size=eight", '--set: train.batch_size is "eight", expected a whole number'),
        ("train.batch_size=0", "--set: section train: batch_size 0 must be 1 or more"),
        ("train.adam.lr=NaN", "--set: train.adam.lr is NaN, expected a finite number"),
        ("train=3", "--set: train is 3, expected a section"),
        ("name.x=3", "--set: name is a section, expected text"),
        ("name=2024", "expected text; for text write --set 'name=\"2024\"'"),
        ('dataset=["a", 7]', 'dataset.1 is 7, expected text; for text write "7" in the list'),
        ("train.batch_size", "--set 'train.batch_size': expected key.path=value"),
        ("=3", "--set '=3': expected key.path=value"),
        ("a..b=3", "--set 'a..b=3': expected key.path=value"),
        ("train.batch_size=" + "[" * 6000, '--set: train.batch_size is "[[[['),
        ("train.batch_size=" + "[" * 99 + "]" * 99, '--set: train.batch_size is "[[[['),
    ],
)
def test_an_override_obeys_the_same_checks(tmp_path, override, said):
    assert said in fault(tmp_path, '{"name": "a"}', override)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": [1, 2,], "b": {"c": "x",},}', {"a": [1, 2], "b": {"c": "x"}}),
        ('{"a": "1, ]", "b": ",}", "c": "\\",]",}', {"a": "1, ]", "b": ",}", "c": '",]'}),
        ("{'a': ',]', b: 1, // \" ,}\n}", {"a": ",]", "b": 1}),
    ],
)
def test_commas_after_the_last_value_are_no_matter_and_those_in_texts_stay(tmp_path, text, values):
    (tmp_path / "args.json").write_text(text)
    assert read_values(tmp_path / "args.json") == values


def test_commas_that_follow_no_value_are_faults(tmp_path):
    for text in ('{"a": [,]}', '{"a": [1,,]}', '{"a":,}', '{"a": 1,,}', "{,}"):
        (tmp_path / "args.json").write_text(text)
        with pytest.raises(ConfigError, match=r"args\.json: line 1"):
            read_values(tmp_path / "args.json")


def test_a_base_that_a_file_names_is_not_read_with_its_values(tmp_path):
    (tmp_path / "args.json").write_text('{"base_config": "missing.json", "a": 1}')

    assert read_values(tmp_path / "args.json") == {"base_config": "missing.json", "a": 1}
