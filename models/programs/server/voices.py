"""The voices of a server: opened when first asked for, closed when memory is short."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple
from weakref import WeakValueDictionary

from models.checkpoint.loading import open_model
from models.programs.server.requests import ApiError, SpeechRequest
from models.synthesizer.synthesizer import Synthesizer
from models.voices import find_voice, installed_voices, licence_in, voices_in
from processors.text.pronunciations import Lexicon
from utils.errors import InputError, nearest
from utils.files import size_and_time, user_path
from utils.logging import get_logger

Files = tuple[tuple[str, int, int], ...]  # name, size, and time of the last change in ns
Finder = Callable[[], Mapping[str, str | Path]]
_COPIES = 2  # of the weights in memory at most: as loaded, and laid out for the CPU


class Description(NamedTuple):
    """What a client may know of a voice."""

    speaker: str | None  # who speaks where none is asked for; None: one must be named
    speakers: tuple[str, ...]
    languages: tuple[str, ...]  # of the speakers, espeak codes
    sample_rate: int
    licence: str  # of the weights, else of the recordings, or "unknown"


class VoiceStore:
    """Voices by name, opened by reference; the least recently used ones are closed first.

    Args:
        find: Finds the references of voices by name; called again for voices that were added.
        memory_mb: Bounds the weights of voices in memory; one voice is always kept.
        lexicon: Dictionary that every voice uses.
        tagged: Responses say that their speech is synthetic.
    """

    def __init__(
        self, find: Finder, memory_mb: float, lexicon: Lexicon = None, *, tagged: bool = True
    ) -> None:
        self._find, self._memory_mb = find, memory_mb
        self._lexicon, self._tagged = lexicon, tagged
        self._sources: dict[str, tuple[str | Path, Files]] = {}  # of each voice when last read
        self._refused: dict[str, Files] = {}  # that cannot be read; the voice before them goes on
        self._recent: OrderedDict[tuple[str, Files], Synthesizer] = OrderedDict()
        # those that a request still uses, too: they are neither opened twice nor forgotten
        self._alive: WeakValueDictionary[tuple[str, Files], Synthesizer] = WeakValueDictionary()
        self._lock = Lock()  # of `_recent`
        self.descriptions: dict[str, Description] = {}
        if (fault := self.refresh()) and not self.descriptions:
            raise fault

    def refresh(self) -> InputError | None:
        """Reads voices that were added or replaced, drops removed ones; returns the first fault."""
        try:
            references = self._find()
        except InputError:
            if not self.descriptions:
                raise
            return None  # a folder that is just being replaced
        faults: list[InputError] = []
        for name, reference in references.items():
            files = _files(reference)
            is_read = name in self.descriptions and self._sources[name] == (reference, files)
            if is_read or files == self._refused.get(name):
                continue
            try:
                self.descriptions[name] = _describe(reference)
                self._sources[name] = reference, files
            except InputError as error:
                self._refused[name] = files
                faults.append(error)
                get_logger(__name__).warning("voice %s left out: %s", name, error)
        for name in self.descriptions.keys() - references.keys():
            if not user_path(self._sources[name][0]).exists():
                del self.descriptions[name]
        return faults[0] if faults else None

    @property
    def n_open(self) -> int:
        """Voices in memory."""
        return len(self._alive)

    @property
    def open_mb(self) -> float:
        """Memory of the weights of open voices; safe while another thread opens one."""
        voices = [ref() for ref in self._alive.valuerefs()]
        return sum(_COPIES * voice.weight_bytes / 1e6 for voice in voices if voice is not None)

    def rows(self) -> Iterator[dict[str, object]]:
        """Yields each voice for clients, and each of several speakers as a voice of its own."""
        self.refresh()
        for name, about in self.descriptions.items():
            yield {"id": name, **about._asdict()}
            if len(about.speakers) > 1:
                for speaker, language in zip(about.speakers, about.languages, strict=True):
                    facts = {"speaker": speaker, "speakers": (speaker,), "languages": (language,)}
                    yield {"id": f"{name}/{speaker}", **about._asdict(), **facts}

    def resolved(self, request: SpeechRequest) -> SpeechRequest:
        """Returns the request with the voice and the speaker that its `voice` stands for."""
        self.refresh()
        id, matches = request.voice, [(request.voice, request.speaker)]
        if id not in self.descriptions:
            pairs = ((name, s) for name, about in self.descriptions.items() for s in about.speakers)
            matches = [(name, s) for name, s in pairs if id in (s, f"{name}/{s}")]
        if len(matches) != 1:
            ids = [f"{name}/{s}" for name, s in matches] or [str(row["id"]) for row in self.rows()]
            no_voice = f"no voice {id!r}{nearest(id, ids)}"
            fault = f"several voices have a speaker {id!r}" if matches else no_voice
            message = f"{fault} (expected one of {', '.join(ids)})"
            if not matches and self.descriptions and not nearest(id, ids):
                voice = next(iter(self.descriptions))
                message += f"; to serve one by this name: arion serve {id}={voice}"
            raise ApiError(400, message, param="voice")
        [(name, speaker)] = matches
        if request.speaker not in (None, speaker):
            message = f"speaker: {request.speaker!r}, but the voice {id!r} is that of {speaker!r}"
            raise ApiError(400, f"{message}; leave one of them out", param="speaker")
        return request.model_copy(update={"voice": name, "speaker": speaker})

    def get(self, name: str) -> Synthesizer:
        """Returns a voice, opened if need be."""
        with self._lock:
            reference, files = self._sources[name]
            key = (name, files)
            voice = self._alive.get(key)
            if voice is None:
                try:
                    voice = Synthesizer(reference, lexicon=self._lexicon, tagged=self._tagged)
                    self._alive[key] = voice
                except InputError as error:
                    get_logger(__name__).error("voice %s: %s", name, error)
                    raise ApiError(500, f"the voice {name} cannot be opened") from error
                for replaced in [key for key in self._recent if key[0] == name]:
                    del self._recent[replaced]
            self._recent[key] = voice
            self._recent.move_to_end(key)
            while len(self._recent) > 1 and self.open_mb > self._memory_mb:
                self._recent.popitem(last=False)
            return voice


def named_references(words: Sequence[str]) -> dict[str, str | Path]:
    """Reads the voices of a command line.

    Args:
        words: NAME=VOICE, or VOICE: an installed voice, an experiment, a folder of experiments, or
            a name on the Hub. Without words: all installed ones.
    """
    named: list[tuple[str, str | Path]] = []
    for word in words:
        name, equals, reference = word.partition("=")
        folder = user_path(word)
        if equals:
            named.append((name, find_voice(reference)))
        elif folder.is_dir() and not (folder / "config.json").is_file() and voices_in(folder):
            named += ((voice.name, voice.folder) for voice in voices_in(folder))
        else:
            named.append((folder.resolve().name if folder.exists() else word, find_voice(word)))
    if not words:
        named = [(voice.name, voice.folder) for voice in installed_voices()]
    names = [name for name, _ in named]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two voices are named {twice[0]!r}; name one as in other=FOLDER")
    return dict(named)


def _files(reference: str | Path) -> Files:
    """Lists the files by which a voice in a folder is read; empty for other references."""
    patterns = ("*.json", "*.safetensors", "checkpoints/step-*")
    paths = sorted(path for pattern in patterns for path in user_path(reference).glob(pattern))
    files = ((path.name, *size_and_time(path)) for path in paths)
    return tuple(file for file in files if file[1] >= 0)  # training has just deleted the others


def _describe(reference: str | Path) -> Description:
    opened = open_model(reference)
    opened.require_task("tts", reference)
    speakers = opened.assets.speakers
    return Description(
        opened.default_speaker(),
        tuple(speaker.name for speaker in speakers),
        tuple(speaker.language for speaker in speakers),
        opened.assets.mel.sample_rate,
        licence_in(opened.home / "history.json"),
    )
