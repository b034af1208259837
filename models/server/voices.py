"""The voices of a server: opened when first asked for, closed when memory is short."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

from models.checkpoint.loading import open_model
from models.server.requests import ApiError
from models.synthesizer.synthesizer import Synthesizer
from models.voices import find_voice, installed_voices, voices_in
from utils.errors import InputError, nearest
from utils.files import user_path
from utils.logging import get_logger

_COPIES = 2  # of the weights in memory at most: as loaded, and laid out for the CPU


class VoiceStore:
    """Voices by name, opened by reference; the least recently used ones are closed first.

    `memory_mb` bounds the weights of open voices; one voice is always kept.
    """

    def __init__(self, references: Mapping[str, str | Path], memory_mb: float) -> None:
        self._references = references
        self._memory_mb = memory_mb
        self._open: OrderedDict[str, Synthesizer] = OrderedDict()
        self.descriptions: dict[str, dict[str, object]] = {}
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

    def check(self, name: str) -> None:
        """Makes sure that there is a voice."""
        if name not in self.descriptions:
            near, known = nearest(name, self.descriptions), ", ".join(self.descriptions)
            message = f"no voice {name!r}{near} (expected one of {known})"
            raise ApiError(400, message, param="voice")

    def get(self, name: str) -> Synthesizer:
        """Returns a voice, opened if need be."""
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


def _describe(reference: str | Path) -> dict[str, object]:
    """What a client may know of a voice; the languages are codes of espeak."""
    opened = open_model(reference)
    opened.require_task("tts", reference)
    speakers = opened.assets.speakers
    return {
        "speakers": [speaker.name for speaker in speakers],
        "languages": [speaker.language for speaker in speakers],
        "sample_rate": opened.assets.mel.sample_rate,
    }
