"""Pages that list what there is: none is forgotten, and what they say of it is so."""

import ast
import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from bins import arion
from bins._flags.parsers import recipe_arguments
from bins._flags.table import FLAGS
from bins._flags.values import STAGES
from processors.durations import EXPORT_FORMATS, IMPORT_FORMATS
from processors.metrics.registry import CHECKS, METRICS

REPOSITORY = Path(__file__).parents[1]
EVALUATION = (REPOSITORY / "docs" / "evaluation.md").read_text(encoding="utf-8")
PAGES = [path for glob in ("*.md", "docs/*.md", "egs/*/*/*.md") for path in REPOSITORY.glob(glob)]
FOLDERS = "bins|config|egs|models|modules|preprocessors|processors|tests|tools|utils"


def rows_of(heading: str) -> dict[str, list[str]]:
    """The rows of the table in a section, by the name in their first cell."""
    section = EVALUATION.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {cells[0].strip(" `"): [cell.strip() for cell in cells[1:]] for cells in rows}


def test_the_tables_hold_each_metric_with_unit_direction_and_kind_and_each_check():
    stated = {name: tuple(cells[:3]) for name, cells in rows_of("Metrics").items()}
    assert stated == {name: (m.unit, m.better, m.family) for name, m in METRICS.items()}
    assert sorted(rows_of("Checks")) == sorted(CHECKS)


def test_what_the_examples_in_python_import_and_name_is_there():
    section = EVALUATION.split("\n## From Python\n")[1].split("\n## ")[0]
    code = "".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    tree = ast.parse(code)
    names: dict[str, Any] = {}
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), "imports", "exec"), names)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    ours = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in names]
    for call in ours:
        given = {keyword.arg: None for keyword in call.keywords if keyword.arg}
        inspect.signature(names[call.func.id]).bind(*call.args, **given)
    called = {call.func.id for call in ours}
    assert {"evaluate", "inputs_of_model", "write_page", "AlignedPair"} <= called


@pytest.mark.parametrize("page", PAGES)
def test_files_of_the_code_and_commands_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    named = re.findall(rf"`((?:{FOLDERS})/[\w./]+\.(?:py|sh|json))`", text)
    commands = re.findall(r"python -m ((?:bins|tools)(?:\.\w+)+)", text)
    named += [f"{command.replace('.', '/')}.py" for command in commands]
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_calls_of_recipes_on_a_page_have_flags_of_their_stages(page):
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    calls = re.findall(r"^(?:\w+=\S+ )*sh (\S*)run\.sh (.*?)(?: \.\.\. |$)", text, re.MULTILINE)
    for folder, flags in calls:
        kind = "vocoder" if "vocoder" in (folder or str(page)) else "tts"
        words = shlex.split(flags, comments=True)
        texts = {"stage": "all"} if words == ["--help"] else recipe_arguments(kind, words)
        stages = {*STAGES.read(texts["stage"])}
        foreign = [flag.name for flag in FLAGS if not stages & {*flag.stages}]
        assert not {*texts} & {*foreign}, flags


@pytest.mark.parametrize("page", PAGES)
def test_calls_of_arion_on_a_page_have_flags_of_the_command(page, monkeypatch, capsys):
    text = page.read_text(encoding="utf-8")
    for name, words in re.findall(r"^(?:\S*/)?arion (\w+)(.*)$", text, re.MULTILINE):
        recipe = ["FastSpeech2"] if name == "train" else []
        monkeypatch.setattr("sys.argv", ["arion", name, *recipe, "--help"])
        with pytest.raises(SystemExit):
            arion.main()
        known = capsys.readouterr().out
        flags = [word for word in shlex.split(words, comments=True) if word.startswith("-")]
        assert [flag for flag in flags if f"{flag} " not in known] == []


def test_the_tables_of_durations_hold_each_format():
    page = (REPOSITORY / "docs" / "durations.md").read_text(encoding="utf-8")
    imports, exports = page.split("\n## Export\n")
    formats = [re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) for part in (imports, exports)]
    assert [tuple(sorted(names)) for names in formats] == [IMPORT_FORMATS, EXPORT_FORMATS]
