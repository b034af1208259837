"""Scores of a run that was stopped: the next one goes on from there.

Each utterance has a file, named by a digest of all that its scores depend on: sounds, texts,
phones, transcripts, and the code of the metrics. What has changed is therefore scored anew. When a
run ends well its files are removed.
"""

import functools
import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from processors.scoring.checks import Flag
from processors.scoring.metrics import Value
from processors.scoring.recognition import RECORDED
from processors.scoring.utterance_scorer import (
    EvaluatedUtterance,
    ScoringTask,
    UtteranceScores,
    columns_of,
)
from utils.files import read_json, sha256_of, write_json


@dataclass(frozen=True)
class KeptScores:
    """Utterances that were scored by runs that did not end.

    Nothing is kept where a function of the user's judges: nobody knows what it depends on.

    Attributes:
        folder: Where they are kept.
        task: How they were scored. What was scored by more metrics and checks will do, too.
    """

    folder: Path
    task: ScoringTask

    def key_of(self, item: EvaluatedUtterance) -> str:
        """What the scores of an utterance are kept under; empty where they are not.

        Raises:
            InputError: If its recording cannot be read.
        """
        if (
            self.task.user_models.recogniser is not None
            or self.task.user_models.encoder is not None
        ):
            return ""
        return _digest(item, self.task)

    def read(self, key: str) -> dict[str, UtteranceScores] | None:
        """The scores of an utterance by system; None where there are none."""
        path = self._path_of(key)
        if not key or not path.is_file():
            return None
        kept = cast("dict[str, Any]", read_json(path))
        if not {*self.task.metrics} <= {*kept["metrics"]}:
            return None
        if not {*self.task.checks} <= {*kept["checks"]}:
            return None
        return {system: self._chosen(_scored(one)) for system, one in kept["scored"].items()}

    def write(self, key: str, scored: Mapping[str, UtteranceScores]) -> None:
        """Keeps the scores of an utterance, unless something broke down: that is tried again."""
        if not key or any(one.failed for one in scored.values()):
            return
        judges = {"metrics": self.task.metrics, "checks": self.task.checks}
        plain = {system: one._asdict() for system, one in scored.items()}
        write_json(self._path_of(key), {**judges, "scored": plain})

    def clear(self) -> None:
        """Forgets all, once the scores of all utterances are written."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path_of(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _chosen(self, scored: UtteranceScores) -> UtteranceScores:
        """What this run asks for."""
        names = [column.name for column in columns_of(self.task.metrics)]
        return scored._replace(
            values={name: scored.values[name] for name in names if name in scored.values},
            flags=self._of_checks(scored.flags),
            recorded_flags=self._of_checks(scored.recorded_flags),
            unchecked=self._of_checks(scored.unchecked),
        )

    def _of_checks(self, flags: tuple[Flag, ...]) -> tuple[Flag, ...]:
        return tuple(flag for flag in flags if flag.check in self.task.checks)


def _scored(kept: Mapping[str, Any]) -> UtteranceScores:
    """Scores as they were before they became JSON."""
    values = {name: Value(*value) for name, value in kept["values"].items()}
    kinds = ("flags", "recorded_flags", "unchecked")
    flags = {kind: tuple(Flag(*flag) for flag in kept[kind]) for kind in kinds}
    return UtteranceScores(kept["id"], kept["seconds"], values, **flags)


def _digest(item: EvaluatedUtterance, task: ScoringTask) -> str:
    """Of all that the scores of an utterance depend on, but which they are."""
    recorded = None
    if item.recorded is not None:
        phones = item.phones() if item.phones is not None else ()
        recorded = hashlib.sha256(item.recorded().tobytes()).hexdigest(), phones
    spoken = {
        system: (
            sha256_of(one.file),
            one.phones,
            one.is_copy,
            _transcripts(task.of(system).user_models.transcripts, item.id),
        )
        for system, one in item.spoken.items()
    }
    transcripts = _transcripts(task.user_models.transcripts, item.id)
    facts = [item.id, item.text, item.language, recorded, spoken, transcripts]
    text = json.dumps([_code(), asdict(task.mel), *facts])
    return hashlib.sha256(text.encode()).hexdigest()


def _transcripts(folder: Path | None, id: str) -> list[str]:
    """Of the transcripts of an utterance and of its recording, where there are any."""
    if folder is None:
        return []
    files = (folder / f"{id}.txt", folder / RECORDED / f"{id}.txt")
    return [sha256_of(file) if file.is_file() else "" for file in files]


@functools.cache
def _code() -> str:
    """Of the source of metrics, checks and all that they are made of."""
    root = Path(__file__).parents[2]
    files = [*(root / "processors").rglob("*.py"), *(root / "modules").glob("*.py")]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()
