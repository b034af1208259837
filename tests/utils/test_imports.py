import json
import sys
from importlib import import_module

import pytest

from processors.alignment.aligner import Aligner
from utils.errors import InputError
from utils.imports import load_definition, without_modules


def test_a_module_that_is_missing_is_empty_in_the_block_and_missing_after_it(tmp_path, monkeypatch):
    (tmp_path / "needs_it.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    with without_modules("no_such_module"):
        module = import_module("needs_it").no_such_module
    assert not hasattr(module, "anything")
    with pytest.raises(ModuleNotFoundError):
        import_module("no_such_module")


def test_a_module_that_is_loaded_stays_also_after_an_error():
    def fail():
        with without_modules("json", "no_such_module"):
            assert sys.modules["json"] is json
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert sys.modules["json"] is json
    assert "no_such_module" not in sys.modules


@pytest.mark.parametrize("file", ["hmm/__init__.py", "learned.py"])
def test_a_missing_record_names_the_file_of_a_module_or_package(file):
    fault = rf"^processors/alignment/{file} does not end with NONE = A"
    module = f"processors.alignment.{file.split('/')[0].removesuffix('.py')}"
    with pytest.raises(InputError, match=fault):
        load_definition(module, "NONE", Aligner)
