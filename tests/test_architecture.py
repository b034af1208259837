"""The shape of the tree: who may import whom, and what the path from text to speech costs."""

import ast
import re
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from models.base.registry import model_names
from tests.commands import python

REPOSITORY = Path(__file__).parents[1]
MAY_IMPORT = {
    "utils": {"utils"},
    "modules": {"modules"},
    "config": {"utils", "config", "modules"},
    "preprocessors": {"utils", "config", "preprocessors"},
    "processors": {"utils", "config", "preprocessors", "processors", "modules"},
    "models": {"utils", "config", "preprocessors", "processors", "models", "modules"},
    "bins": {"utils", "config", "preprocessors", "processors", "models", "modules", "bins"},
}
# The rooms of a package, from the ground up: each may import those named, and itself.
ROOMS = {
    "models": {
        "base": set(),
        "tts": {"base"},
        "vocoder": {"base"},
        "checkpoint": {"base", "tts", "vocoder"},  # importers fill the configurations of models
        "teacher_forcing": {"base", "checkpoint"},
        "training": {"base", "checkpoint"},
        "voices": set(),
        "synthesizer": {"base", "checkpoint", "voices"},
        "evaluation": {"base", "checkpoint", "synthesizer"},
        "programs": {"base", "checkpoint", "synthesizer", "training", "voices"},
    },
    "models.programs": {
        "page": set(),
        "benchmark": set(),
        "books": set(),
        "compare": set(),
        "corpus": {"books"},
        "distil": set(),
        "export": {"page"},
        "server": {"page"},
    },
    "processors": {
        "records": set(),
        "audio": set(),
        "text": {"records"},
        "dataset": {"records", "audio", "text"},
        "alignment": {"records", "audio", "text"},
        "extraction": {"records", "audio", "text", "dataset", "alignment"},
        "durations": {"records", "text", "dataset", "alignment", "extraction"},
        "tensorflowtts": {"records", "audio", "text", "dataset", "extraction"},
        "metrics": {"records", "audio", "text"},
    },
}
# Each of these takes a good part of a second, or more, to import.
SLOW_PACKAGES = {
    "accelerate",
    "fastapi",
    "huggingface_hub",
    "joblib",
    "json5",
    "librosa",
    "matplotlib",
    "numba",
    "parselmouth",
    "phonemizer",
    "pocketsphinx",
    "praatio",
    "pyworld",
    "scipy",
    "tensorboard",
}
# Packages whose name on PyPI is another. Not from the metadata of what is installed here: packages
# of the extras may be missing.
DISTRIBUTIONS = {
    "PIL": "pillow",
    "parselmouth": "praat-parselmouth",
    "piper": "piper-tts",
    "xdist": "pytest-xdist",
    "yaml": "pyyaml",
}
TEXT_FILES = {".json", ".md", ".py", ".sh", ".toml", ".txt", ""}
# texts name them
COMMON_FOLDERS = {Path(name) for name in ("/", "/opt", "/srv", "/tmp", "/usr", "/var")}
GENERATED = {"ckpts", "data", "pretrained", "build", "dist", "__pycache__"}


