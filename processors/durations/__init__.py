"""Import of phone durations from other programs, and export of alignments to them.

Names of formats and choices are here, since the modules are slow to import and commands show their
flags at once. A format has the suffix of its name.
"""

from typing import Literal, get_args

AttentionPath = Literal["monotonic", "argmax"]  # see models/teacher_forcing/durations.py
ATTENTION_PATHS: tuple[AttentionPath, ...] = get_args(AttentionPath)

IMPORT_FORMATS = ("json", "npy", "pt", "textgrid")
FRAME_FORMATS = ("npy", "pt")  # of IMPORT_FORMATS: frames of tokens that are not named
EXPORT_FORMATS = ("json", "npy", "srt", "textgrid", "vtt")
