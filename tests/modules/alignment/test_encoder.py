import copy
import math
from itertools import groupby, product
from typing import NamedTuple

import pytest
import torch
from scipy.stats import betabinom
from torch import Tensor, nn
from torch.nn import functional as F

from modules.alignment.encoder import (
    PRIOR_FLOOR,
    AlignmentEncoder,
    beta_binomial_log_prior,
    binarization_sum,
    forward_sum,
)
from modules.alignment.search import monotonic_durations
from modules.layers.basic import length_mask
from modules.variance.adaptor import regulate
from tests.modules.alignments import all_durations, log_likelihood, random_batch

H, M = 12, 6
# `attention.` of NVIDIA's FastPitch 1.1, where the first kernel is 3 and attn_proj is not used
PUBLISHED = {
    "key_proj.0": (768, 384, 1),
    "key_proj.2": (80, 768, 1),
    "query_proj.0": (160, 80, 3),
    "query_proj.2": (80, 160, 1),
    "query_proj.4": (80, 80, 1),
}


def small_encoder(temperature: float = 0.1) -> AlignmentEncoder:
    torch.manual_seed(0)
    return AlignmentEncoder(H, M, attention_channels=8, temperature=temperature)


def small_batch():
    torch.manual_seed(1)
    lengths = torch.tensor([4, 7]), torch.tensor([15, 11])
    return torch.randn(2, 7, H), torch.randn(2, 15, M) - 5, *lengths


def test_names_and_shapes_are_the_published_ones_but_for_the_first_kernel():
    encoder = AlignmentEncoder(384, 80, 80, 0.0005)
    shapes = {name: tuple(tensor.shape) for name, tensor in encoder.state_dict().items()}
    expected = {f"{layer}.conv.weight": shape for layer, shape in PUBLISHED.items()}
    assert shapes == expected | {f"{layer}.conv.bias": (n,) for layer, (n, *_) in PUBLISHED.items()}


def test_saving_and_loading_changes_nothing():
    encoder, batch = small_encoder(), small_batch()
    loaded = AlignmentEncoder(H, M, attention_channels=8, temperature=0.1)
    loaded.load_state_dict(encoder.state_dict())
    torch.testing.assert_close(loaded(*batch), encoder(*batch), rtol=0, atol=0)


