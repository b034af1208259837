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


def json5_of(tree):
    """As json5.dump writes it: sorted, with a comma after the last of everything."""
    return re.sub(r"(?<![\[{,])(?=\n *[\]}])", ",", json.dumps(tree, indent=4, sort_keys=True))
