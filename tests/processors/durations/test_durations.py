"""The lists of formats agree with the modules."""

from pkgutil import iter_modules

import pytest

from processors.durations import EXPORT_FORMATS, IMPORT_FORMATS, formats
from processors.durations.formats import find_reader, find_writer


@pytest.mark.parametrize("name", IMPORT_FORMATS)
def test_each_format_that_is_listed_for_imports_can_be_read(name):
    reader = find_reader(name)
    assert callable(reader.entries)
    assert all(suffix == suffix.lower() and suffix[0] == "." for suffix in reader.SUFFIXES)


def test_each_format_is_listed():
    assert tuple(sorted(module.name for module in iter_modules(formats.__path__))) == IMPORT_FORMATS
    writable = [name for name in IMPORT_FORMATS if hasattr(find_writer(name), "write")]
    assert tuple(writable) == EXPORT_FORMATS
