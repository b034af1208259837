import torch

from modules.mel_discriminator import MelDiscriminator


def test_scores_are_of_patches_of_the_window():
    network = MelDiscriminator((4, 4, 8, 8))
    output = network(torch.randn(3, 80, 128))
    assert output.score.shape == (3, 5 * 16)  # an eighth of the frames, a sixteenth of the bands
    assert output.feature_distance == 0


def test_features_of_the_same_mel_have_no_distance():
    torch.manual_seed(0)
    network = MelDiscriminator((4, 4, 8, 8))
    mel = torch.randn(2, 80, 64)
    assert network(mel, mel).feature_distance == 0
    assert network(mel, mel + 0.1 * torch.randn_like(mel)).feature_distance > 0


def test_it_learns_to_tell_smooth_from_rough():
    torch.manual_seed(0)
    network = MelDiscriminator((8, 8, 16, 16))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(60):
        rough = torch.randn(8, 80, 64)
        smooth = torch.nn.functional.avg_pool1d(rough, 5, 1, 2)
        loss = (1 - network(rough).score).square().mean() + network(smooth).score.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    rough = torch.randn(8, 80, 64)
    smooth = torch.nn.functional.avg_pool1d(rough, 5, 1, 2)
    assert network(rough).score.mean() > 0.8
    assert network(smooth).score.mean() < 0.2
