"""Measurements as a table in Markdown."""

from collections.abc import Iterator

from tools.benchmarks.boundaries.comparison import LIMITS_MS, Onset, Summary, summarize
from tools.benchmarks.boundaries.measuring import Result

_COLUMNS = (
    "reference",
    "aligner",
    "onsets",
    "median",
    *(f"≤ {limit:g} ms" for limit in LIMITS_MS),
    "lead",
    "speech",
    "CPU",
    "memory",
)
_COARSE_S = 0.01  # onsets are also compared after rounding to the steps of such a reference


def header() -> str:
    """The first two lines."""
    return f"{_line(_COLUMNS)}\n{_line(['---', '---', *['---:'] * (len(_COLUMNS) - 2)])}"


def rows(measured: Result) -> Iterator[str]:
    """The lines of one measurement: all onsets, these rounded, and those of words."""
    reference, aligner = measured.reference, measured.aligner
    costs = (
        f"{measured.minutes:.1f} min",
        f"{measured.cpu_s:.0f} s",
        f"{measured.peak_mib / 1024:.2f} GiB",
    )
    if not measured.onsets:
        yield _line([reference.name, aligner, "0", *[""] * (len(LIMITS_MS) + 2), *costs])
        return
    yield _line([reference.name, aligner, *_cells(summarize(measured.onsets)), *costs])
    nothing = [""] * len(costs)
    if reference.step_s >= _COARSE_S and aligner != "pocketsphinx":  # its times are rounded so
        rounded = summarize(measured.onsets, reference.step_s)
        name = f"{aligner}, rounded to {1000 * reference.step_s:g} ms"
        yield _line(["", name, *_cells(rounded), *nothing])
    words: list[Onset] = [onset for onset in measured.onsets if onset.begins_word]
    if words:
        yield _line(["", f"{aligner}, words", *_cells(summarize(words)), *nothing])


def _cells(summary: Summary) -> list[str]:
    shares = [f"{100 * share:.1f} %" for share in summary.within]
    return [
        f"{summary.n:,}",
        f"{summary.median_ms:.1f} ms",
        *shares,
        f"{summary.lead_ms:+.1f} ms",
    ]


def _line(cells: Iterator[str] | list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
