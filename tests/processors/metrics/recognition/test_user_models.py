import sys

import numpy as np
import pytest

from processors.metrics.recognition.user_models import UserFunctionError, UserModels, load_function
from utils.errors import InputError
from utils.parallel import run_chunks


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A user's folder, where commands are typed."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, name: str, code: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(code)


def test_a_function_of_the_current_folder_is_called(folder):
    code = "def hear(wav, rate, language):\n    return f'{language} {rate}'"
    write(folder / "mine_a", "ears", code)
    assert load_function("mine_a.ears:hear")(np.zeros(3), 8000, "en-us") == "en-us 8000"


def encode_all(_, plugins):
    return [float(one.encoder(np.ones(3, dtype=np.float32), 8000)[0]) for one in plugins]


@pytest.mark.processes
def test_it_travels_to_other_processes(folder):
    code = "import numpy, os\nHERE = os.getpid()\n"
    code += "def encode(wav, rate):\n    return numpy.array([wav.sum() + rate, HERE])"
    write(folder, "mine_b", code)
    plugins = UserModels(encoder=load_function("mine_b:encode"))
    (done,) = run_chunks(encode_all, {"a": [plugins]}, n_jobs=1)
    assert done.result == [8003.0]


@pytest.mark.parametrize("name", ["ears", "ears:", ":hear", "my ears:hear", "ears.:hear", "a:b:c"])
def test_a_name_of_another_form_is_refused(name):
    fault = r"^\S*( \S+)?: cannot be imported|is no function.*expected package\.module:function"
    with pytest.raises(InputError, match=fault):
        load_function(name)


def test_what_is_missing_is_named(folder):
    write(folder, "mine_c", "from math import pi\ndef hear(): ...")
    write(folder, "mine_d", "import no_such_package_of_anyone")
    write(folder, "mine_e", "def hear(:\n")
    write(folder, "mine_f", "from math import no_such_name")
    write(folder, "mine_h", "import sys\nsys.exit(2)")
    for name, message in {
        "mine_g:hear": r"cannot be imported \(ModuleNotFoundError: No module named 'mine_g'\); ",
        "mine_c:heart": r"mine_c:heart: .*module 'mine_c' has no attribute 'heart'",
        "mine_c:pi": r"mine_c:pi is no function, but float",
        "mine_d:hear": r"mine_d:hear: .*No module named 'no_such_package_of_anyone'",
        "mine_e:hear": r"mine_e:hear: cannot be imported \(SyntaxError: invalid syntax.*line 1",
        "mine_f:hear": r"mine_f:hear: .*\(ImportError: cannot import name 'no_such_name'",
        "mine_h:hear": r"mine_h:hear: cannot be imported \(SystemExit: 2\)",
    }.items():
        with pytest.raises(InputError, match=message):
            load_function(name)


def test_it_fails_in_one_line_that_names_a_line_of_its_own(folder):
    code = "import json\nfrom functools import cache\n\n@cache\ndef of_two(wav, rate): ...\n\n"
    code += "def hear(wav, rate, language):\n    json.loads('no')\n\n"
    code += "def talk(wav, rate, language):\n    raise ValueError('first\\nsecond')\n"
    code += "\ndef leave(wav, rate, language):\n    raise SystemExit('no')\n"
    write(folder, "mine_i", code)
    for name, message in {
        "of_two": r"TypeError: of_two\(\) takes 2 positional .* but 3 were given$",
        "hear": r"JSONDecodeError: Expecting value: .* \(.*mine_i\.py, line 8\)$",
        "talk": r"ValueError: first \(.*mine_i\.py, line 11\)$",
        "leave": r"SystemExit: no \(.*mine_i\.py, line 14\)$",
    }.items():
        with pytest.raises(UserFunctionError, match=f"^mine_i:{name} fails: {message}"):
            load_function(f"mine_i:{name}")(8000, 8000, "en-us")


def test_what_lies_there_hides_no_module_of_the_product(folder):
    write(folder, "utils", "def nearest(): ...")
    with pytest.raises(InputError, match=r"utils.* has no attribute 'nearest'"):
        load_function("utils:nearest")
