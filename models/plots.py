"""Plots of speech: mel with its phones, f0 and energy; mels above one another; attention."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from utils.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABEL_POINTS = 7.0  # font size of the phone names
CHARACTER_IN = 0.075  # width of a character at that size, inches
GAP_IN = 0.03  # least distance between two phone names, inches
PHONE_IN = 0.16  # width of the figure per phone, inches
SECOND_IN = 2.0  # width of the figure per second, without phones, inches
LABEL_ROW_IN = 0.13  # height of a row of phone names, inches
WIDTH_IN = (6.0, 40.0)  # smallest and largest width of a figure
MOST_LABEL_ROWS = 6  # of more, in speech of minutes, none can be read, and drawing takes long
MARGIN_IN = (0.75, 0.15)  # left and right of the panels
PANEL_IN = (2.6, 1.0, 0.8)  # heights: mel, f0, energy
TITLE_CHARACTERS_PER_IN = 11  # at 9 points


def plot_synthesis(
    path: Path | None,
    mel: ArrayLike,
    phones: Sequence[str],
    durations: ArrayLike,
    f0: ArrayLike | None = None,
    energy: ArrayLike | None = None,
    *,
    title: str = "",
    frame_s: float | None = None,
) -> "Figure":
    """Draws the mel with phone boundaries and names, and below it f0 and energy.

    Of speech too long for the names to fit, neither names nor boundaries are drawn.

    Args:
        path: PNG file to write; None only returns the figure.
        mel: Log-mel, (M, T).
        phones: Phone names, N of them.
        durations: Frames per phone, (N,); their sum is T.
        f0: Hz, 0 where unvoiced, (T,); None leaves its panel out.
        energy: (T,); None leaves its panel out.
        title: Title, wrapped to the width of the figure; at most three lines.
        frame_s: Seconds per frame, for the time axis; None counts frames.

    Returns:
        The figure, free of pyplot's global state.
    """
    from matplotlib.figure import Figure

    mel = np.asarray(mel, dtype=np.float32)
    durations = np.asarray(durations, dtype=np.int64)
    frame = 1.0 if frame_s is None else frame_s
    edges = np.concatenate([[0], np.cumsum(durations)]) * frame  # (N + 1,)
    curves = (("f0 (Hz)", f0), ("energy", energy))
    shown = {name: np.asarray(row, np.float32) for name, row in curves if row is not None}

    width_in = float(np.clip(PHONE_IN * len(phones) + sum(MARGIN_IN), *WIDTH_IN))
    rows = label_rows(phones, edges, width_in - sum(MARGIN_IN))
    legible = max(rows, default=0) < MOST_LABEL_ROWS
    if not legible:
        edges, rows = edges[[0, -1]], []
    figure = Figure(figsize=(width_in, 1), dpi=100)
    heights_in = PANEL_IN[: 1 + len(shown)]
    panels = add_panels(figure, heights_in, max(rows, default=0) + 1, wrap(title, width_in))
    draw_mel(panels[0], mel, edges, colour_limits([mel]))
    if legible:
        draw_labels(panels[0], phones, edges, rows)
    for panel, (name, values) in zip(panels[1:], shown.items(), strict=True):
        draw_curve(panel, values, edges, name, frame)
    panels[-1].set_xlabel("frames" if frame_s is None else "seconds", fontsize=8)
    return _written(figure, path)


def plot_mels(
    path: Path | None, mels: Mapping[str, ArrayLike], *, title: str = "", frame_s: float
) -> "Figure":
    """Draws log-mels (M, T), by name, above one another, with the same colours and time axis.

    Other arguments are those of `plot_synthesis`.
    """
    from matplotlib.figure import Figure

    arrays = {name: np.asarray(mel, dtype=np.float32) for name, mel in mels.items()}
    seconds = max(mel.shape[1] for mel in arrays.values()) * frame_s
    width_in = float(np.clip(SECOND_IN * seconds + sum(MARGIN_IN), *WIDTH_IN))
    figure = Figure(figsize=(width_in, 1), dpi=100)
    panels = add_panels(figure, [PANEL_IN[0]] * len(arrays), 0, wrap(title, width_in))
    for panel, (name, mel) in zip(panels, arrays.items(), strict=True):
        draw_mel(panel, mel, np.array([0, mel.shape[1] * frame_s]), colour_limits(arrays.values()))
        panel.set_ylabel(f"{name} (mel band)", fontsize=8)
    panels[-1].set_xlim(0, seconds)
    panels[-1].set_xlabel("seconds", fontsize=8)
    return _written(figure, path)


def plot_attention(
    path: Path | None,
    attention: ArrayLike,
    phones: Sequence[str],
    gate: ArrayLike | None = None,
    *,
    title: str = "",
    frame_s: float,
) -> "Figure":
    """Draws how much each phone weighs in each frame: a good alignment is a rising line.

    Args:
        attention: Weights, (T, N); other arguments are those of `plot_synthesis`.
        gate: Probability that speech ends, (T,), drawn below; None: no such panel.
    """
    from matplotlib.figure import Figure

    weights = np.asarray(attention, dtype=np.float32).T  # (N, T)
    seconds = weights.shape[1] * frame_s
    width_in = float(np.clip(SECOND_IN * seconds + sum(MARGIN_IN), *WIDTH_IN))
    figure = Figure(figsize=(width_in, 1), dpi=100)
    height_in = max(PANEL_IN[0], LABEL_ROW_IN * len(phones))
    heights_in = [height_in] if gate is None else [height_in, PANEL_IN[1]]
    panel, *below = add_panels(figure, heights_in, 0, wrap(title, width_in))
    draw_mel(panel, weights, np.array([0, seconds]), (0.0, 1.0))
    panel.set_yticks(np.arange(len(phones)) + 0.5, phones, fontsize=LABEL_POINTS, parse_math=False)
    panel.set_ylabel("")
    if gate is not None:
        draw_curve(below[0], np.asarray(gate), np.array([0, seconds]), "gate", frame_s)
        below[0].set_ylim(0, 1)
    figure.axes[-1].set_xlabel("seconds", fontsize=8)
    return _written(figure, path)


def _written(figure: "Figure", path: Path | None) -> "Figure":
    if path is not None:
        with replacing(path) as temporary:
            figure.savefig(temporary, format="png")
    return figure


def label_rows(phones: Sequence[str], edges: np.ndarray, width_in: float) -> list[int]:
    """The row of each phone name, from 0 just above the mel: the lowest that is free there.

    Args:
        edges: Boundaries of the phones, (N + 1,), in any unit.
        width_in: Width of the panel from the first to the last boundary, inches.
    """
    centres = (edges[:-1] + edges[1:]) / 2 * (width_in / edges[-1])  # (N,) inches
    row_ends: list[float] = []
    rows = []
    for phone, centre in zip(phones, centres, strict=True):
        half = len(phone) * CHARACTER_IN / 2
        free = (row for row, end in enumerate(row_ends) if end + GAP_IN <= centre - half)
        row = next(free, len(row_ends))
        row_ends[row : row + 1] = [centre + half]
        rows.append(row)
    return rows


def wrap(title: str, width_in: float) -> str:
    """Wraps any text to at most three lines of a figure; the rest becomes an ellipsis."""
    import textwrap

    title = "".join(char if char.isprintable() else " " for char in title)
    columns = int(width_in * TITLE_CHARACTERS_PER_IN)
    return textwrap.fill(title, columns, max_lines=3, placeholder=" …")


def add_panels(
    figure: "Figure", heights_in: Sequence[float], n_label_rows: int, title: str
) -> list["Axes"]:
    """Adds panels below one another with a common time axis, and sets the figure's height."""
    title_in = 0.16 * len(title.splitlines()) + 0.08
    top_in = title_in + n_label_rows * LABEL_ROW_IN + 0.1
    bottom_in, gap_in = 0.45, 0.12
    n_panels = len(heights_in)
    total_in = top_in + sum(heights_in) + gap_in * (n_panels - 1) + bottom_in
    width_in = figure.get_figwidth()
    figure.set_size_inches(width_in, total_in)
    figure.text(
        MARGIN_IN[0] / width_in, 1 - 0.06 / total_in, title, va="top", fontsize=9, parse_math=False
    )
    panels: list[Axes] = []
    y_in = total_in - top_in
    for height_in in heights_in:
        y_in -= height_in
        box = (
            MARGIN_IN[0] / width_in,
            y_in / total_in,
            1 - sum(MARGIN_IN) / width_in,
            height_in / total_in,
        )
        panels.append(figure.add_axes(box, sharex=panels[0] if panels else None))
        panels[-1].tick_params(labelsize=7, labelbottom=len(panels) == n_panels)
        y_in -= gap_in
    return panels


