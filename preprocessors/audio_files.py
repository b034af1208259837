"""Finding a corpus' audio files without asking the disk about each of them."""

from pathlib import Path, PurePosixPath

from preprocessors.collector import AUDIO_SUFFIXES


class AudioFiles:
    """Audio files of a few folders; each folder is listed once.

    Args:
        root: Folder that all names are relative to.
        folders: Where to look, in this order, relative to `root`; "." is `root` itself.
    """

    def __init__(self, root: Path, folders: tuple[str, ...]) -> None:
        self._root = root
        self._folders = folders
        self._listed: dict[Path, dict[str, Path]] = {}
        self._found: set[Path] = set()

    def find(self, name: str) -> Path | None:
        """The audio file called `name`, a relative path without its ending; None if missing."""
        for folder in self._folders:
            path = self._root / folder / PurePosixPath(name)
            found = self._files(path.parent).get(path.name)
            if found is not None:
                self._found.add(found)
                return found
        return None

    def unlisted(self) -> list[str]:
        """Names of the audio files that nobody asked for, in the folders looked at, sorted."""
        for folder in self._folders:
            self._files(self._root / folder)
        files = {path for listed in self._listed.values() for path in listed.values()}
        return sorted(path.relative_to(self._root).as_posix() for path in files - self._found)

    def _files(self, folder: Path) -> dict[str, Path]:
        if folder not in self._listed:
            self._listed[folder] = audio_in(folder)
        return self._listed[folder]


def audio_in(folder: Path) -> dict[str, Path]:
    """The audio files of a folder by name without ending; .wav wins over .flac, sorted.

    Hidden files are left out: macOS puts `._name.wav` beside each file on foreign disks.
    """
    if not folder.is_dir():
        return {}
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    files: dict[str, Path] = {}
    for suffix in AUDIO_SUFFIXES:
        for name in names:
            if name.lower().endswith(suffix):
                files.setdefault(name[: -len(suffix)], folder / name)
    return files
