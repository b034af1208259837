"""Assets of a model: mel definition, phones, speakers, statistics.

They are stored in the experiment's folder, so that it does not depend on the processed data.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from modules.mel import MelConfig
from processors.dataset.statistics import CorpusStats
from processors.text.voice_phones import Vocabulary
from utils.config import build_complete
from utils.errors import InputError, nearest
from utils.files import read_json, read_text, write_json, write_text

T = TypeVar("T")
AUDIO = "audio.json"  # every experiment has it
LEXICON = "lexicon.txt"
VOCABULARY = "vocabulary.json"
SPEAKERS = "speakers.json"
TRAINED_PHONES = "trained_phones.json"
STATS = "stats.json"
ASSET_FILES = (AUDIO, VOCABULARY, STATS, SPEAKERS, TRAINED_PHONES, LEXICON)


class Speaker(NamedTuple):
    """A speaker of a model; the id is the position in Assets.speakers."""

    name: str
    language: str  # espeak language code


@dataclass(frozen=True)
class Assets:
    """What a model needs besides config and weights."""

    mel: MelConfig  # definition of its mels
    # phone names in the order of their ids; None for a vocoder
    vocabulary: Vocabulary | None = None
    speakers: tuple[Speaker, ...] = ()  # in the order of their ids
    stats: CorpusStats | None = None  # statistics of the training split; None for a vocoder
    # text of the user's lexicon (`preprocess.text.lexicon_path`), if there is one
    lexicon: str | None = None
    # phones and pauses of the training split, also of the model that training started from; None
    # if they are not known
    trained_phones: frozenset[str] | None = None

    @property
    def known_phones(self) -> frozenset[str]:
        """What the model can say: the phones it was trained on, or else its vocabulary."""
        if self.trained_phones is not None:
            return self.trained_phones
        return frozenset(self.vocabulary.symbols if self.vocabulary else ())

    def with_phones(self, phones: frozenset[str]) -> "Assets":
        """Returns these assets for a model that was initialised from one trained on `phones`."""
        if self.trained_phones is None or self.vocabulary is None:
            return self
        trained = self.trained_phones | phones.intersection(self.vocabulary.symbols)
        return replace(self, trained_phones=trained)

    def required_vocabulary(self, folder: Path | None = None) -> Vocabulary:
        """Returns the vocabulary of a voice; without one, an InputError names the folder."""
        if self.vocabulary is None:
            place = "" if folder is None else f"{folder}: "
            raise InputError(
                f"{place}no {VOCABULARY}, which an acoustic model needs to read text; "
                "run stage 1 again, or give the folder of an acoustic model"
            )
        return self.vocabulary

    def save(self, folder: Path) -> None:
        """Writes audio.json, and the files of those other assets that exist."""
        write_json(folder / AUDIO, asdict(self.mel))
        if self.vocabulary is not None:
            write_json(folder / VOCABULARY, self.vocabulary.symbols)
        if self.speakers:
            write_json(folder / SPEAKERS, [s._asdict() for s in self.speakers])
        if self.stats is not None:
            write_json(folder / STATS, self.stats.to_plain())
        if self.trained_phones is not None:
            write_json(folder / TRAINED_PHONES, sorted(self.trained_phones))
        (folder / LEXICON).unlink(missing_ok=True)  # of an earlier run under this name
        if self.lexicon is not None:
            write_text(folder / LEXICON, self.lexicon)

    @classmethod
    def load(cls, folder: Path) -> "Assets":
        """Reads what `save` wrote."""
        return cls(
            mel=build_complete(MelConfig, read_json(folder / AUDIO), folder / AUDIO),
            vocabulary=_read_if_exists(folder / VOCABULARY, lambda p: Vocabulary(_names(p))),
            speakers=_read_if_exists(folder / SPEAKERS, _speakers) or (),
            stats=CorpusStats.read(folder / STATS) if (folder / STATS).exists() else None,
            lexicon=read_text(folder / LEXICON) if (folder / LEXICON).exists() else None,
            trained_phones=_read_if_exists(folder / TRAINED_PHONES, lambda p: frozenset(_names(p))),
        )


def find_speaker(name: str, speakers: Sequence[Speaker]) -> int:
    """Returns the id of the speaker of this name; an InputError lists the known ones."""
    names = [speaker.name for speaker in speakers]
    if name not in names:
        known = f"{nearest(str(name), names)} (known: {', '.join(names)})"
        raise InputError(f"the model has no speaker {name!r}{known}")
    return names.index(name)


def read_speakers(folders: Sequence[Path]) -> tuple[Speaker, ...]:
    """Reads the speakers of datasets that stage 1 prepared, each once, sorted by name."""
    speakers: dict[str, Speaker] = {}
    for folder in folders:
        for speaker in _read(folder / SPEAKERS, _speakers):
            speakers.setdefault(speaker.name, speaker)
    return tuple(speakers[name] for name in sorted(speakers))


def _speakers(plain: Any) -> tuple[Speaker, ...]:  # noqa: ANN401  (JSON)
    speakers = tuple(Speaker(**row) for row in plain)
    if not all(isinstance(value, str) for speaker in speakers for value in speaker):
        raise ValueError("expected a name and a language of each speaker, as text")
    if len({speaker.name for speaker in speakers}) < len(speakers):
        raise ValueError("a speaker is in it twice")
    return speakers


def _names(plain: Any) -> list[str]:  # noqa: ANN401  (JSON)
    if not (isinstance(plain, list) and plain and all(isinstance(name, str) for name in plain)):
        raise ValueError(f"expected a list of phones, found {str(plain)[:80]}")
    return plain


def _read(path: Path, parse: Callable[[Any], T]) -> T:
    plain = cast("Any", read_json(path))
    try:
        return parse(plain)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: unexpected content: {error}") from error


def _read_if_exists(path: Path, parse: Callable[[Any], T]) -> T | None:
    return _read(path, parse) if path.exists() else None
