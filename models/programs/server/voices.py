"""The voices of a server: opened when first asked for, closed when memory is short."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from models.checkpoint.loading import open_model
from models.checkpoint.voices import find_voice, installed_voices, voices_in
from models.programs.server.requests import ApiError, SpeechRequest
from models.synthesizer.synthesizer import Synthesizer
from utils.errors import InputError, nearest
from utils.files import user_path
from utils.logging import get_logger

_COPIES = 2  # of the weights in memory at most: as loaded, and laid out for the CPU


class Description(NamedTuple):
    """What a client may know of a voice."""

    speaker: str | None  # who speaks where none is asked for; None: one must be named
    speakers: tuple[str, ...]
    languages: tuple[str, ...]  # of the speakers, espeak codes
    sample_rate: int


class VoiceStore:
    """Voices by name, opened by reference; the least recently used ones are closed first.

    `memory_mb` bounds the weights of open voices; one voice is always kept.
    """

    def __init__(self, references: Mapping[str, str | Path], memory_mb: float) -> None:
        self._references = references
        self._memory_mb = memory_mb
        self._open: OrderedDict[str, Synthesizer] = OrderedDict()
        self._lock = Lock()  # of `_open`
        self.descriptions: dict[str, Description] = {}
        faults: list[InputError] = []
        for name, reference in references.items():
            try:
                self.descriptions[name] = _describe(reference)
            except InputError as error:
                faults.append(error)
                get_logger(__name__).warning("voice %s left out: %s", name, error)
        if faults and not self.descriptions:
            raise faults[0]

    @property
    def n_open(self) -> int:
        """Voices in memory."""
        return len(self._open)

    @property
    def open_mb(self) -> float:
        """Memory of the weights of open voices; safe while another thread opens one."""
        return sum(_COPIES * voice.weight_bytes / 1e6 for voice in [*self._open.values()])

    def rows(self) -> Iterator[dict[str, object]]:
        """Yields each voice for clients, and each of several speakers as a voice of its own."""
        for name, about in self.descriptions.items():
            yield {"id": name, **about._asdict()}
            if len(about.speakers) > 1:
                for speaker, language in zip(about.speakers, about.languages, strict=True):
                    alone = Description(speaker, (speaker,), (language,), about.sample_rate)
                    yield {"id": f"{name}/{speaker}", **alone._asdict()}

    def resolved(self, request: SpeechRequest) -> SpeechRequest:
        """Returns the request with the voice and the speaker that its `voice` stands for."""
        id, found = request.voice, [(request.voice, request.speaker)]
        if id not in self.descriptions:
            pairs = ((name, s) for name, about in self.descriptions.items() for s in about.speakers)
            found = [(name, s) for name, s in pairs if id in (s, f"{name}/{s}")]
        if len(found) != 1:
            known = [f"{name}/{s}" for name, s in found] or [str(row["id"]) for row in self.rows()]
            no_voice = f"no voice {id!r}{nearest(id, known)}"
            fault = f"several voices have a speaker {id!r}" if found else no_voice
            message = f"{fault} (expected one of {', '.join(known)})"
            raise ApiError(400, message, param="voice")
        [(name, speaker)] = found
        if request.speaker not in (None, speaker):
            message = f"speaker: {request.speaker!r}, but the voice {id!r} is that of {speaker!r}"
            raise ApiError(400, f"{message}; leave one of them out", param="speaker")
        return request.model_copy(update={"voice": name, "speaker": speaker})

    def get(self, name: str) -> Synthesizer:
        """Returns a voice, opened if need be."""
        with self._lock:
            if name not in self._open:
                try:
                    self._open[name] = Synthesizer(self._references[name])
                except InputError as error:
                    get_logger(__name__).error("voice %s: %s", name, error)
                    raise ApiError(500, f"the voice {name} cannot be opened") from error
            self._open.move_to_end(name)
            while self.n_open > 1 and self.open_mb > self._memory_mb:
                self._open.popitem(last=False)
            return self._open[name]


def named_references(words: Sequence[str]) -> dict[str, str | Path]:
    """Reads the voices of a command line.

    Args:
        words: NAME=VOICE, or VOICE: an installed voice, an experiment, a folder of experiments, or
            a name on the Hub. None: all installed ones.
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


def _describe(reference: str | Path) -> Description:
    opened = open_model(reference)
    opened.require_task("tts", reference)
    speakers = opened.assets.speakers
    return Description(
        opened.default_speaker(),
        tuple(speaker.name for speaker in speakers),
        tuple(speaker.language for speaker in speakers),
        opened.assets.mel.sample_rate,
    )