@cache
def imported_modules(path):
    """Dotted names of everything that a file imports, at its top or in a function."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import path and file path are the same here"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def imported_packages(path):
    """Top-level names of everything that a file imports."""
    return (name.split(".")[0] for name in imported_modules(path))


def modules_of(package):
    return sorted((REPOSITORY / package).rglob("*.py"))


def module_name(path):
    name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
    return name.removesuffix(".__init__")


def is_ours(name):
    return name == ".ci" or not (name.startswith(".") or name == "__pycache__")


@cache
def text_files():
    """Files of text, but hidden and generated ones; folders such as .venv are not entered."""
    tops = [path for path in REPOSITORY.iterdir() if path.name not in GENERATED]
    paths = [path for top in tops if is_ours(top.name) for path in (top, *top.rglob("*"))]
    texts = [path for path in sorted(paths) if path.is_file() and path.suffix in TEXT_FILES]
    return [path for path in texts if all(map(is_ours, path.relative_to(REPOSITORY).parts))]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_run_one_way(package):
    faults = [
        f"{path.relative_to(REPOSITORY)} imports {name}"
        for path in modules_of(package)
        for name in imported_packages(path)
        if name in MAY_IMPORT and name not in MAY_IMPORT[package]
    ]
    assert faults == []


@pytest.mark.parametrize("package", ROOMS)
def test_a_room_imports_only_rooms_below_it(package):
    faults = []
    for path in modules_of(package.replace(".", "/")):
        module = module_name(path).removeprefix(package).lstrip(".")
        if not module:
            continue
        room = module.split(".")[0]
        allowed = ROOMS[package][room] | {room}
        faults += [
            f"{path.relative_to(REPOSITORY)} imports {name}"
            for name in imported_modules(path)
            if name.startswith(f"{package}.")
            and name.removeprefix(f"{package}.").split(".")[0] not in allowed
        ]
    assert faults == []


def test_no_files_import_each_other_in_a_circle():
    """Imports for type checkers only count too."""
    paths = [path for package in MAY_IMPORT for path in modules_of(package)]
    files = {module_name(path): path for path in paths}
    imports = {}
    for module, path in files.items():
        names = imported_modules(path)
        named = {name if name in files else name.rpartition(".")[0] for name in names}
        imports[module] = named & files.keys()
    order = [*TopologicalSorter(imports).static_order()]  # a CycleError shows the circle
    assert sorted(order) == sorted(files)


def test_the_name_of_a_class_is_defined_once():
    texts = (path.read_text("utf-8") for package in MAY_IMPORT for path in modules_of(package))
    names = [name for text in texts for name in re.findall(r"^ *class (\w+)", text, re.MULTILINE)]
    assert len(names) > 300
    assert [name for name, n in Counter(names).items() if n > 1] == []


@pytest.mark.parametrize("package", ROOMS)
def test_every_room_says_in_its_first_line_what_lives_there(package):
    for folder in sorted({path.parent for path in modules_of(package)}):
        face = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
        assert ast.get_docstring(face), folder


def test_modules_import_torch_and_numpy_and_one_of_them_numba():
    allowed = {"torch", "numpy", "modules"} | set(sys.stdlib_module_names)
    for path in modules_of("modules"):
        # other modules import this one when they have a loop to compile
        compiles = {"numba"} if path.name == "compiled.py" else set()
        assert set(imported_packages(path)) <= allowed | compiles, path.name


def test_every_package_that_is_imported_is_one_that_setup_installs():
    setup = ast.parse((REPOSITORY / "setup.py").read_text(encoding="utf-8"))
    strings = [str(node.value) for node in ast.walk(setup) if isinstance(node, ast.Constant)]
    words = {word for text in strings for word in re.findall(r"[A-Za-z][\w-]*", text)}
    declared = {word.lower().replace("_", "-") for word in words}
    ours = {"tests", "tools", "setuptools"}
    ours |= {"attention", "frontend"}  # in folders of arion export
    known = set(sys.stdlib_module_names) | set(MAY_IMPORT) | ours
    missing = {
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in text_files()
        if path.suffix == ".py"
        for name in set(imported_packages(path)) - known
        if DISTRIBUTIONS.get(name, name.lower().replace("_", "-")) not in declared
    }
    assert missing == set()


def test_the_path_from_text_to_speech_imports_no_slow_package():
    modules = (
        *("models.synthesizer.synthesizer", "models.checkpoint.loading"),
        *("models.tts.fastspeech2", "bins.inference", "bins.say"),
    )
    code = (
        "import importlib, sys\n"
        f"for module in {modules}:\n"
        "    importlib.import_module(module)\n"
        f"    print(module, {SLOW_PACKAGES} & {{name.split('.')[0] for name in sys.modules}})"
    )
    result = python("-c", code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [f"{module} set()" for module in modules]


def test_a_model_is_one_word_in_four_places():
    recipes = {recipe.name.lower() for recipe in (REPOSITORY / "egs" / "tts").iterdir()}
    for name in model_names("tts"):
        assert (REPOSITORY / "config" / "tts" / f"{name}.json").is_file()
        assert (REPOSITORY / "tests" / "models" / "tts" / f"test_{name}.py").is_file()
        assert name in recipes


def test_no_file_names_a_place_outside_the_tree():
    home = re.compile(r"/(home|Users|root)/\w")
    parent = re.compile(rf"(?<![\w.]){re.escape(str(REPOSITORY.parent))}/")
    is_common = REPOSITORY.parent in COMMON_FOLDERS
    for path in text_files():
        text = path.read_text(encoding="utf-8", errors="replace")
        assert home.search(text) is None, path
        assert is_common or parent.search(text) is None, path


def test_every_link_of_the_documentation_leads_somewhere_inside_the_tree():
    for path in text_files():
        if path.suffix != ".md":
            continue
        prose = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)", prose):
            if not target.startswith(("http:", "https:", "mailto:")):
                resolved = (path.parent / target).resolve()
                assert resolved.exists(), f"{path}: {target}"
                assert resolved.is_relative_to(REPOSITORY), f"{path}: {target}"
