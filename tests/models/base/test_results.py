import io
import itertools
import sys

import numpy as np
import pytest
import torch

from models.base import results
from models.base.assets import Assets
from models.base.model import TtsOutput
from models.base.results import label_rows, plot_attention, plot_synthesis, synthesis_samples
from models.training.observing.scoring import eval_mode
from modules.mel import MelSpectrogram
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.text.voice_phones import arpabet_vocabulary
from tests.models.vocoder.small_hifigan import MEL, make_gan, make_recording
from utils.errors import InputError


def speech(n_phones: int = 12, frames_per_phone: int = 3):
    durations = np.full(n_phones, frames_per_phone)
    mel = np.random.default_rng(0).normal(size=(80, durations.sum())).astype(np.float32)
    phones = [("AH0", "T", "ER1")[i % 3] for i in range(n_phones)]
    return mel, phones, durations


@pytest.mark.parametrize(("n_phones", "expected"), [(400, 400), (4000, 0)])
def test_names_and_boundaries_of_minutes_of_speech_are_left_out(n_phones, expected):
    panel = plot_synthesis(*speech(n_phones), frame_s=1.0).axes[0]
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
            widths = (len(phones[left]) + len(phones[right])) * results.CHARACTER_IN / 2
            assert centres[right] - centres[left] >= widths
    assert label_rows(["A", "B", "C"], np.array([0.0, 1.0, 2.0, 3.0]), 6.0) == [0, 0, 0]


def test_mels_stand_one_over_the_other_on_one_time_axis():
    mel, *_ = speech()
    figure = results.plot_mels({"recorded": mel, "copied": mel[:, :20]}, frame_s=0.01)
    upper, lower = figure.axes
    assert upper.get_ylabel() == "recorded (mel band)"
    assert upper.get_position().y0 > lower.get_position().y1
    assert upper.get_xlim() == lower.get_xlim() == pytest.approx((0, 0.36))
    assert [panel.images[0].get_extent()[1] for panel in figure.axes] == pytest.approx([0.36, 0.2])


def test_there_is_a_panel_per_curve_above_one_time_axis_and_a_title_of_three_lines_at_most():
    curves = np.full(36, 200.0), np.ones(36)
    figure = plot_synthesis(*speech(), *curves, frame_s=0.01, title="word " * 500)
    lines = figure.texts[0].get_text().splitlines()
    assert len(lines) == 3
    assert lines[-1].endswith("…")
    assert [axes.get_ylabel() for axes in figure.axes] == ["mel band", "f0 (Hz)", "energy"]
    assert figure.axes[-1].get_xlabel() == "seconds"
    assert figure.axes[0].get_xlim() == pytest.approx((0.0, 0.36))


def test_attention_is_drawn_with_a_row_per_phone():
    attention = np.repeat(np.eye(3), 2, axis=0)  # (T, N)
    figure = plot_attention(attention, ["a", "b", "c"], frame_s=0.5)
    (panel,) = figure.axes
    assert [label.get_text() for label in panel.get_yticklabels()] == ["a", "b", "c"]
    assert panel.images[0].get_array().shape == (3, 6)
    assert panel.get_xlim() == (0.0, 3.0)
    with_gate = plot_attention(attention, ["a", "b", "c"], np.full(6, 0.5), frame_s=0.5)
    assert with_gate.axes[1].lines[0].get_ydata().tolist() == [0.5] * 6


def test_unvoiced_frames_are_gaps_in_the_f0_curve():
    figure = plot_synthesis(*speech(2), f0=[100, 0, 0, 120, 120, 120], frame_s=1.0)
    drawn = figure.axes[1].get_lines()[0].get_ydata()
    assert np.isnan(drawn).tolist() == [False, True, True, False, False, False]


def test_silence_alone_can_be_plotted_with_a_colour_scale_that_is_not_empty():
    floor = np.full((80, 5), -11.5)
    figure = plot_synthesis(floor, ["<sil>"], [5], np.zeros(5), np.zeros(5), frame_s=1.0)
    assert len(figure.axes) == 3
    assert results.colour_limits([floor]) == (-11.5, pytest.approx(-10.5))


def test_drawing_leaves_pyplot_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # an import of it is an error
    png = io.BytesIO()
    mel, title = np.zeros((2, 3)), "costs $5, $6_7"
    plot_synthesis(mel, ["A"], [3], frame_s=1, title=title).savefig(png, format="png")
    assert png.getvalue().startswith(b"\x89PNG")


HOP = MEL.hop_length


