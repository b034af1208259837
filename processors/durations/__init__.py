"""Import of phone durations from other programs, and export of alignments to them.

A format is a module of `formats`. They are listed here, since importing them is slow and commands
show their flags at once.
"""

from typing import Literal, get_args

Layout = Literal["all", "no_start", "no_edges", "no_pauses"]  # see tokens.py
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
AttentionPath = Literal["monotonic", "argmax"]  # see models/teacher_forcing/attended_durations.py
ATTENTION_PATHS: tuple[AttentionPath, ...] = get_args(AttentionPath)

# Modules of `formats`: those that define `entries`, and those that define `write`.
IMPORT_FORMATS = ("ctm", "htk", "json", "jsonl", "npy", "pt", "textgrid")
FRAME_FORMATS = ("npy", "pt")  # of IMPORT_FORMATS: frames of tokens that are not named
EXPORT_FORMATS = ("ctm", "json", "npy", "textgrid")
