"""Reads checkpoints of other projects; files that try to run code, and Amphion's settings."""

import json
import os
import re
from pathlib import Path

from models.checkpoint.foreign import find


class Command:
    """Makes a file where it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


def read_foreign(path):
    """What the importer of a checkpoint gives."""
    checkpoint = find(path)
    assert checkpoint is not None
    weights, importer = checkpoint
    return importer.read(weights)


def write_as_json5(path):
    """Rewrites JSON as Amphion does with json5.dump: a comma after the last of everything."""
    text = json.dumps(json.loads(path.read_text()), indent=4, sort_keys=True)
    path.write_text(re.sub(r"(?<![\[{,])(?=\n *[\]}])", ",", text))
