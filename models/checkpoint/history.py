"""The model card, README.md in the format of the Hugging Face Hub, and the history in it."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

from config.preprocess import CorpusConfig
from config.schema import Config
from models.base.assets import Assets
from preprocessors.corpora import licence_of, published, read_origin
from preprocessors.manifest import Origin
from processors.text.symbols import PUNCTUATION_PAUSES
from utils.config import build
from utils.config_tree import plain_tree
from utils.errors import InputError, listed
from utils.files import read_json, read_text, write_json, write_text

HISTORY = "history.json"
UNKNOWN = "unknown"  # the identifier of the Hub for a licence that is not given
_NOTES = "\n## Notes\n"  # text of the user follows, and is kept
_FIRST_NOTE = "The licence of the recordings and the consent of their speakers limit its use.\n"
_HUB_NAME = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)@[0-9a-f]{40}", re.ASCII)
_TEXT = """---
{header}
---
# {title}

{summary}

| | |
|---|---|
{table}

## Use

```python
{use}
```
{notes}"""
_USE_VOICE = """from models.synthesizer import Synthesizer

speech = Synthesizer("{name}")("Any text.")
speech.wav, speech.sample_rate"""
_USE_VOCODER = """from models.checkpoint import load_model
from models.synthesizer import Synthesizer

speech = Synthesizer("a voice", vocoder="{name}")("Any text.")
wav = load_model("{name}").network.infer(mel)  # (B, {n_mels}, T) -> (B, T * {hop})"""


@dataclass
class Position:
    """How far training is."""

    step: int = 0  # updates done, skipped ones included
    epoch: int = 0  # the current epoch, from 0
    batch: int = 0  # micro-batches of the epoch that each process has done
    best: float | None = None  # smallest validation loss so far
    best_step: int | None = None  # the update of the smallest validation loss
    validated: int = 0  # the update of the last validation
    scored: int = 0  # the update of the last scores
    # fingerprint of data, batches and processes; `batch` is valid for this plan only
    plan: str = ""


@dataclass(frozen=True)
class History:
    """The history of a model: what is in neither its config nor its assets."""

    hours: dict[str, float] = field(default_factory=dict)  # of audio, by dataset
    origins: dict[str, Origin] = field(default_factory=dict)  # of datasets that programs spoke
    initialised_from: str = ""  # the model that gave the first weights; empty: random weights
    mels_from: str = ""  # the acoustic model whose mels a vocoder was trained on; empty: recordings
    imported_from: str = ""  # model and project, if another project trained it; else empty
    not_imported: tuple[str, ...] = ()  # unused parts of the checkpoint of another project
    step: int | None = None  # updates; None if unknown
    # losses and scores of the last validation, by name
    losses: dict[str, float] = field(default_factory=dict)
    best: float | None = None  # smallest validation loss, of the update `best_step`
    best_step: int | None = None
    licence: str = UNKNOWN  # of the weights: an identifier of the Hub
    recordings_licences: tuple[str, ...] = ()  # each once; unknown ones are left out

    def at(self, step: int | None) -> "History":
        """Returns the history of another update's weights, without the losses of these weights."""
        return self if step in (None, self.step) else replace(self, step=step, losses={})

    def save(self, folder: Path) -> None:
        """Writes history.json."""
        write_json(folder / HISTORY, asdict(self))

    @classmethod
    def load(cls, folder: Path) -> "History":
        """Reads history.json; without that file, the history is empty."""
        path = folder / HISTORY
        if not path.exists():
            return cls()
        plain = read_json(path)
        if not isinstance(plain, dict):
            raise InputError(f"{path}: expected an object; remove the file for a new model card")
        names = {key.name for key in fields(cls)}  # earlier versions wrote more
        return build(cls, plain_tree({n: plain[n] for n in names & plain.keys()}, path))


def history_of(config: Config, folders: Sequence[Path]) -> History:
    """Starts the history of a model with its data, from the reports of stage 1."""
    hours, acoustic, origins = {}, set(), {}
    for name, folder in zip(config.dataset, folders, strict=True):
        path = folder / "report.json"
        if path.exists():
            report = cast("dict[str, Any]", read_json(path))
            try:
                hours[name] = float(report["hours"])
                acoustic.add(report.get("mels_from", ""))  # older reports are of recordings
            except (LookupError, TypeError, ValueError) as error:
                raise InputError(f"{path}: not a report of stage 1; run stage 1 again") from error
            if (origin := read_origin(path)).spoken_by:
                origins[name] = origin
    return History(hours=hours, origins=origins, mels_from="; ".join(sorted(acoustic - {""})))


@dataclass(frozen=True)
class Card:
    """The content of a card."""

    name: str  # the model's name for loading it: that of its folder, or `org/name`
    config: Config
    assets: Assets
    history: History
    scores: tuple[str, ...] = ()  # of stage 4, one line each


def write_card(folder: Path, card: Card, notes_from: Path | None = None) -> None:
    """Writes README.md of a model and its history; keeps the user's notes in it or `notes_from`."""
    replace(card.history, recordings_licences=_recordings_licences(card)).save(folder)
    path = (notes_from or folder) / "README.md"
    notes = read_text(path).partition(_NOTES)[2].lstrip("\n") if path.exists() else ""
    write_text(folder / "README.md", card_text(card, notes or _FIRST_NOTE))


