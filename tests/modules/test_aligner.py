import math

import pytest
import torch
from scipy.stats import betabinom
from torch import nn
from torch.nn import functional as F

from modules.aligner import PRIOR_FLOOR, Aligner, beta_binomial_log_prior
from modules.aligner_losses import binarization_sum, forward_sum_loss
from modules.aligner_search import monotonic_durations
from modules.length_regulator import regulate
from modules.masking import length_mask

H, M = 12, 6
# `attention.` of NVIDIA's FastPitch 1.1 at its own sizes; attn_proj is not used there
PUBLISHED = {
    "key_proj.0.conv.weight": (768, 384, 3),
    "key_proj.0.conv.bias": (768,),
    "key_proj.2.conv.weight": (80, 768, 1),
    "key_proj.2.conv.bias": (80,),
    "query_proj.0.conv.weight": (160, 80, 3),
    "query_proj.0.conv.bias": (160,),
    "query_proj.2.conv.weight": (80, 160, 1),
    "query_proj.2.conv.bias": (80,),
    "query_proj.4.conv.weight": (80, 80, 1),
    "query_proj.4.conv.bias": (80,),
}


def small_aligner(**options) -> Aligner:
    torch.manual_seed(0)
    return Aligner(H, M, attention_channels=8, **options)


def small_batch():
    torch.manual_seed(1)
    phone_lengths, mel_lengths = torch.tensor([4, 7]), torch.tensor([15, 11])
    return torch.randn(2, 7, H), torch.randn(2, 15, M) - 5, phone_lengths, mel_lengths


def test_names_and_shapes_are_those_of_the_published_checkpoints():
    shapes = {name: tuple(tensor.shape) for name, tensor in Aligner(384).state_dict().items()}
    assert shapes == PUBLISHED


