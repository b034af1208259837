import pytest

from processors.alignment.aligner import Aligner
from utils.definitions import load_definition
from utils.errors import InputError


@pytest.mark.parametrize(
    ("module", "file"), [("hmm", "hmm/__init__.py"), ("learned", "learned.py")]
)
def test_a_missing_record_names_the_file_of_a_module_or_package(module, file):
    with pytest.raises(
        InputError, match=rf"^processors/alignment/{file} does not end with NONE = A"
    ):
        load_definition(f"processors.alignment.{module}", "NONE", Aligner)
