"""Evaluations to be shown, made of tones and of numbers that are not measured."""

import json
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from models.evaluation.report.page import write_page
from models.evaluation.results import Evaluation, System, SystemReport, compare, mean_scores
from modules.mel import MelConfig
from processors.audio.files import write_wav
from processors.metrics import utterance_scorer
from processors.metrics.records import MetricValue
from processors.metrics.utterance_scorer import EvaluatedUtterance, ScoreColumn, UtteranceScores
from processors.records import TimedPhone

MEL = MelConfig(sample_rate=8000, n_fft=256, win_length=256, hop_length=64, n_mels=20, f_max=4000.0)
COLUMNS = (
    ScoreColumn("mcd", "dB", "lower"),
    ScoreColumn("pesq", "MOS", "higher"),
    ScoreColumn("wer", "%", "lower"),
    ScoreColumn("wer_recorded", "%", ""),
    ScoreColumn("wer_difference", "%", "lower"),
)
PHONES = (TimedPhone("HH", 0.0, 0.1), TimedPhone("AH0", 0.1, 0.25), TimedPhone("<.>", 0.25, 0.4))


def tone(hz: float = 150.0, seconds: float = 0.4, sample_rate: int = 8000) -> np.ndarray:
    """A buzz with a pitch, (S,) float32."""
    time = np.arange(round(seconds * sample_rate)) / sample_rate
    harmonics = [np.sin(2 * np.pi * hz * n * time) / n for n in range(1, 8)]
    return (0.2 * np.sum(harmonics, axis=0)).astype(np.float32)


def item_of(
    folder: Path,
    id: str,
    systems: tuple[str, ...] = ("voice",),
    *,
    text: str = "the cat",
    wav: np.ndarray | None = None,
    sample_rate: int = 8000,
    recorded: bool = True,
    phones: bool = True,
) -> EvaluatedUtterance:
    """An utterance with a file of each system."""
    spoken = {}
    for n, system in enumerate(systems):
        file = folder / f"{len(list(folder.iterdir()))}.wav"
        write_wav(file, tone(150 + 20 * n) if wav is None else wav, sample_rate)
        timed = PHONES if phones else ()
        spoken[system] = utterance_scorer.SpeechFile(file, timed, is_copy=system == "copy")
    return EvaluatedUtterance(
        id,
        partial(tone, 140.0, 0.5) if recorded else None,
        text,
        "en-us",
        partial(tuple, PHONES if phones and recorded else ()),
        spoken,
    )


def scored_of(
    id: str, mcd: float, heard: str = "the cat", flags: dict[str, str] | None = None
) -> UtteranceScores:
    """Scores of an utterance."""
    values = {
        "mcd": MetricValue(mcd),
        "pesq": MetricValue(4 - mcd / 4),
        "wer": MetricValue(50.0, 2, heard),
        "wer_recorded": MetricValue(0.0, 2, "the cat"),
        "wer_difference": MetricValue(50.0, 2),
    }
    return UtteranceScores(id, 0.4, values, flags or {})


def evaluation_of(
    items: list[EvaluatedUtterance],
    scored: dict[str, list[UtteranceScores]],
    references: tuple[str, ...] = (),
) -> Evaluation:
    """A run of stage 4 with these scores, by system."""
    systems = []
    for name, found in scored.items():
        by_id, folder = {one.id: one for one in found}, Path("ckpts") / name / "result"
        systems.append(System(name, folder, _report_of(found), by_id, name in references))
    references = tuple(system for system in systems if system.is_reference)
    systems = tuple(system for system in systems if not system.is_reference)
    comparisons = compare(systems, COLUMNS)
    return Evaluation(systems, tuple(items), MEL, comparisons, references=references)


def _report_of(found: list[UtteranceScores]) -> SystemReport:
    checks = sorted({name for one in found for name in one.flags})
    flags = {name: sum(name in one.flags for one in found) for name in checks}
    skipped = {"stoi": "not installed (pip install pystoi)"}
    scores, seconds = mean_scores(COLUMNS, found), sum(one.seconds for one in found)
    return SystemReport(len(found), seconds, "griffin-lim", scores, skipped, flags)


class Page(HTMLParser):
    """The elements of a page, and what its JSON holds."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements, self.json, self._id = [], {}, None
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._id = dict(attrs).get("id") if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._id = None

    def handle_data(self, data: str) -> None:
        if self._id is not None:
            self.json[self._id] = json.loads(data)


def page_of(
    path: Path,
    items: list[EvaluatedUtterance],
    scored: dict[str, list[UtteranceScores]] | None = None,
) -> Page:
    """A page by one system."""
    scored = {"voice": [scored_of(item.id, 5.0) for item in items]} if scored is None else scored
    write_page(path, evaluation_of(items, scored), backend="sequential")
    return Page(path)
