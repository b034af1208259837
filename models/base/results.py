"""Results for people: names of files, plots of speech, samples of validation utterances."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from models.base.assets import Assets
from models.base.model import AcousticModel
from models.base.task import Sample
from modules.mel import MelSpectrogram
from modules.waveform.griffin_lim import GriffinLim
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.records import timed_phones

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METADATA = "metadata.jsonl"  # stage 3: a line for each audio file
SINGLE = "single"  # folder of what stage 3 wrote in this mode
# stage 4 writes these next to it, or into its folder COMPARISON where several are compared
SCORES = "scores.json"
UTTERANCES = "scores.jsonl"
PAGE = "report.html"
COMPARISON = "comparison"

LABEL_POINTS = 7.0  # font size of the phone names
CHARACTER_IN = 0.075  # width of a character at that size, inches
GAP_IN = 0.03  # least distance between two phone names, inches
PHONE_IN = 0.16  # width of the figure per phone, inches
SECOND_IN = 2.0  # width of the figure per second, without phones, inches
LABEL_ROW_IN = 0.13  # height of a row of phone names, inches
WIDTH_IN = (6.0, 40.0)  # smallest and largest width of a figure
MAX_LABEL_ROWS = 6  # of more, in speech of minutes, none can be read, and drawing takes long
MARGIN_IN = (0.75, 0.15)  # left and right of the panels
PANEL_IN = (2.6, 1.0, 0.8)  # heights: mel, f0, energy
TITLE_CHARACTERS_PER_IN = 11  # at 9 points


def plot_synthesis(
    mel: ArrayLike,
    phones: Sequence[str],
    durations: ArrayLike,
    f0: ArrayLike | None = None,
    energy: ArrayLike | None = None,
    *,
    frame_s: float,
    title: str = "",
) -> "Figure":
    """Draws the mel with phone boundaries and names, and below it f0 and energy.

    Of speech too long for the names to fit, neither names nor boundaries are drawn.

    Args:
        mel: Log-mel, (M, T).
        phones: Phone names, N of them.
        durations: Frames per phone, (N,); their sum is T.
        f0: Hz, 0 where unvoiced, (T,); None leaves its panel out.
        energy: (T,); None leaves its panel out.
        title: Title, wrapped to the width of the figure; at most three lines.

    Returns:
        The figure, free of pyplot's global state.
    """
    mel = np.asarray(mel, dtype=np.float32)
    edges = np.concatenate([[0], np.cumsum(np.asarray(durations))]) * frame_s  # (N + 1,)
    curves = (("f0 (Hz)", f0), ("energy", energy))
    shown = {name: np.asarray(row, np.float32) for name, row in curves if row is not None}
    width_in = figure_width(PHONE_IN * len(phones))
    rows = label_rows(phones, edges, width_in - sum(MARGIN_IN))
    if max(rows, default=0) >= MAX_LABEL_ROWS:
        phones, edges, rows = [], edges[[0, -1]], []
    panels = _add_panels(width_in, PANEL_IN[: 1 + len(shown)], title, max(rows, default=0) + 1)
    _draw_mel(panels[0], mel, edges, colour_limits([mel]))
    _draw_labels(panels[0], phones, edges, rows)
    for panel, (name, values) in zip(panels[1:], shown.items(), strict=True):
        _draw_curve(panel, values, edges, name, frame_s)
    return cast("Figure", panels[0].figure)


def plot_mels(mels: Mapping[str, ArrayLike], *, frame_s: float, title: str = "") -> "Figure":
    """Draws log-mels (M, T), by name, above one another, with the same colours and time axis."""
    arrays = {name: np.asarray(mel, dtype=np.float32) for name, mel in mels.items()}
    seconds = max(mel.shape[1] for mel in arrays.values()) * frame_s
    panels = _add_panels(figure_width(SECOND_IN * seconds), [PANEL_IN[0]] * len(arrays), title)
    for panel, (name, mel) in zip(panels, arrays.items(), strict=True):
        _draw_mel(panel, mel, np.array([0, mel.shape[1] * frame_s]), colour_limits(arrays.values()))
        panel.set_ylabel(f"{name} (mel band)", fontsize=8)
    panels[-1].set_xlim(0, seconds)
    return cast("Figure", panels[0].figure)


def plot_attention(
    attention: ArrayLike,
    phones: Sequence[str],
    gate: ArrayLike | None = None,
    *,
    frame_s: float,
    title: str = "",
) -> "Figure":
    """Draws how much each phone weighs in each frame: a good alignment is a rising line.

    Args:
        attention: Weights, (T, N); other arguments are those of `plot_synthesis`.
        gate: Probability that speech ends, (T,), drawn below; None: no such panel.
    """
    weights = np.asarray(attention, dtype=np.float32).T  # (N, T)
    seconds = weights.shape[1] * frame_s
    heights_in = [max(PANEL_IN[0], LABEL_ROW_IN * len(phones)), PANEL_IN[1]]
    n_panels = 1 if gate is None else 2
    panels = _add_panels(figure_width(SECOND_IN * seconds), heights_in[:n_panels], title)
    _draw_mel(panels[0], weights, np.array([0, seconds]), (0.0, 1.0))
    ticks = np.arange(len(phones)) + 0.5
    panels[0].set_yticks(ticks, phones, fontsize=LABEL_POINTS, parse_math=False)
    panels[0].set_ylabel("")
    if gate is not None:
        _draw_curve(panels[1], np.asarray(gate), np.array([0, seconds]), "gate", frame_s)
        panels[1].set_ylim(0, 1)
    return cast("Figure", panels[0].figure)


def figure_width(content_in: float) -> float:
    """Returns the width of a figure whose panels should have this width, inches."""
    return float(np.clip(content_in + sum(MARGIN_IN), *WIDTH_IN))


def label_rows(phones: Sequence[str], edges: np.ndarray, width_in: float) -> list[int]:
    """Returns the row of each phone name, from 0 just above the mel: the lowest that is free there.

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


