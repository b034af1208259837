import json
from dataclasses import dataclass, field
from typing import Literal

import pytest

from utils.config import ConfigError, build, lines_with_origins, to_plain
from utils.config_tree import read_tree


@dataclass(frozen=True)
class Adam:
    lr: float = 0.1
    betas: tuple[float, float] = (0.9, 0.98)


@dataclass(frozen=True)
class Train:
    batch_size: int = 16
    pin: bool = True
    optimizer: Literal["adam", "adamw"] = "adam"
    limit: int | None = None
    adam: Adam = field(default_factory=Adam)

    def __post_init__(self):
        if self.batch_size < 1:
            raise ValueError(f"batch_size {self.batch_size} must be 1 or more")


@dataclass(frozen=True)
class Experiment:
    name: str
    model: object
    dataset: tuple[str, ...] = ()
    paths: dict[str, str] = field(default_factory=dict)
    optimizers: dict[str, Adam] = field(default_factory=dict)
    train: Train = field(default_factory=Train)


@dataclass(frozen=True)
class Model:
    layers: int = 4


def load(folder, text, *overrides, cls=Experiment):
    path = folder / "exp.json"
    sections = {"model": Model} if cls is Experiment else {}
    path.write_text(text, encoding="utf-8")
    return build(cls, read_tree(path, overrides), sections)


def fault(folder, text, *overrides):
    with pytest.raises(ConfigError) as caught:
        load(folder, text, *overrides)
    return str(caught.value)


@pytest.fixture(autouse=True)
def _work_in_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_json5_with_comments_becomes_typed_records(tmp_path):
    config = load(
        tmp_path,
        """{
          name: "a", // a comment
          dataset: ["x", "y"],
          optimizers: {d: {lr: 1}},
          train: {adam: {betas: [0, 0.5]},},
        }""",
    )
    assert config.dataset == ("x", "y")
    assert config.optimizers == {"d": Adam(lr=1.0)}
    assert type(config.optimizers["d"].lr) is float
    assert config.train == Train(adam=Adam(betas=(0.0, 0.5)))
    assert config.model == Model()
    assert load(tmp_path, '{"name": "a", "train": {"limit": null}}').train.limit is None
    assert load(tmp_path, '{"name": "a", "train": {"limit": 3}}').train.limit == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "missing key name"),
        (r'"name": "a\u0000b"', r'name is "a\u0000b", expected text without the character U+0000'),
        ('"name": "a", "train": {"batch_sise": 4}',
         "unknown key train.batch_sise; did you mean train.batch_size?"),
        ('"name": "a", "batch_size": 4',
         "unknown key batch_size; did you mean train.batch_size?"),
        ('"name": "a", "optimizer": "adam"',  # and there is `optimizers`
         "unknown key optimizer; did you mean train.optimizer?"),
        ('"name": "a", "model": {"zzz": 4}', "unknown key model.zzz; known keys: layers"),
        ('"name": "a", "train": {"batch_size": 0}',
         "section train: batch_size 0 must be 1 or more"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_file_key_and_remedy(tmp_path, text, said):
    assert fault(tmp_path, f"{{{text}}}") == f"exp.json: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"batch_size": true', "train.batch_size is true, expected a whole number"),
        ('"batch_size": 4.0', "train.batch_size is 4.0, expected a whole number"),
        ('"batch_size": null', "train.batch_size is null, expected a whole number"),
        ('"pin": 1', "train.pin is 1, expected true or false"),
        ('"pin": "false"', 'train.pin is "false", expected true or false'),
        ('"adam": 3', "train.adam is 3, expected a section { ... }"),
        ('"adam": {"lr": "0.1"}', 'train.adam.lr is "0.1", expected a number'),
        ('"adam": {"lr": NaN}', "train.adam.lr is NaN, expected a finite number"),
        ('"adam": {"lr": -Infinity}', "train.adam.lr is -Infinity, expected a finite number"),
        ('"adam": {"lr": 1e999}', "train.adam.lr is Infinity, expected a finite number"),
        ('"adam": {"betas": [0.9]}', "train.adam.betas is [0.9], expected a list of 2 values"),
        ('"adam": {"betas": [0.9, "x"]}', 'train.adam.betas.1 is "x", expected a number'),
        ('"adam": {"betas": 0.9}', "train.adam.betas is 0.9, expected a list [ ... ]"),
        (r'"optimizer": "a\u0000"', 'train.optimizer is "a\\u0000", expected one of adam, adamw'),
        ('"limit": "x"', 'train.limit is "x", expected a whole number'),
        ('"optimizer": "Adam_W"', '"Adam_W", expected one of adam, adamw; did you mean adamw?'),
    ],
)
def test_a_value_of_the_wrong_type_is_shown_with_what_was_expected(tmp_path, text, said):
    message = fault(tmp_path, f'{{"name": "a", "train": {{{text}}}}}')
    assert message.startswith("exp.json: ")
    assert said in message


