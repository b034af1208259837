from pathlib import Path

import pytest


@pytest.fixture
def corpus(tmp_path):
    """Writes files by name; corpus readers do not open audio, so empty files will do for it."""

    def write(files: dict[str, str | bytes]) -> Path:
        root = tmp_path / "corpus"
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return root

    return write
