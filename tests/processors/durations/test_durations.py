"""The lists of formats, which commands show, agree with what is read and written."""

from processors.durations import EXPORT_FORMATS, IMPORT_FORMATS
from processors.durations.writing import WRITERS
from tests.processors.durations.examples import FILES


def test_each_format_is_listed():
    assert tuple(sorted(FILES)) == IMPORT_FORMATS  # test_sources.py reads each
    assert tuple(sorted(WRITERS)) == EXPORT_FORMATS