def _add_panels(
    width_in: float, heights_in: Sequence[float], title: str, n_label_rows: int = 0
) -> list["Axes"]:
    """Makes a figure of panels below one another with a common time axis."""
    import textwrap

    from matplotlib.figure import Figure

    title = "".join(char if char.isprintable() else " " for char in title)
    columns, bottom_in, gap_in = int(width_in * TITLE_CHARACTERS_PER_IN), 0.45, 0.12
    title = textwrap.fill(title, columns, max_lines=3, placeholder=" …")
    top_in = 0.16 * len(title.splitlines()) + n_label_rows * LABEL_ROW_IN + 0.18
    total_in = top_in + sum(heights_in) + gap_in * (len(heights_in) - 1) + bottom_in
    figure = Figure(figsize=(width_in, total_in), dpi=100)
    left, right = MARGIN_IN[0] / width_in, 1 - MARGIN_IN[1] / width_in
    figure.text(left, 1 - 0.06 / total_in, title, va="top", fontsize=9, parse_math=False)
    grid = figure.subplots(len(heights_in), sharex=True, squeeze=False, height_ratios=heights_in)
    figure.subplots_adjust(left, bottom_in / total_in, right, 1 - top_in / total_in)
    figure.subplots_adjust(hspace=gap_in / np.mean(heights_in))
    panels = list(grid[:, 0])
    for panel in panels:
        panel.tick_params(labelsize=7)
    panels[-1].set_xlabel("seconds", fontsize=8)
    return panels


def colour_limits(mels: Iterable[np.ndarray]) -> tuple[float, float]:
    """Computes the limits of the colour scale for mels (M, T) that are drawn together."""
    values = np.concatenate([mel.ravel() for mel in mels])
    low, high = np.percentile(values, [2, 99.8])  # robust to a few silent frames
    return float(low), max(float(high), float(low) + 1.0)


def _draw_mel(
    panel: "Axes", mel: np.ndarray, edges: np.ndarray, limits: tuple[float, float]
) -> None:
    """Draws the mel (M, T) as an image, with a thin line at each phone boundary (N + 1,)."""
    extent = (0.0, float(edges[-1]), 0.0, float(mel.shape[0]))
    image = panel.imshow(mel, "magma", aspect="auto", origin="lower", extent=extent)
    image.set(clim=limits, interpolation="nearest")
    _draw_boundaries(panel, edges, "white")
    panel.set_ylabel("mel band", fontsize=8)


def _draw_boundaries(panel: "Axes", edges: np.ndarray, colour: str) -> None:
    height = panel.get_xaxis_transform()
    panel.vlines(edges[1:-1], 0, 1, transform=height, colors=colour, linewidth=0.4, alpha=0.6)


def _draw_labels(
    panel: "Axes", phones: Sequence[str], edges: np.ndarray, rows: Sequence[int]
) -> None:
    """Writes the phone names above the panel, each linked to its phone by a thin line."""
    centres = (edges[:-1] + edges[1:]) / 2
    link = {"arrowstyle": "-", "linewidth": 0.3, "color": "grey", "shrinkA": 0}
    for phone, centre, row in zip(phones, centres, rows, strict=False):  # fewer names: no room
        panel.annotate(
            phone,
            xy=(centre, 1),
            xycoords=panel.get_xaxis_transform(),
            xytext=(0, (0.03 + row * LABEL_ROW_IN) * 72),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=LABEL_POINTS,
            parse_math=False,
            arrowprops=link if row else None,
        )


