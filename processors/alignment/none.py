"""The value "none": as "learned", for models that need no durations."""

from processors.alignment.learned import make_aligner

__all__ = ["make_aligner"]
