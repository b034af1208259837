"""Shared parts of corpus readers: checks of ids, texts and files, and the search for audio."""

import codecs
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path, PurePosixPath

from config.preprocess import CorpusConfig
from preprocessors.manifest import Listing, Rejection, UnusableCorpus, Utterance, safe_id
from utils.errors import InputError, control_characters, listed
from utils.files import is_utf_16

# that libsndfile reads
AUDIO_SUFFIXES: tuple[str, ...] = (".wav", ".flac", ".mp3", ".ogg", ".oga", ".opus")
AUDIO_SUFFIXES += (".aiff", ".aif", ".au", ".caf", ".rf64", ".w64")
# that it does not read, and telephones and browsers write
UNREADABLE_SUFFIXES = (".m4a", ".aac", ".mp4", ".3gp", ".amr", ".wma", ".webm")
_NOT_TEXT = {"punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined"}
_MOST_FILES = 10_000  # that a message counts
_ID = attrgetter("id")


class Collector:
    """Gathers the entries of one corpus; each becomes an utterance or a rejection."""

    def __init__(self, dataset: str, options: CorpusConfig) -> None:
        self.notices: list[str] = []
        self.unlisted: list[str] = []  # names of audio files without a text
        self._dataset = dataset
        self._options = options
        self._utterances: list[Utterance] = []
        self._rejected: list[Rejection] = []
        self._sources: dict[str, list[str]] = {}  # places of each id

    def add(
        self,
        id: str,
        text: str | None,
        audio: Sequence[Path],
        source: str,
        speaker: str = "",
        *,
        phones: str = "",
        name: str = "",
    ) -> None:
        """Takes one entry, of whose name `safe_id` makes the id; `source` is for messages.

        One with control characters, or without exactly one recording that can be read, is rejected,
        and so is an empty text, but not None, of corpora without texts. Phones in braces are spoken
        in place of the text.
        """
        name, id = name or id, safe_id(id)
        self._sources.setdefault(id, []).append(source)
        spoken = text or phones
        if not spoken and text is not None:
            self.reject(id, f"{source}: the text is empty")
        elif shown := control_characters(f"{spoken}{speaker}"):
            remedy = f"remove them, or set preprocess.corpus.{self._dataset}.encoding"
            self.reject(id, f"{source}: the text holds control characters: {shown}; {remedy}")
        elif fault := _fault_of(audio, name):
            self.reject(id, fault if text is None else f"{source}: {fault}")
        else:
            dataset, options, name = self._dataset, self._options, "" if name == id else name
            speaker = f"{dataset}_{speaker}" if speaker else options.speaker or dataset
            made_of = (options.language, source, name, phones)
            self._utterances.append(Utterance(id, audio[0], spoken, speaker, *made_of))

    def add_texts(
        self, texts: dict[str, Path], audio: dict[str, list[Path]], root: Path, speaker: str
    ) -> None:
        """Takes the texts in files of a speaker, and their recordings, both by id."""
        for id, path in texts.items():
            text = " ".join(read_text(path, self._dataset, self._options).split())
            self.add(id, text, audio.get(id, ()), path.relative_to(root).as_posix(), speaker)
        unlisted = (path for id, paths in audio.items() if id not in texts for path in paths)
        self.unlisted += [path.relative_to(root).as_posix() for path in unlisted]

    def reject(self, id: str, reason: str) -> None:
        """Lists an entry that cannot be used; the reason includes its place."""
        self._rejected.append(Rejection(id, "corpus", reason))

    def listing(self) -> Listing:
        """Returns all entries, sorted by id; of an id that occurs several times none is used."""
        if names := self.unlisted:
            files = f"audio files without a text are left out ({len(names)}): {listed(names, 3)}"
            self.notices.append(f"{self._dataset}: {files}")
        doubled = {id: sources for id, sources in self._sources.items() if len(sources) > 1}
        # counted once, also if one of the entries has another fault
        self._rejected = [item for item in self._rejected if item.id not in doubled]
        for id, sources in doubled.items():
            fault = f"the id {id} occurs {len(sources)} times: {listed(sources, 3)}"
            self.reject(id, f"{fault}; remove or rename all but one")
        usable = [utterance for utterance in self._utterances if utterance.id not in doubled]
        listing = Listing(sorted(usable, key=_ID), sorted(self._rejected), self.notices)
        if not usable:
            counts = f"no usable utterances, {len(self._rejected)} rejected"
            reasons = "".join(f"\n  {rejection.reason}" for rejection in self._rejected[:3])
            raise UnusableCorpus(f"{self._dataset}: {counts}{reasons}", listing)
        return listing


def _fault_of(audio: Sequence[Path], name: str) -> str:
    """Returns why these are not the one readable recording of an utterance; empty if they are."""
    if not audio:
        return f"no audio file {without_suffix(name)} ({', '.join(AUDIO_SUFFIXES[:3])} ...)"
    if len(audio) > 1:
        names = " and ".join(map(str, audio))
        return f"several recordings of one id, {names}; remove or rename all but one"
    if (suffix := audio[0].suffix.lower()) in UNREADABLE_SUFFIXES:
        convert = f'for f in *{suffix}; do ffmpeg -i "$f" "${{f%.*}}.wav"; done'
        return f"{audio[0]}: {suffix} files cannot be read; convert them to WAV: {convert}"
    return ""