def test_a_rule_of_keys_in_sections_below_names_who_set_them(tmp_path):
    @dataclass(frozen=True)
    class Ruled:
        name: str
        train: Train = field(default_factory=Train)

        def __post_init__(self) -> None:
            if self.train.batch_size > 16 and self.train.adam.lr > 1:
                raise ValueError("train.batch_size and train.adam.lr are both large")

    text = '{name: "a", train: {batch_size: 17, adam: {lr: 0.1}}}'
    with pytest.raises(ConfigError, match=r"^--set, .*exp\.json: train\.batch_size and"):
        load(tmp_path, text, "train.adam.lr=2", cls=Ruled)


def test_plain_values_build_the_same_config_again(tmp_path):
    text = '{"name": "a", "dataset": ["x"], "optimizers": {"d": {}}, "model": {"layers": 9}}'
    config = load(tmp_path, text)
    plain = to_plain(config)
    assert plain["train"]["adam"] == {"lr": 0.1, "betas": [0.9, 0.98]}
    assert load(tmp_path, json.dumps(plain)) == config


@dataclass(frozen=True)
class Log:
    kind: Literal["a", "b", "none"] | tuple[Literal["a", "b"], ...] = "a"


def test_a_key_may_be_one_value_or_a_list_of_them_and_nothing_else(tmp_path):
    for written, value in (('"none"', "none"), ('["a", "b"]', ("a", "b"))):
        config = load(tmp_path, f'{{"kind": {written}}}', cls=Log)
        assert config.kind == value
        assert to_plain(config) == {"kind": json.loads(written)}
    for written in ('["a", "none"]', '"c"', "null", "3"):
        with pytest.raises(ConfigError, match=r"kind(\.1)? is .*, expected one of a, b"):
            load(tmp_path, f'{{"kind": {written}}}', cls=Log)


@dataclass(frozen=True)
class Version:
    version: Literal["1.0", "1.1"] = "1.1"
    n_frames: Literal[1, 2] = 1


def test_a_name_that_looks_like_a_number_needs_no_quotes(tmp_path):
    config = load(tmp_path, "{}", "version=1.0", "n_frames=2", cls=Version)
    assert config == Version("1.0", 2)
    with pytest.raises(ConfigError, match=r"version is 1\.2, expected one of 1\.0, 1\.1"):
        load(tmp_path, "{}", "version=1.2", cls=Version)


def test_every_key_is_a_line_with_its_value_and_its_origin(tmp_path):
    (tmp_path / "base.json").write_text('{"train": {"adam": {"lr": 1, "betas": [0.5, 0.6]}}}')
    (tmp_path / "exp.json").write_text(
        '{"base_config": "base.json", "name": "Zoë", "optimizers": {"d": {"lr": 2}}, "paths": {}}'
    )
    tree = read_tree(tmp_path / "exp.json", ["train.adam.lr=0.25", "train.pin=false"])
    config = build(Experiment, tree, {"model": Model})
    assert lines_with_origins(config, tree) == [
        'name = "Zoë"  # exp.json',
        "model.layers = 4  # default",
        "dataset = []  # default",
        "paths = {}  # exp.json",
        "optimizers.d.lr = 2.0  # exp.json",
        "optimizers.d.betas = [0.9, 0.98]  # default",
        "train.batch_size = 16  # default",
        "train.pin = false  # --set",
        'train.optimizer = "adam"  # default',
        "train.limit = null  # default",
        "train.adam.lr = 0.25  # --set",
        "train.adam.betas = [0.5, 0.6]  # base.json",
    ]


def test_the_lines_without_origins_are_overrides_that_give_the_configuration_back(tmp_path):
    path = tmp_path / "exp.json"
    path.write_text('{"name": "a # b", "paths": {"x": "1"}, "train": {"limit": 3}}')
    tree = read_tree(path)
    config = build(Experiment, tree, {"model": Model})
    lines = lines_with_origins(config, tree)
    overrides = [line.rpartition("  # ")[0].replace(" = ", "=", 1) for line in lines]
    assert load(tmp_path, "{}", *overrides) == config