def recordings(*numbers) -> VocoderBatch:
    """Whole recordings, padded."""
    made = [make_recording(number) for number in numbers]
    lengths = torch.tensor([recording.mel.shape[1] for recording in made])
    mel = torch.full((len(made), MEL.n_mels, int(lengths.max())), MEL.log_floor_value)
    wav = torch.zeros(len(made), int(lengths.max()) * HOP)
    for row, recording in enumerate(made):
        mel[row, :, : lengths[row]] = torch.from_numpy(recording.mel)
        wav[row, : len(recording.wav)] = torch.from_numpy(recording.wav / np.float32(32768))
    return VocoderBatch(tuple(recording.id for recording in made), mel, lengths, wav)


def test_a_vocoder_gives_recordings_and_their_resynthesis_without_padding():
    task, batch = make_gan(), recordings(0, 1, 2)
    with eval_mode(task.networks.values()):
        samples = list(task.samples(batch))
        alone = task.networks["generator"](batch.mel[:1, :, : batch.mel_lengths[0]])[0]
    assert [sample.id for sample in samples] == ["rec-000", "rec-001", "rec-002"]
    for row, sample in enumerate(samples):
        S = int(batch.mel_lengths[row]) * HOP
        assert torch.equal(sample.audio["recorded"], batch.wav[row, :S])
        assert sample.audio["synthesised"].shape == (S,)
    assert torch.allclose(samples[0].audio["synthesised"], alone, atol=1e-5)
    # both mels are drawn in the same colours
    sample, S = samples[0], int(batch.mel_lengths[0]) * HOP
    recorded, synthesised = (panel.images[0] for panel in sample.figures["mels"]().axes)
    mel = MelSpectrogram(MEL)(batch.wav[:1, :S])[0]
    assert np.allclose(recorded.get_array(), mel, atol=1e-5)
    assert recorded.get_clim() == synthesised.get_clim()
    assert not np.allclose(recorded.get_array(), synthesised.get_array())
    assert sample.figures.keys().isdisjoint(sample.audio)  # a tracker may put both under one name


class Speaker(torch.nn.Module):
    """Gives every phone three frames."""

    def infer(self, phone_ids, phone_lengths, *, speaker_ids=None, max_frames=None):
        B, N = phone_ids.shape
        mel = torch.zeros(B, MEL.n_mels, 3 * N)
        durations = torch.full((B, N), 3)
        return TtsOutput(mel, phone_lengths * 3, durations, torch.ones(B, N), torch.ones(B, N))


def phones(*lengths) -> TtsBatch:
    N = max(lengths)
    none = torch.zeros(0)
    ids = torch.arange(1, N + 1).expand(len(lengths), N)
    names = tuple(f"utt-{n}" for n in lengths)
    frames = torch.tensor(lengths)
    return TtsBatch(names, ids, frames, torch.zeros(len(lengths)), none, none, frames, none, none)


def test_samples_have_audio_timed_phones_and_figures_that_are_drawn_on_demand(monkeypatch):
    vocabulary = arpabet_vocabulary()
    samples = list(synthesis_samples(Speaker(), phones(4, 9), Assets(MEL, vocabulary)))
    assert [sample.id for sample in samples] == ["utt-4", "utt-9"]
    assert [len(sample.audio["synthesised"]) for sample in samples] == [12 * HOP, 27 * HOP]
    labels = [text.get_text() for text in samples[0].figures["mel"]().axes[0].texts]
    assert labels == [phone.name for phone in samples[0].phones] == list(vocabulary.symbols[1:5])
    ends_s = [phone.end_s / (HOP / MEL.sample_rate) for phone in samples[0].phones]
    assert ends_s == pytest.approx([3, 6, 9, 12])

    def draw(*_positional, **_named):
        raise AssertionError

    monkeypatch.setattr("models.base.results.plot_synthesis", draw)
    list(synthesis_samples(Speaker(), phones(4), Assets(MEL, vocabulary)))


def test_samples_are_cut_off_at_three_times_the_recording_and_need_a_vocabulary():
    limits = []

    class Measured(Speaker):
        def infer(self, *positional, max_frames, **named):
            limits.append(max_frames.tolist())
            return super().infer(*positional, **named)

    list(synthesis_samples(Measured(), phones(4, 9), Assets(MEL, arpabet_vocabulary())))
    assert limits == [[12, 27]]
    with pytest.raises(InputError, match=r"no vocabulary.json"):
        list(synthesis_samples(Speaker(), phones(4), Assets(MEL)))
