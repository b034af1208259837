import itertools

import numpy as np
import pytest

from models.base.results import (
    CHARACTER_IN,
    colour_limits,
    label_rows,
    plot_attention,
    plot_mels,
    plot_synthesis,
    wrap,
)


def speech(n_phones: int = 12, frames_per_phone: int = 3):
    durations = np.full(n_phones, frames_per_phone)
    mel = np.random.default_rng(0).normal(size=(80, durations.sum())).astype(np.float32)
    phones = [("AH0", "T", "ER1")[i % 3] for i in range(n_phones)]
    return mel, phones, durations


def test_the_colour_scale_of_silence_is_not_empty():
    low, high = colour_limits([np.full((80, 10), -11.5)])
    assert low == -11.5
    assert high == pytest.approx(-10.5)


@pytest.mark.parametrize(("n_phones", "expected"), [(400, 400), (4000, 0)])
def test_names_and_boundaries_of_minutes_of_speech_are_left_out(n_phones, expected):
    mel, phones, durations = speech(n_phones)
    panel = plot_synthesis(None, mel, phones, durations).axes[0]

    assert len(panel.texts) == expected
    (boundaries,) = panel.collections
    assert len(boundaries.get_segments()) == max(0, expected - 1)
    assert panel.images[0].get_extent() == [0, 3 * n_phones, 0, 80]


@pytest.mark.parametrize("width_in", [1.0, 5.0, 30.0])
def test_no_two_phone_names_overlap_in_a_row(width_in: float):
    generator = np.random.default_rng(1)
    phones = [("AH0", "T", "<sil>")[i] for i in generator.integers(0, 3, size=60)]
    edges = np.concatenate([[0], np.cumsum(generator.integers(0, 20, size=60))]).astype(float)
    rows = label_rows(phones, edges, width_in)
    centres = (edges[:-1] + edges[1:]) / 2 * width_in / edges[-1]
    for row in set(rows):
        inside = [i for i in range(60) if rows[i] == row]
        for left, right in itertools.pairwise(inside):
            widths = (len(phones[left]) + len(phones[right])) * CHARACTER_IN / 2
            assert centres[right] - centres[left] >= widths


def test_phone_names_with_room_stand_in_one_row():
    assert label_rows(["A", "B", "C"], np.array([0.0, 1.0, 2.0, 3.0]), 6.0) == [0, 0, 0]


def test_mels_stand_one_over_the_other_on_one_time_axis():
    mel, *_ = speech()
    figure = plot_mels(None, {"recorded": mel, "copied": mel[:, :20]}, frame_s=0.01)
    upper, lower = figure.axes

    assert upper.get_ylabel() == "recorded (mel band)"
    assert upper.get_position().y0 > lower.get_position().y1
    assert upper.get_xlim() == lower.get_xlim() == pytest.approx((0, 0.36))
    assert [panel.images[0].get_extent()[1] for panel in figure.axes] == pytest.approx([0.36, 0.2])


def test_a_long_title_is_cut_to_three_lines():
    lines = wrap("word " * 500, width_in=6.0).splitlines()
    assert len(lines) == 3
    assert lines[-1].endswith("…")


def test_a_plot_without_a_path_is_a_figure_with_a_panel_per_curve():
    mel, phones, durations = speech()
    figure = plot_synthesis(None, mel, phones, durations, np.full(36, 200.0), np.ones(36))
    assert [axes.get_ylabel() for axes in figure.axes] == ["mel band", "f0 (Hz)", "energy"]
    assert figure.axes[-1].get_xlabel() == "frames"


def test_the_time_axis_ends_with_the_last_phone_in_seconds():
    mel, phones, durations = speech()
    figure = plot_synthesis(None, mel, phones, durations, frame_s=0.01)
    assert figure.axes[0].get_xlim() == pytest.approx((0.0, 0.36))
    assert figure.axes[0].get_xlabel() == "seconds"


def test_unvoiced_frames_are_gaps_in_the_f0_curve():
    mel, phones, durations = speech(n_phones=2)
    figure = plot_synthesis(None, mel, phones, durations, f0=[100, 0, 0, 120, 120, 120])
    drawn = figure.axes[1].get_lines()[0].get_ydata()
    assert np.isnan(drawn).tolist() == [False, True, True, False, False, False]


def test_attention_is_drawn_with_a_row_per_phone():
    attention = np.repeat(np.eye(3), 2, axis=0)  # (T, N)
    figure = plot_attention(None, attention, ["a", "b", "c"], frame_s=0.5)
    (panel,) = figure.axes
    assert [label.get_text() for label in panel.get_yticklabels()] == ["a", "b", "c"]
    assert panel.images[0].get_array().shape == (3, 6)
    assert panel.get_xlim() == (0.0, 3.0)
    with_gate = plot_attention(None, attention, ["a", "b", "c"], np.full(6, 0.5), frame_s=0.5)
    assert with_gate.axes[1].lines[0].get_ydata().tolist() == [0.5] * 6


def test_a_picture_is_written_as_png(tmp_path):
    mel, phones, durations = speech()
    path = tmp_path / "a picture.png"
    plot_synthesis(path, mel, phones, durations, title="costs $5 and $6_7 {}")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["a picture.png"]


def test_silence_alone_can_be_plotted():
    floor = np.full((80, 5), np.log(1e-5))
    figure = plot_synthesis(None, floor, ["<sil>"], [5], f0=np.zeros(5), energy=np.zeros(5))
    assert len(figure.axes) == 3


def test_drawing_leaves_pyplot_alone():
    import subprocess
    import sys

    code = (
        "import sys, numpy as np; from models.base.results import plot_synthesis;"
        "plot_synthesis(None, np.zeros((2, 3)), ['A'], [3]);"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