def require_layout(root: Path, dataset: str, wanted: str, *patterns: str) -> None:
    """Makes sure that each of some glob patterns matches something in a dataset's folder.

    Raises:
        InputError: Otherwise; it names the key of the folder, and a folder near it that fits.
    """

    def fits(folder: Path) -> bool:
        return all(any(folder.glob(pattern)) for pattern in patterns)

    if fits(root):
        return
    remedy = f"name the folder with it (in a recipe, as dataset_path.{dataset})"
    message = f"{dataset}: expected {wanted} in {root}; {remedy}"
    near = next(filter(fits, [root.parent, *sorted(root.glob("*/"))]), None)
    message += f"; {near} looks right" if near else ""
    # the suffixes of the files, with a file of each: 40 .txt (txt/p225_001.txt)
    files = [path for path in islice(root.rglob("*"), _MOST_FILES) if path.is_file()]
    names = {path.suffix: path.relative_to(root).as_posix() for path in reversed(files)}
    counts = Counter(path.suffix for path in files).most_common(4)
    content = ", ".join(f"{n} {suffix} ({names[suffix]})" for suffix, n in counts) or "no files"
    raise InputError(f"{message}; {root} holds {content}")


def read_text(path: Path, dataset: str, options: CorpusConfig) -> str:
    r"""Reads a text file of a corpus; any line ends, which become `\n`, and a BOM are accepted."""
    key = f"preprocess.corpus.{dataset}.encoding"
    content = path.read_bytes()
    try:
        encoding = codecs.lookup(options.encoding).name
        if encoding.replace("-", "_") in _NOT_TEXT:
            raise LookupError(encoding)
        if encoding == "utf-8" and is_utf_16(content):
            raise InputError(f"{path} is UTF-16; save it as UTF-8, or set {key} to utf-16")
        text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        fault = f"byte 0x{content[error.start]:02x} is not {options.encoding}"
        remedy = f"save the file as utf-8, or set {key} (latin-1, utf-16)"
        raise InputError(f"{path}:{line}: {fault}; {remedy}") from error
    except InputError:
        raise
    except (LookupError, ValueError) as error:  # of Python's codecs, some are not of text
        fault = f"{key}: {options.encoding!r} is no encoding of text"
        raise InputError(f"{fault}; use utf-8, latin-1 or utf-16") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


class AudioFiles:
    """Audio files of a few folders below `root`; each is listed once."""

    def __init__(self, root: Path, folders: tuple[str, ...]) -> None:
        self.root = root
        self._folders = folders
        self._listed: dict[Path, dict[str, list[Path]]] = {}
        self._used: set[Path] = set()

    def find(self, name: str) -> list[Path]:
        """Finds the audio files called `name`, a relative path with or without its suffix.

        Of several, it returns those with the suffix of `name`, if any has it.
        """
        path = PurePosixPath(name)
        stem = without_suffix(path.name)
        folders = [self.root / folder / path.parent for folder in self._folders]
        files = [file for folder in folders for file in self._files(folder).get(stem, [])]
        self._used |= {*files}
        exact = [file for file in files if file.suffix.lower() == path.suffix.lower()]
        return exact or files

    def has_folder(self, path: str) -> bool:
        """Returns whether one of the folders holds a folder of this name, which may be empty."""
        return any((self.root / folder / path).is_dir() for folder in self._folders)

    def unlisted(self) -> list[str]:
        """Returns names of the audio files that `find` has not returned, sorted."""
        for folder in self._folders:
            self._files(self.root / folder)
        listed = (paths for files in self._listed.values() for paths in files.values())
        files = {path for paths in listed for path in paths}
        return sorted(path.relative_to(self.root).as_posix() for path in files - self._used)

    def _files(self, folder: Path) -> dict[str, list[Path]]:
        if folder not in self._listed:
            self._listed[folder] = audio_in(folder)
        return self._listed[folder]


def without_suffix(name: str) -> str:
    """Returns the name of a recording without a suffix of audio, in composed characters (NFC)."""
    suffix = PurePosixPath(name).suffix.lower()
    stem = name[: -len(suffix)] if suffix in AUDIO_SUFFIXES + UNREADABLE_SUFFIXES else name
    return unicodedata.normalize("NFC", stem)  # disks of macOS write é as two characters


def audio_in(folder: Path) -> dict[str, list[Path]]:
    """Lists the audio files of a folder by name without suffix, sorted.

    Hidden files are left out, and those that cannot be read where another of the same name can.
    """
    if not folder.is_dir():
        return {}
    files: dict[str, list[Path]] = {}
    for suffixes in (AUDIO_SUFFIXES, UNREADABLE_SUFFIXES):
        readable = set(files)
        for path in sorted(folder.iterdir()):
            # macOS adds hidden files `._name.wav` on disks of other systems
            if path.name.startswith(".") or path.suffix.lower() not in suffixes:
                continue
            if (stem := without_suffix(path.name)) not in readable:
                files.setdefault(stem, []).append(path)
    return files
