import numpy as np
import pytest
import torch

from models.base.assets import Assets
from models.base.model import TtsOutput
from models.base.results import synthesis_samples
from models.training.observing.observer import eval_mode
from modules.mel import MelSpectrogram
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.text.voice_phones import arpabet_vocabulary
from tests.models.vocoder.small_hifigan import MEL, make_gan, make_recording
from utils.errors import InputError

CPU = torch.device("cpu")
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


def test_both_mels_of_a_vocoder_are_drawn_in_the_same_colours():
    task, batch = make_gan(), recordings(0)
    with eval_mode(task.networks.values()):
        (sample,) = task.samples(batch)
    recorded, synthesised = (panel.images[0] for panel in sample.figures["mels"]().axes)
    mel = MelSpectrogram(MEL)(batch.wav)[0]

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


def test_samples_of_an_acoustic_model_have_audio_and_labelled_figures():
    vocabulary = arpabet_vocabulary()
    samples = list(synthesis_samples(Speaker(), phones(4, 9), Assets(MEL, vocabulary)))

    assert [sample.id for sample in samples] == ["utt-4", "utt-9"]
    assert [len(sample.audio["synthesised"]) for sample in samples] == [12 * HOP, 27 * HOP]
    labels = [text.get_text() for text in samples[0].figures["mel"]().axes[0].texts]
    assert labels == list(vocabulary.symbols[1:5])


def test_samples_have_timed_phones_and_figures_are_drawn_on_demand(monkeypatch):
    def draw(*_positional, **_named):
        raise AssertionError

    monkeypatch.setattr("models.base.results.plot_synthesis", draw)
    vocabulary = arpabet_vocabulary()
    (sample,) = synthesis_samples(Speaker(), phones(4), Assets(MEL, vocabulary))

    assert [phone.name for phone in sample.phones] == list(vocabulary.symbols[1:5])
    frame_s = HOP / MEL.sample_rate
    assert [phone.end_s for phone in sample.phones] == pytest.approx(
        [3 * frame_s, 6 * frame_s, 9 * frame_s, 12 * frame_s]
    )


def test_samples_are_cut_off_at_three_times_the_length_of_the_recording():
    limits = []

    class Measured(Speaker):
        def infer(self, *positional, max_frames, **named):
            limits.append(max_frames.tolist())
            return super().infer(*positional, **named)

    list(synthesis_samples(Measured(), phones(4, 9), Assets(MEL, arpabet_vocabulary())))
    assert limits == [[12, 27]]


def test_an_acoustic_model_without_a_vocabulary_is_an_input_error():
    with pytest.raises(InputError, match=r"no vocabulary.json"):
        list(synthesis_samples(Speaker(), phones(4), Assets(MEL)))
