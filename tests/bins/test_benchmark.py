import pytest
import torch

from bins.benchmark import _random_batch, _random_batches, main


def test_durations_of_a_random_batch_sum_to_its_frames():
    frames, phones = torch.tensor([50, 31]), torch.tensor([7, 9])
    batch = _random_batch(frames, phones)
    assert batch.durations.sum(dim=1).tolist() == [50, 31]
    assert (batch.durations > 0).sum(dim=1).tolist() == [7, 9]
    assert batch.mel.shape == (2, 80, 50)
    assert not batch.mel[1, :, 31:].any()


def test_batches_have_the_mean_size_and_lengths_of_ljspeech():
    batches = list(_random_batches(batch_size=4, count=3))
    assert len(batches) == 3
    for batch in batches:
        assert 1 <= len(batch.ids) <= 40
        assert 90 <= int(batch.mel_lengths.min()) <= int(batch.mel_lengths.max()) <= 880


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--steps", "0"], "--steps is 0, expected 1 or more"),
        (["--threads", "-1"], "--threads is -1, expected 1 or more"),
        (["--device", "tpu"], "invalid choice: 'tpu'"),
    ],
)
def test_wrong_flags_are_one_line(flags, message, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmark", *flags])
    with pytest.raises(SystemExit, match="2"):
        main()
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