def test_log_attention_is_the_softmax_of_distances():
    encoder = small_encoder()
    phones, mel = torch.randn(1, 5, H), torch.randn(1, 9, M)
    tensors = encoder.state_dict()

    def convolve(signal, layer):
        weight, bias = tensors[f"{layer}.conv.weight"], tensors[f"{layer}.conv.bias"]
        return F.conv1d(signal, weight, bias, padding=weight.shape[2] // 2)

    keys = convolve(convolve(phones.mT, "key_proj.0").relu(), "key_proj.2")  # (1, C, N)
    queries = convolve(convolve(mel.mT, "query_proj.0").relu(), "query_proj.2")
    queries = convolve(queries.relu(), "query_proj.4")  # (1, C, T)
    distances = (queries[:, :, :, None] - keys[:, :, None]).square().sum(dim=1)  # (1, T, N)
    lengths = torch.tensor([5]), torch.tensor([9])
    expected = (-0.1 * distances).softmax(dim=2)
    torch.testing.assert_close(encoder(phones, mel, *lengths).exp(), expected)


def test_phones_do_not_see_their_neighbours():
    encoder, batch = small_encoder(), small_batch()
    before = encoder(*batch)
    batch[0][1, 3] += 1  # phone 3 of the second item
    after = encoder(*batch)
    # the odds of two others stay, a change of the third concerns all
    odds = [log_attention[1, :, 2] - log_attention[1, :, 4] for log_attention in (before, after)]
    torch.testing.assert_close(*odds)
    assert not torch.allclose(before[1, :11, 3], after[1, :11, 3])


def test_more_padding_does_not_change_valid_positions():
    encoder = small_encoder()
    phones, mel, *lengths = small_batch()
    longer = F.pad(phones, (0, 0, 0, 3), value=1e3), F.pad(mel, (0, 0, 0, 4), value=-11.5)
    together = encoder(phones, mel, *lengths)
    padded = encoder(*longer, *lengths)
    for item, (N, T) in enumerate(zip(*[length.tolist() for length in lengths], strict=True)):
        part = slice(item, item + 1)
        own_lengths = (length[part] for length in lengths)
        alone = encoder(phones[part, :N], mel[part, :T], *own_lengths)
        torch.testing.assert_close(together[item, :T, :N], alone[0])
        torch.testing.assert_close(padded[item, :T, :N], alone[0])
        assert (padded[item, :, N:] == -math.inf).all()
        assert padded[item, :, :N].isfinite().all()


def test_the_speaker_is_added_to_its_phones():
    encoder = small_encoder()
    phones, mel, *lengths = small_batch()
    speakers = torch.randn(2, H)
    given = encoder(phones, mel, *lengths, speakers=speakers)
    torch.testing.assert_close(given, encoder(phones + speakers[:, None], mel, *lengths))
    assert not torch.allclose(given[1, 0], encoder(phones, mel, *lengths)[1, 0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_parameter_gets_a_finite_gradient(dtype):
    encoder = small_encoder(temperature=0.0005)
    phones, mel, *lengths = small_batch()
    phones.requires_grad_()
    log_prior = beta_binomial_log_prior(*lengths, 7, 15)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
        log_attention = encoder(phones, mel, *lengths) + log_prior
    assert log_attention.dtype == torch.float32
    durations = monotonic_durations(log_attention, *lengths)
    loss = forward_sum(log_attention, *lengths).sum()
    loss = loss + binarization_sum(log_attention, durations)
    loss.backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name
    assert (phones.grad[0, 4:] == 0).all()


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


class SyntheticSpeech(NamedTuple):
    """Mels of phones with a sound each; no two neighbours are alike."""

    phone_ids: Tensor  # (B, N)
    mel: Tensor  # (B, T, M)
    phone_lengths: Tensor
    mel_lengths: Tensor
    durations: Tensor  # (B, N)


def synthetic_speech(n_items: int, *, gliding: bool = False) -> SyntheticSpeech:
    """Of 12 phones in 20 bands; gliding, sounds change evenly between the middles of phones."""
    generator = torch.Generator().manual_seed(0)
    sounds = 2 * torch.randn(13, 20, generator=generator) - 5
    phone_lengths = torch.randint(12, 20, (n_items,), generator=generator)
    mask = length_mask(phone_lengths)  # (B, N)
    hops = torch.randint(1, 12, mask.shape, generator=generator)
    phone_ids = (hops.cumsum(dim=1) % 12 + 1) * mask
    durations = torch.randint(2, 13, mask.shape, generator=generator) * mask
    frames = regulate(sounds[phone_ids], durations)  # (B, T, M)
    if gliding:
        items = zip(phone_ids, durations, phone_lengths, strict=True)
        T = frames.shape[1]
        frames = torch.stack([glide(sounds[ids[:N]], lasting[:N], T) for ids, lasting, N in items])
    mel = frames + 0.3 * torch.randn(frames.shape, generator=generator)
    return SyntheticSpeech(phone_ids, mel, phone_lengths, durations.sum(dim=1), durations)


def glide(sounds: Tensor, durations: Tensor, n_frames: int) -> Tensor:
    """Sounds (N, M) in their middles, and even changes between: (T, M)."""
    middles = durations.cumsum(dim=0) - durations / 2
    times = torch.arange(n_frames) + 0.5
    later = torch.searchsorted(middles, times).clamp(1, len(middles) - 1)
    share = ((times - middles[later - 1]) / (middles[later] - middles[later - 1])).clamp(0, 1)
    return torch.lerp(sounds[later - 1], sounds[later], share[:, None])


class Training(nn.Module):
    """An alignment encoder and its phones, trained on the same speech in every update."""

    def __init__(self, speech: SyntheticSpeech) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.speech = speech
        self.lengths = speech.phone_lengths, speech.mel_lengths
        self.embedding = nn.Embedding(13, 32, padding_idx=0)
        self.encoder = AlignmentEncoder(32, 20, 16, 0.0005)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        N, T = speech.phone_ids.shape[1], speech.mel.shape[1]
        self.log_prior = beta_binomial_log_prior(*self.lengths, N, T)

    def attend(self, *, guided: bool) -> Tensor:
        """Log-attention (B, T, N), with or without the prior."""
        phones = self.embedding(self.speech.phone_ids)
        return self.encoder(phones, self.speech.mel, *self.lengths) + guided * self.log_prior

    def learn(self, n_updates: int, *, guided: bool, binarize: bool = False) -> None:
        """Trains with the forward-sum loss, and with the binarisation loss if asked to."""
        for _ in range(n_updates):
            log_attention = self.attend(guided=guided)
            loss = forward_sum(log_attention, *self.lengths).sum() / self.lengths[1].sum()
            if binarize:
                found = monotonic_durations(log_attention, *self.lengths)
                loss = loss + binarization_sum(log_attention, found) / self.lengths[1].sum()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def errors(self) -> Tensor:
        """Frames by which the boundaries between phones are late, without the prior."""
        found = monotonic_durations(self.attend(guided=False), *self.lengths)
        late = (found.cumsum(dim=1) - self.speech.durations.cumsum(dim=1)).float()
        return late[length_mask(self.speech.phone_lengths - 1, late.shape[1])]

    def uncertainty(self) -> float:
        """Nats per frame that the attention with the prior is away from the truth."""
        with torch.no_grad():
            distance = binarization_sum(self.attend(guided=True), self.speech.durations)
        return float(distance / self.lengths[1].sum())


def test_durations_are_learnt_from_a_flat_start_and_binarization_makes_the_attention_certain():
    start = Training(synthetic_speech(12))
    start.learn(50, guided=True)
    training, guided, binarized = (copy.deepcopy(start) for _ in range(3))
    training.learn(50, guided=False)
    errors = training.errors()
    assert errors.abs().max() <= 1
    assert abs(float(errors.mean())) < 0.1
    guided.learn(50, guided=True)
    binarized.learn(50, guided=True, binarize=True)
    assert binarized.uncertainty() < 0.7 * guided.uncertainty()
    assert binarized.errors().abs().max() <= 1


def test_boundaries_do_not_slide_where_sounds_change_slowly():
    training = Training(synthetic_speech(6, gliding=True))
    training.learn(50, guided=True)
    training.learn(50, guided=False)
    late = training.errors()
    assert late.abs().median() <= 1
    assert abs(float(late.mean())) < 0.2


SIZES = [(1, 1), (1, 4), (3, 3), (2, 6), (4, 6)]  # phones, frames
NO_BLANK = -1e9


def cost_of_all(log_attention, phone_lengths, mel_lengths, blank_logit=-1.0):
    """Negative log-likelihood of all ways through each item, one by one, (B,).

    A way says for every frame how many phones have begun, and whether it is a blank.
    """
    costs = []
    for item, N, T in zip(log_attention, phone_lengths.tolist(), mel_lengths.tolist(), strict=True):
        blanks = torch.full((T, 1), blank_logit)
        frames = torch.cat([blanks, item[:T, :N]], dim=1).log_softmax(dim=1)  # (T, 1 + N)
        ways = [
            frames[torch.arange(T), torch.tensor(labels)].sum()
            for labels in product(range(N + 1), repeat=T)
            if [label for label, _ in groupby(labels) if label] == list(range(1, N + 1))
        ]
        costs.append(-torch.stack(ways).logsumexp(dim=0))
    return torch.stack(costs)


def cost_of_alignments(log_attention, phone_lengths, mel_lengths):
    """As above, of the ways without blanks; what they are is written elsewhere."""
    costs = []
    for item, N, T in zip(log_attention, phone_lengths, mel_lengths, strict=True):
        ways = [log_likelihood(item, durations) for durations in all_durations(int(N), int(T))]
        costs.append(-torch.stack(ways).logsumexp(dim=0))
    return torch.stack(costs)


def test_forward_sum_adds_up_all_alignments():
    batch = random_batch([*SIZES, (5, 8), (2, 9)])
    torch.testing.assert_close(forward_sum(*batch, NO_BLANK), cost_of_alignments(*batch))
    # an even attention costs the logarithm of the phones less that of the alignments
    even = torch.full((1, 40, 3), 1 / 3).log()
    n_alignments = 39 * 38 / 2  # places of two borders among 39
    loss = forward_sum(even, torch.tensor([3]), torch.tensor([40]), NO_BLANK)
    assert float(loss) == pytest.approx(40 * math.log(3) - math.log(n_alignments))


@pytest.mark.parametrize("blank_logit", [-1.0, 2.0, NO_BLANK])
def test_blanks_may_stand_anywhere(blank_logit):
    batch = random_batch(SIZES)
    expected = cost_of_all(*batch, blank_logit)
    torch.testing.assert_close(forward_sum(*batch, blank_logit), expected)


@pytest.mark.parametrize("blank_logit", [-1.0, NO_BLANK])
def test_gradients_are_those_of_all_alignments_and_zero_for_padding(blank_logit):
    log_attention, *lengths = random_batch(SIZES)
    gradients = []
    for cost in (forward_sum, cost_of_all):
        given = log_attention.clone().requires_grad_()
        cost(given, *lengths, blank_logit).sum().backward()
        gradients.append(given.grad)
    given, expected = gradients
    torch.testing.assert_close(given, expected, rtol=1e-4, atol=1e-6)
    for gradient, N, T in zip(given, *lengths, strict=True):
        assert (gradient[T:] == 0).all()
        assert (gradient[:, N:] == 0).all()


def test_long_items_in_half_precision_have_the_loss_of_single_precision_and_finite_gradients():
    log_attention, *lengths = random_batch([(150, 800), (20, 90)], padding=0)
    half = log_attention.bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = forward_sum(half, *lengths)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, forward_sum(half.float(), *lengths))
    log_attention[0, 2, 1] = -torch.inf  # an impossible frame
    forward_sum(log_attention.requires_grad_(), *lengths).sum().backward()
    assert log_attention.grad.isfinite().all()


@pytest.mark.parametrize("align", [forward_sum, monotonic_durations])
def test_items_that_cannot_be_aligned_are_refused(align):
    for sizes, found in (([(3, 4), (5, 4)], "item 1 has 5"), ([(0, 4)], "item 0 has 0")):
        with pytest.raises(ValueError, match=f"{found} phones and 4 frames"):
            align(torch.zeros(len(sizes), 4, 5), *torch.tensor(sizes).T)


def test_binarization_is_the_cost_of_the_hard_alignment_without_gradients_in_padding():
    log_attention, phone_lengths, _ = random_batch([(3, 6), (2, 8)])
    durations = torch.tensor([[1, 3, 2, 0, 0], [7, 1, 0, 0, 0]])
    expected = -sum(
        log_likelihood(item, tuple(given[:N].tolist()))
        for item, given, N in zip(log_attention, durations, phone_lengths, strict=True)
    )
    torch.testing.assert_close(binarization_sum(log_attention, durations), expected)
    louder = log_attention + torch.randn(2, 10, 1)
    torch.testing.assert_close(binarization_sum(louder, durations), expected)
    binarization_sum(log_attention.requires_grad_(), durations).backward()
    assert log_attention.grad.isfinite().all()
    assert log_attention.grad[0].abs().sum(dim=1).bool().tolist() == [True] * 6 + [False] * 4
    assert (log_attention.grad[0, :, 3:] == 0).all()
