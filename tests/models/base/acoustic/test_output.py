import torch

from models.base.acoustic.output import TtsOutput


def output(pitch_level: str, n_frames: int) -> TtsOutput:
    """Two items of three phones; the second one has two phones of no frames and one of two."""
    return TtsOutput(
        mel=torch.zeros(2, 4, n_frames),
        mel_lengths=torch.tensor([3, 2]),
        durations=torch.tensor([[2, 0, 1], [0, 0, 2]]),
        pitch=torch.tensor([[10.0, 20, 30], [40, 50, 60]]),
        energy=torch.arange(2.0 * n_frames).view(2, n_frames),
        pitch_level=pitch_level,
        energy_level="frame",
    )


def test_values_of_a_phone_are_repeated_over_its_frames():
    # as many frames as phones: the shapes do not tell one from the other
    pitch, energy = output("phone", n_frames=3).contours_per_frame()
    assert pitch.tolist() == [[10, 10, 30], [60, 60, 0]]
    assert energy.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_pitch_of_frames_stays_as_it_is():
    pitch, _ = output("frame", n_frames=3).contours_per_frame()
    assert pitch.tolist() == [[10, 20, 30], [40, 50, 60]]
