"""Tables of a report of the benchmark, in Markdown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = list[str]
Record = Mapping[str, Any]  # of `results` or `comparisons` in the JSON of a report


def tables_of(report: Record) -> dict[str, str]:
    """Makes the tables of what was measured, by name.

    Args:
        report: As `plain_of` gives it, or as read from its JSON.

    Returns:
        Markdown of "training", "inference", "speech", "start-up" and "comparison", those that are
        not empty.
    """
    facts = report["environment"]
    on_one_core = facts["device"].startswith("cpu") and facts["threads"] == "1"
    clock = "cpu_s" if on_one_core else "wall_s"
    tables = {}
    for mode, (head, row) in _ROWS.items():
        found = [one for one in report["results"] if one["of"]["mode"] == mode]
        if found:
            tables[mode] = _markdown(head, [row(one, one[clock]) for one in found])
    if report["comparisons"]:
        rows = [_compared(one) for one in report["comparisons"]]
        tables["comparison"] = _markdown(_COMPARED, rows)
    return tables


def _training(one: Record, seconds: Record) -> Row:
    return [
        *_named(one),
        f"{one['frames_per_s']:,.0f}",
        f"{one['utterances_per_s']:.2f}",
        _s(seconds["p50"]),
        _s(seconds["p90"]),
        _s(max(0.0, one["first_s"] - one["wall_s"]["p50"])),
        f"{100 * one['padding']:.1f} %",
        f"{one['peak_mib']:,.0f}",
    ]


def _inference(one: Record, seconds: Record) -> Row:
    return [
        *_named(one),
        f"{one['real_time_factor']:.4f}",
        f"{one['frames_per_s']:,.0f}",
        f"{one['samples_per_s']:,.0f}",
        *(_s(seconds[name]) for name in ("mean", "p50", "p90", "p99")),
        f"{one['peak_mib']:,.0f}",
    ]


def _speech(one: Record, _seconds: Record) -> Row:
    parts = one["parts"]
    factors = (f"{parts[name]:.4f}" for name in ("text", "acoustic", "vocoder", "whole"))
    return [
        one["of"]["model"],
        *factors,
        _s(parts["first_s"]),
        _s(parts["last_s"]),
        _s(parts["audio_s"]),
    ]


def _start_up(one: Record, _seconds: Record) -> Row:
    return [f"`{one['of']['model']}`", _s(one["cpu_s"]["p50"])]


def _compared(one: Record) -> Row:
    settings = [f"`{one[name]}`" for name in ("first", "second")]
    ratios = [_ratio(one["ratio"][name]) for name in ("cpu", "wall")]
    return [one["model"], one["mode"], *settings, *ratios, str(one["ratio"]["cpu"]["n"])]


def _ratio(estimate: Record) -> str:
    """With its interval, if there is one."""
    low, high = estimate["low"], estimate["high"]
    interval = "" if low is None else f" ({low:.2f} to {high:.2f})"
    return f"{estimate['mean']:.2f}{interval}"


def _named(one: Record) -> Row:
    return [one["of"][name] for name in _NAMED]


def _s(seconds: float) -> str:
    """Three digits."""
    return f"{seconds:.3g}"


_NAMED = ["model", "setting", "batch"]
_ROWS: dict[str, tuple[Row, Callable[[Record, Record], Row]]] = {
    "training": (
        [*_NAMED, "frames/s", "utterances/s", "update, s: p50", "p90", "first, more s",
         "padding", "peak MiB"],
        _training,
    ),
    "inference": (
        [*_NAMED, "real-time factor", "frames/s", "samples/s", "latency, s: mean", "p50", "p90",
         "p99", "peak MiB"],
        _inference,
    ),
    "speech": (
        ["voice and vocoder", "real-time factor: text", "acoustic model", "vocoder", "whole",
         "first sound, s", "last, s", "length, s"],
        _speech,
    ),
    "start-up": (["statement", "CPU seconds"], _start_up),
}  # fmt: skip
_COMPARED = ["model", "", "first", "second", "CPU time, first / second", "elapsed", "pairs"]


def _markdown(head: Row, body: Sequence[Row]) -> str:
    """A table whose first column is text."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *body))