def _draw_curve(
    panel: "Axes", values: np.ndarray, edges: np.ndarray, name: str, hop: float
) -> None:
    """Draws one curve, (T,), over the phone boundaries; zeros of f0 (unvoiced) are gaps."""
    times = (np.arange(len(values)) + 0.5) * hop
    shown = np.where(values > 0, values, np.nan) if name.startswith("f0") else values
    panel.plot(times, shown, linewidth=1.2, color="tab:blue")
    _draw_boundaries(panel, edges, "grey")
    panel.set_ylabel(name, fontsize=8)
    panel.margins(y=0.1)


def synthesis_samples(network: AcousticModel, batch: TtsBatch, assets: Assets) -> Iterator[Sample]:
    """Synthesises utterances from their phones with Griffin-Lim; figures show mel, f0 and energy.

    Speech of more than three times the length of the recording is cut off there.
    """
    phones = batch.phone_ids, batch.phone_lengths
    limits = 3 * batch.mel_lengths  # an untrained or diverged model can give every phone seconds
    out = network.infer(*phones, speaker_ids=batch.speaker_ids, max_frames=limits)
    device = out.mel.device if out.mel.is_cuda else torch.device("cpu")
    vocoder = GriffinLim(assets.mel).to(device)
    wavs = vocoder.infer(out.mel.float().to(device), out.mel_lengths.to(device)).cpu()  # (B, S)
    contours = out.contours_per_frame()  # (B, T) each, or None
    for item, id in enumerate(batch.ids):
        T, N = int(out.mel_lengths[item]), int(batch.phone_lengths[item])
        names, durations = _names(assets, batch.phone_ids[item, :N]), out.durations[item, :N]
        wav = wavs[item, : T * assets.mel.hop_length]
        timed = timed_phones(names, durations.tolist(), assets.mel.frame_s)
        labels: dict[str, Any] = {"title": id, "frame_s": assets.mel.frame_s}
        curves = (None if values is None else _plain(values[item, :T]) for values in contours)
        spoken = _plain(out.mel[item, :, :T]), names, _plain(durations)
        figures = {"mel": partial(plot_synthesis, *spoken, *curves, **labels)}
        if out.alignment is not None:
            weights = _plain(out.alignment[item, :T, :N])
            gate = None if out.gate is None else _plain(out.gate[item, :T])
            figures["attention"] = partial(plot_attention, weights, names, gate, **labels)
        yield Sample(id, {"synthesised": wav}, figures, timed)


def add_alignment_figures(
    samples: Iterator[Sample], batch: TtsBatch, durations: Tensor, assets: Assets
) -> Iterator[Sample]:
    """Adds figures of the recordings with durations, (B, N) frames, that an aligner found."""
    for item, sample in enumerate(samples):
        T, N = int(batch.mel_lengths[item]), int(batch.phone_lengths[item])
        names = _names(assets, batch.phone_ids[item, :N])
        recorded = _plain(batch.mel[item, :, :T]), names, _plain(durations[item, :N])
        curves = _plain(batch.f0[item, :T]), _plain(batch.energy[item, :T])
        labels: dict[str, Any] = {"title": sample.id, "frame_s": assets.mel.frame_s}
        draw = partial(plot_synthesis, *recorded, *curves, **labels)
        yield sample._replace(figures={**sample.figures, "alignment": draw})


def resynthesis_samples(
    batch: VocoderBatch, wav_hat: Tensor, mel_of: MelSpectrogram
) -> Iterator[Sample]:
    """Yields recordings and their resynthesis, (B, S); a figure shows the mels of both."""
    mel_of, mel = mel_of.to(wav_hat.device), mel_of.config
    for item, id in enumerate(batch.ids):
        S = int(batch.mel_lengths[item]) * mel.hop_length
        wavs = {"recorded": batch.wav[item, :S], "synthesised": wav_hat[item, :S].float()}
        draw = partial(_plot_mels_of, wavs, mel_of, title=id)
        yield Sample(id, {name: wav.cpu() for name, wav in wavs.items()}, {"mels": draw})


def _plot_mels_of(wavs: Mapping[str, Tensor], mel_of: MelSpectrogram, *, title: str) -> "Figure":
    mels = {name: _plain(mel_of(wav[None])[0]) for name, wav in wavs.items()}
    return plot_mels(mels, title=title, frame_s=mel_of.config.frame_s)


def _names(assets: Assets, phone_ids: Tensor) -> list[str]:
    symbols = assets.required_vocabulary().symbols
    return [symbols[phone] for phone in phone_ids.tolist()]


def _plain(values: Tensor) -> np.ndarray:
    return values.float().cpu().numpy()
