"""Scores of an interrupted run, from which the next run continues.

Each utterance has a file, named by a digest of all that its scores depend on: sounds, texts,
phones, transcripts, and the code of the metrics. A run that ends well removes the files.
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
from utils.files import read_json, sha256_of, source_digest, write_json


@dataclass(frozen=True)
class ScoreCache:
    """Scores of utterances on disk.

    With a user's recogniser or speaker encoder nothing is cached: its dependencies are unknown.
    """

    folder: Path
    task: ScoringTask  # scores by more metrics and checks serve fewer as well

    def key_of(self, item: EvaluatedUtterance) -> str:
        """Computes a digest of all that the scores depend on; empty if they are not cached.

        Raises:
            InputError: If its recording cannot be read.
        """
        models = self.task.user_models
        has_function = models.recogniser is not None or models.encoder is not None
        return "" if has_function else _digest(item, self.task)

    def read(self, key: str) -> dict[str, UtteranceScores] | None:
        """Reads the scores of an utterance by system; None if they are not cached."""
        path = self._path_of(key)
        if not key or not path.is_file():
            return None
        cached = cast("dict[str, Any]", read_json(path))
        metrics, checks = set(cached["metrics"]), set(cached["checks"])
        if not (metrics.issuperset(self.task.metrics) and checks.issuperset(self.task.checks)):
            return None
        return {system: self._scored(one) for system, one in cached["scored"].items()}

    def write(self, key: str, scored: Mapping[str, UtteranceScores]) -> None:
        """Caches the scores of an utterance, unless a metric failed: that is tried again.

        Args:
            key: From `key_of`; empty: do nothing.
            scored: Scores by system.
        """
        if not key or any(one.failed for one in scored.values()):
            return
        plain = {system: one._asdict() for system, one in scored.items()}
        names = {"metrics": self.task.metrics, "checks": self.task.checks}
        write_json(self._path_of(key), {**names, "scored": plain})

    def clear(self) -> None:
        """Removes all cached scores."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path_of(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _scored(self, cached: Mapping[str, Any]) -> UtteranceScores:
        """Parses cached scores, those by metrics and checks of the task only."""
        names = [column.name for column in columns_of(self.task.metrics)]
        found = cached["values"]
        values = {name: Value(*found[name]) for name in names if name in found}
        flags = {
            kind: tuple(Flag(*flag) for flag in cached[kind] if flag[0] in self.task.checks)
            for kind in ("flags", "recorded_flags", "unchecked")
        }
        return UtteranceScores(cached["id"], cached["seconds"], values, **flags)


def _digest(item: EvaluatedUtterance, task: ScoringTask) -> str:
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
    """Digests of the transcripts of an utterance and of its recording."""
    if folder is None:
        return []
    files = (folder / f"{id}.txt", folder / RECORDED / f"{id}.txt")
    return [sha256_of(file) if file.is_file() else "" for file in files]


@functools.cache
def _code() -> str:
    """Digest of the source of metrics, checks and all that they import."""
    root = Path(__file__).parents[2]
    files = [*(root / "processors").rglob("*.py"), *(root / "modules").glob("*.py")]
    return source_digest(root, files)
