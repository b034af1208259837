"""Looking for files of other projects, in folders that may be of another machine."""

from collections.abc import Iterable
from pathlib import Path


def first_file(paths: Iterable[Path]) -> Path | None:
    """The first that there is; paths of another machine may be too long, or not for us to see."""
    for path in paths:
        try:
            if path.is_file():
                return path
        except OSError:
            continue
    return None


def upwards(folder: Path, levels: int) -> list[Path]:
    """A folder and those above it, links followed."""
    folder = folder.resolve()
    return [folder, *folder.parents[:levels]]