def colour_limits(mels: Iterable[np.ndarray]) -> tuple[float, float]:
    """Computes the limits of the colour scale for mels (M, T) that are drawn together."""
    values = np.concatenate([mel.ravel() for mel in mels])
    low, high = np.percentile(values, [2, 99.8])  # robust to a few silent frames
    return float(low), max(float(high), float(low) + 1.0)


def draw_mel(
    panel: "Axes", mel: np.ndarray, edges: np.ndarray, limits: tuple[float, float]
) -> None:
    """Draws the mel (M, T) as an image, with a thin line at each phone boundary (N + 1,)."""
    extent = (0.0, float(edges[-1]), 0.0, float(mel.shape[0]))
    panel.imshow(
        mel,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        extent=extent,
        cmap="magma",
        vmin=limits[0],
        vmax=limits[1],
    )
    panel.vlines(edges[1:-1], 0, mel.shape[0], colors="white", linewidth=0.4, alpha=0.6)
    panel.set_ylabel("mel band", fontsize=8)


def draw_labels(
    panel: "Axes", phones: Sequence[str], edges: np.ndarray, rows: Sequence[int]
) -> None:
    """Writes the phone names above the panel, each linked to its phone by a thin line."""
    for phone, start, end, row in zip(phones, edges[:-1], edges[1:], rows, strict=True):
        y_in = 0.03 + row * LABEL_ROW_IN
        panel.annotate(
            phone,
            xy=((start + end) / 2, 1),
            xycoords=panel.get_xaxis_transform(),
            xytext=(0, y_in * 72),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=LABEL_POINTS,
            parse_math=False,
            arrowprops={"arrowstyle": "-", "linewidth": 0.3, "color": "grey", "shrinkA": 0}
            if row
            else None,
        )


def draw_curve(
    panel: "Axes", values: np.ndarray, edges: np.ndarray, name: str, frame: float
) -> None:
    """Draws one curve, (T,), over the phone boundaries; zeros of f0 (unvoiced) are gaps."""
    times = (np.arange(len(values)) + 0.5) * frame
    shown = np.where(values > 0, values, np.nan) if name.startswith("f0") else values
    panel.plot(times, shown, linewidth=1.2, color="tab:blue")
    panel.vlines(
        edges[1:-1],
        0,
        1,
        transform=panel.get_xaxis_transform(),
        colors="grey",
        linewidth=0.3,
        alpha=0.5,
    )
    panel.set_ylabel(name, fontsize=8)
    panel.margins(y=0.1)
