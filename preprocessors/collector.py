"""Shared parts of corpus readers: checks of ids, texts and files, and the search for audio."""

import codecs
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from config.preprocess import CorpusConfig
from preprocessors.manifest import Listing, Rejection, Utterance, check_id
from utils.errors import InputError, control_characters, listed
from utils.files import is_utf_16

AUDIO_SUFFIXES = (".wav", ".flac")


class Collector:
    """Gathers the entries of one corpus; each becomes an utterance or a rejection."""

    def __init__(self, dataset: str, options: CorpusConfig) -> None:
        self.notices: list[str] = []
        self.unlisted: list[str] = []  # names of audio files without a text
        self._dataset = dataset
        self._options = options
        self._default_speaker = options.speaker or dataset
        self._utterances: list[Utterance] = []
        self._rejected: list[Rejection] = []
        self._sources: dict[str, list[str]] = {}  # places of each id

    def add(self, id: str, text: str, audio: Path | None, source: str, speaker: str = "") -> None:
        """Takes one entry; one without text or audio, or with control characters, is rejected."""
        try:
            check_id(id)
        except InputError as error:
            self.reject(id, f"{source}: {error}")
            return
        self._sources.setdefault(id, []).append(source)
        if not text:
            self.reject(id, f"{source}: the text is empty")
        elif shown := control_characters(text):
            remedy = f"remove them, or set preprocess.corpus.{self._dataset}.encoding"
            self.reject(id, f"{source}: the text holds control characters: {shown}; {remedy}")
        elif audio is None:
            self.reject(id, f"{source}: no audio file {id}{' or '.join(AUDIO_SUFFIXES)}")
        else:
            name = f"{self._dataset}_{speaker}" if speaker else self._default_speaker
            language = self._options.language
            self._utterances.append(Utterance(id, audio, text, name, language, source))

    def add_texts(
        self, texts: Mapping[str, Path], audio: Mapping[str, Path], root: Path, speaker: str
    ) -> None:
        """Takes the texts in files of a speaker, and their recordings, both by id."""
        for id, path in texts.items():
            text = " ".join(read_text(path, self._dataset, self._options).split())
            self.add(id, text, audio.get(id), path.relative_to(root).as_posix(), speaker)
        unlisted = (path for id, path in audio.items() if id not in texts)
        self.unlisted += [path.relative_to(root).as_posix() for path in unlisted]

    def add_recording(self, id: str, audio: Path, source: str) -> None:
        """Takes one recording without text, by the dataset's speaker."""
        self._sources.setdefault(id, []).append(source)
        speaker, language = self._default_speaker, self._options.language
        self._utterances.append(Utterance(check_id(id), audio, "", speaker, language, source))

    def reject(self, id: str, reason: str) -> None:
        """Lists an entry that cannot be used; the reason includes its place."""
        self._rejected.append(Rejection(id, "corpus", reason))

    def listing(self) -> Listing:
        """Returns all entries, sorted by id; of an id that occurs several times none is used."""
        if names := self.unlisted:
            files = f"audio files without a text are left out ({len(names)}): {listed(names, 3)}"
            self.notices.append(f"{self._dataset}: {files}")
        doubled = {id: places for id, places in self._sources.items() if len(places) > 1}
        # counted once, also if one of the places has another fault
        self._rejected = [item for item in self._rejected if item.id not in doubled]
        for id, places in doubled.items():
            fault = f"the id {id} occurs {len(places)} times: {listed(places, 3)}"
            self.reject(id, f"{fault}; remove or rename all but one")
        usable = [utterance for utterance in self._utterances if utterance.id not in doubled]
        if not usable:
            counts = f"no usable utterances, {len(self._rejected)} rejected"
            reasons = "".join(f"\n  {rejection.reason}" for rejection in self._rejected[:3])
            raise InputError(f"{self._dataset}: {counts}{reasons}")
        by_id = sorted(usable, key=lambda utterance: utterance.id)
        return Listing(by_id, sorted(self._rejected), self.notices)


def require_layout(root: Path, dataset: str, wanted: str, *patterns: str) -> None:
    """Makes sure that each of some glob patterns matches something in a dataset's folder.

    Raises:
        InputError: Otherwise; it names the key of the folder, and a folder near it that fits.
    """
    if _fits(root, patterns):
        return
    message = f"{dataset}: expected {wanted} in {root}; set dataset_path.{dataset} to that folder"
    near = [folder for folder in [root.parent, *sorted(root.glob("*/"))] if _fits(folder, patterns)]
    raise InputError(f"{message}; {near[0]} looks right" if near else message)


def _fits(folder: Path, patterns: tuple[str, ...]) -> bool:
    return all(any(folder.glob(pattern)) for pattern in patterns)


def read_text(path: Path, dataset: str, options: CorpusConfig) -> str:
    r"""Reads a text file of a corpus; any line ends, which become `\n`, and a BOM are accepted."""
    key = f"preprocess.corpus.{dataset}.encoding"
    content = path.read_bytes()
    try:
        encoding = codecs.lookup(options.encoding).name
        if encoding == "utf-8" and is_utf_16(content):
            raise InputError(f"{path} is UTF-16; save it as UTF-8, or set {key} to utf-16")
        text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except LookupError as error:
        raise InputError(f"{key}: unknown encoding {options.encoding!r}; try utf-8") from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        fault = f"byte 0x{content[error.start]:02x} is not {options.encoding}"
        remedy = f"save the file as utf-8, or set {key} (latin-1, utf-16)"
        raise InputError(f"{path}:{line}: {fault}; {remedy}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


class AudioFiles:
    """Audio files of a few folders below `root`, in order of preference; each is listed once."""

    def __init__(self, root: Path, folders: tuple[str, ...]) -> None:
        self._root = root
        self._folders = folders
        self._listed: dict[Path, dict[str, Path]] = {}
        self._used: set[Path] = set()

    def find(self, name: str) -> Path | None:
        """Returns the audio file called `name`, a relative path without ending; None if missing."""
        for folder in self._folders:
            path = self._root / folder / PurePosixPath(name)
            if (audio := self._files(path.parent).get(path.name)) is not None:
                self._used.add(audio)
                return audio
        return None

    def unlisted(self) -> list[str]:
        """Returns names of the audio files that `find` has not returned, sorted."""
        for folder in self._folders:
            self._files(self._root / folder)
        files = {path for listed in self._listed.values() for path in listed.values()}
        return sorted(path.relative_to(self._root).as_posix() for path in files - self._used)

    def _files(self, folder: Path) -> dict[str, Path]:
        if folder not in self._listed:
            self._listed[folder] = audio_in(folder)
        return self._listed[folder]


def audio_in(folder: Path) -> dict[str, Path]:
    """Returns the audio files of a folder by name without ending, sorted; .wav rather than .flac.

    Hidden files are left out.
    """
    if not folder.is_dir():
        return {}
    # macOS adds hidden files `._name.wav` on disks of other systems
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    files: dict[str, Path] = {}
    for suffix in AUDIO_SUFFIXES:
        for name in names:
            if name.lower().endswith(suffix):
                files.setdefault(name[: -len(suffix)], folder / name)
    return files
