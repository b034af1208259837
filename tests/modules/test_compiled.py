from numba.core import caching

from modules.compiled import compiled


def test_where_compiled_code_cannot_be_kept_it_is_compiled_every_time(monkeypatch):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    assert compiled(lambda number: number + 1)(2) == 3
