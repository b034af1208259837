"""Formats are listed by what their modules define."""

import pytest

from processors.durations import reader_names, writer_names
from processors.durations.formats import find_reader, find_writer


@pytest.mark.parametrize("name", reader_names())
def test_each_format_that_is_listed_for_imports_can_be_read(name):
    reader = find_reader(name)
    assert callable(reader.entries)
    assert all(suffix == suffix.lower() and suffix[0] == "." for suffix in reader.SUFFIXES)


def test_only_the_listed_formats_can_be_written():
    writable = [name for name in reader_names() if hasattr(find_writer(name), "write")]
    assert writable == writer_names() == ["ctm", "json", "npy", "textgrid"]