def test_log_attention_is_the_softmax_of_distances():
    aligner = small_aligner(temperature=0.1)
    phones, mel = torch.randn(1, 5, H), torch.randn(1, 9, M)
    tensors = aligner.state_dict()

    def convolve(signal, layer):
        weight, bias = tensors[f"{layer}.conv.weight"], tensors[f"{layer}.conv.bias"]
        return F.conv1d(signal, weight, bias, padding=weight.shape[2] // 2)

    keys = convolve(convolve(phones.mT, "key_proj.0").relu(), "key_proj.2")  # (1, C, N)
    queries = convolve(convolve(mel.mT, "query_proj.0").relu(), "query_proj.2")
    queries = convolve(queries.relu(), "query_proj.4")  # (1, C, T)
    distances = (queries[:, :, :, None] - keys[:, :, None]).square().sum(dim=1)  # (1, T, N)
    prior = torch.rand(1, 9, 5)
    lengths = torch.tensor([5]), torch.tensor([9])
    expected = (-0.1 * distances).softmax(dim=2)
    torch.testing.assert_close(aligner(phones, mel, *lengths).exp(), expected)
    given = aligner(phones, mel, *lengths, log_prior=prior.log()).exp()
    torch.testing.assert_close(given, expected * prior)


def test_more_padding_does_not_change_valid_positions():
    aligner = small_aligner(temperature=0.1)
    phones, mel, *lengths = small_batch()
    longer = F.pad(phones, (0, 0, 0, 3), value=1e3), F.pad(mel, (0, 0, 0, 4), value=-11.5)
    together = aligner(phones, mel, *lengths)
    padded = aligner(*longer, *lengths)
    for item, (N, T) in enumerate(zip(*[length.tolist() for length in lengths], strict=True)):
        alone = aligner(
            phones[item : item + 1, :N],
            mel[item : item + 1, :T],
            torch.tensor([N]),
            torch.tensor([T]),
        )
        torch.testing.assert_close(together[item, :T, :N], alone[0])
        torch.testing.assert_close(padded[item, :T, :N], alone[0])
        assert (padded[item, :, N:] == -math.inf).all()
        assert padded[item, :, :N].isfinite().all()


def test_the_speaker_is_added_to_its_phones():
    aligner = small_aligner(temperature=0.1)
    phones, mel, *lengths = small_batch()
    speakers = torch.randn(2, H)
    given = aligner(phones, mel, *lengths, speakers=speakers)
    torch.testing.assert_close(given, aligner(phones + speakers[:, None], mel, *lengths))
    assert not torch.allclose(given[1, 0], aligner(phones, mel, *lengths)[1, 0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_parameter_gets_a_finite_gradient(dtype):
    aligner = small_aligner()
    phones, mel, *lengths = small_batch()
    phones.requires_grad_()
    log_prior = beta_binomial_log_prior(*lengths, 7, 15)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
        log_attention = aligner(phones, mel, *lengths, log_prior=log_prior)
    assert log_attention.dtype == torch.float32
    durations = monotonic_durations(log_attention, *lengths)
    loss = forward_sum_loss(log_attention, *lengths) + binarization_sum(log_attention, durations)
    loss.backward()
    for name, parameter in aligner.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name
    assert (phones.grad[0, 4:] == 0).all()


def test_saving_and_loading_changes_nothing(tmp_path):
    aligner, batch = small_aligner(temperature=0.1), small_batch()
    torch.save(aligner.state_dict(), tmp_path / "aligner.pt")
    loaded = Aligner(H, M, attention_channels=8, temperature=0.1)
    loaded.load_state_dict(torch.load(tmp_path / "aligner.pt"))
    torch.testing.assert_close(loaded(*batch), aligner(*batch), rtol=0, atol=0)


@pytest.mark.parametrize("scale", [1.0, 0.5, 3.0])
def test_prior_is_scipys_beta_binomial(scale):
    sizes = [(1, 1), (1, 9), (6, 6), (40, 301)]
    phone_lengths, mel_lengths = torch.tensor(sizes).T
    given = beta_binomial_log_prior(phone_lengths, mel_lengths, 43, 305, scale)
    for item, (N, T) in enumerate(sizes):
        for t in range(1, T + 1):
            expected = betabinom.pmf(range(N), N - 1, scale * t, scale * (T + 1 - t)) + PRIOR_FLOOR
            torch.testing.assert_close(
                given[item, t - 1, :N].double().exp(), torch.tensor(expected), rtol=1e-5, atol=0
            )
        assert (given[item, T:] == 0).all()
        assert (given[item, :, N:] == 0).all()


def test_prior_of_an_utterance_of_ten_minutes_is_a_distribution():
    prior = beta_binomial_log_prior(torch.tensor([700]), torch.tensor([5000]), 700, 5000).exp()
    torch.testing.assert_close(prior.sum(dim=2), torch.ones(1, 5000), rtol=1e-4, atol=0)


def synthetic_speech(n_items: int, n_phones: int, n_mels: int):
    """Mels of phones with a sound each; no two neighbours are alike.

    Returns phone_ids (B, N), mel (B, T, M), phone_lengths, mel_lengths and durations (B, N).
    """
    generator = torch.Generator().manual_seed(0)
    sounds = 2 * torch.randn(n_phones + 1, n_mels, generator=generator) - 5
    phone_lengths = torch.randint(12, 20, (n_items,), generator=generator)
    mask = length_mask(phone_lengths)  # (B, N)
    hops = torch.randint(1, n_phones, mask.shape, generator=generator)
    phone_ids = (hops.cumsum(dim=1) % n_phones + 1) * mask
    durations = torch.randint(2, 13, mask.shape, generator=generator) * mask
    mel_lengths = durations.sum(dim=1)
    frames = regulate(sounds[phone_ids], durations)  # (B, T, M)
    mel = frames + 0.3 * torch.randn(frames.shape, generator=generator)
    return phone_ids, mel, phone_lengths, mel_lengths, durations


def test_durations_are_learnt_from_a_flat_start():
    phone_ids, mel, *lengths, durations = synthetic_speech(40, n_phones=12, n_mels=20)
    torch.manual_seed(0)
    embedding, aligner = nn.Embedding(13, 32, padding_idx=0), Aligner(32, 20, attention_channels=16)
    optimizer = torch.optim.Adam([*embedding.parameters(), *aligner.parameters()], lr=1e-2)
    log_prior = beta_binomial_log_prior(*lengths, phone_ids.shape[1], mel.shape[1])
    n_frames = lengths[1].sum()
    for update in range(120):
        log_attention = aligner(embedding(phone_ids), mel, *lengths, log_prior=log_prior)
        loss = forward_sum_loss(log_attention, *lengths)
        if update >= 60:
            found = monotonic_durations(log_attention, *lengths)
            loss = loss + binarization_sum(log_attention, found) / n_frames
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    differences = (found.cumsum(dim=1) - durations.cumsum(dim=1)).abs()
    assert differences.max() <= 1
    certainty = binarization_sum(log_attention.detach(), durations) / n_frames
    assert certainty < 0.2
