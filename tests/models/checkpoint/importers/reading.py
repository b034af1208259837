"""Reads checkpoints of other projects."""

from models.checkpoint.foreign import find


def read_foreign(path):
    """What the importer of a checkpoint gives."""
    checkpoint = find(path)
    assert checkpoint is not None
    weights, importer = checkpoint
    return importer.read(weights)