def update_card(folder: Path, card: Card, position: Position, losses: Mapping[str, float]) -> None:
    """Writes the card of an experiment and its history while it is trained.

    Args:
        losses: Losses and scores of the last validation, by name; others are those of `card`.
    """
    measured = {**card.history.losses, **losses}
    finite = {name: value for name, value in measured.items() if math.isfinite(value)}
    history = replace(card.history, step=position.step, losses=finite)
    history = replace(history, best=position.best, best_step=position.best_step)
    write_card(folder, replace(card, history=history))


def card_text(card: Card, notes: str = _FIRST_NOTE) -> str:
    """Formats a card as Markdown under a header in YAML."""
    mel, history = card.assets.mel, card.history
    use, role = (_USE_VOICE, "voice") if card.config.task == "tts" else (_USE_VOCODER, "vocoder")
    updates = "" if history.step is None else f" for {history.step} updates"
    summary = f"{card.config.model_type}, a {role}, trained with Arion{updates}."
    if history.imported_from:
        importer = "imported into Arion by `python -m bins.import_checkpoint`"
        summary = f"A {role}: {history.imported_from}; {importer}."
    rows = {name: " ".join(value.split()).replace("|", "\\|") for name, value in _rows(card)}
    return _TEXT.format(
        # every JSON value is a YAML value, whatever characters the user's names hold
        header="\n".join(f"{key}: {json.dumps(value)}" for key, value in _header(card) if value),
        title=card.name.rpartition("/")[2],
        summary=summary,
        table="\n".join(f"| {name} | {value} |" for name, value in rows.items() if value),
        use=use.format(name=card.name, n_mels=mel.n_mels, hop=mel.hop_length),
        notes=f"{_NOTES}\n{notes}",
    )


def licences_of(config: Config, history: History) -> dict[str, str]:
    """Returns the licence of each dataset's recordings; empty where it is unknown."""
    of_programs = {name: origin.licence for name, origin in history.origins.items()}
    return {
        name: options.licence or of_programs.get(name, licence_of(name, options))
        for name, options in _datasets(config).items()
    }


def _recordings_licences(card: Card) -> tuple[str, ...]:
    licences = licences_of(card.config, card.history).values()
    return tuple(dict.fromkeys(filter(None, licences)))


def _header(card: Card) -> Iterator[tuple[str, str | Sequence[str]]]:
    config, is_voice = card.config, card.config.task == "tts"
    yield "license", card.history.licence
    yield "recordings_license", _recordings_licences(card)
    if is_voice:  # a vocoder has none
        yield "language", sorted({s.language.split("-")[0] for s in card.assets.speakers})
    yield "tags", ["text-to-speech" if is_voice else "vocoder", "arion", config.model_type.lower()]
    yield "library_name", "arion"
    yield "pipeline_tag", "text-to-speech" if is_voice else ""
    recorded = {n: o for n, o in _datasets(config).items() if n not in card.history.origins}
    corpora = (published(name, options) for name, options in recorded.items())
    yield "datasets", [corpus.hub_name for corpus in corpora if corpus and corpus.hub_name]
    base = _HUB_NAME.match(card.history.initialised_from)
    yield "base_model", base["repo"] if base else ""


def _rows(card: Card) -> Iterator[tuple[str, str]]:
    """Yields rows of the table; those without a value are left out."""
    history, assets, mel = card.history, card.assets, card.assets.mel
    yield "data", _data(card)
    names = [speaker.name for speaker in assets.speakers]
    yield "speakers", f"{len(names)}: {listed(names, 10)}" if names else ""
    trained = assets.trained_phones
    lacking = (m for m in PUNCTUATION_PAUSES if trained is not None and m not in trained)
    yield "not trained on", " ".join(f"`{mark[1]}`" for mark in lacking)
    yield "audio", f"{mel.sample_rate} Hz"
    bands = f"{mel.n_mels} bands, {mel.f_min:g} to {mel.f_max:g} Hz, n_fft {mel.n_fft}"
    frames = f"window {mel.win_length}, hop {mel.hop_length}, padding {mel.padding}"
    yield "mel", f"{bands}, {frames}, natural logarithm"
    if history.mels_from:
        yield "mels", f"predicted by {history.mels_from} from the true durations, pitch and energy"
    yield "initialised from", history.initialised_from
    yield "updates", "" if history.step is None else str(history.step)
    if (decay := card.config.train.ema_decay) and card.config.inference.ema:
        yield "weights", f"moving average over the updates, decay {decay:g}"
    yield "validation", ", ".join(f"{name} {loss:.4g}" for name, loss in history.losses.items())
    if history.best is not None:
        later = "; later ones are worse" if (history.step or 0) > (history.best_step or 0) else ""
        best = f"update {history.best_step}, by its validation loss of {history.best:.4g}{later}"
        yield "best checkpoint", best
    yield "scores", "; ".join(card.scores)
    yield "not imported", "; ".join(history.not_imported)


def _datasets(config: Config) -> dict[str, CorpusConfig]:
    """Returns the options of each dataset; none of generated data."""
    names = () if config.train.synthetic_utterances else config.dataset
    return {name: config.preprocess.corpus_of(name) for name in names}


def _data(card: Card) -> str:
    """Returns the datasets with their hours and licences."""
    if n := card.config.train.synthetic_utterances:
        return f"generated (--synthetic), {n} utterances: its output is not speech"
    about = {name: f", {hours:.2f} hours" for name, hours in card.history.hours.items() if hours}
    for name, origin in card.history.origins.items():
        about[name] = f"{about.get(name, '')}, spoken by {origin.spoken_by}"
    return "; ".join(
        f"{name}{about.get(name, '')}, licence of the recordings: {licence or UNKNOWN}"
        for name, licence in licences_of(card.config, card.history).items()
    )
