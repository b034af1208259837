"""Import of phone durations from other programs, and export of alignments to them.

Names of formats and choices are here, since the modules are slow to import and commands show their
flags at once. A format has the suffix of its name.
"""

from typing import Literal, get_args

Layout = Literal["all", "no_start", "no_edges", "no_pauses"]  # see tokens.py
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
AttentionPath = Literal["monotonic", "argmax"]  # see models/teacher_forcing/durations.py
ATTENTION_PATHS: tuple[AttentionPath, ...] = get_args(AttentionPath)

IMPORT_FORMATS = ("ctm", "json", "npy", "pt", "textgrid")
FRAME_FORMATS = ("npy", "pt")  # of IMPORT_FORMATS: frames of tokens that are not named
EXPORT_FORMATS = ("ctm", "json", "npy", "srt", "textgrid", "vtt")
SUBTITLES = ("srt", "vtt")  # of EXPORT_FORMATS
