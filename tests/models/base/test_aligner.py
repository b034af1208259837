import pytest
import torch

from models.base.aligner import JointAligner, JointAlignerConfig
from models.base.assets import Assets
from modules.mel import MelConfig
from processors.dataset.batch import TtsBatch, TtsItem, collate
from processors.text.voice_phones import Vocabulary

N_PHONES, N_MELS = 9, 12
FLOOR = MelConfig().log_floor_value
SMALL = JointAlignerConfig(
    hidden=24, attention_channels=16, temperature=0.01, prior_end=60, binarization_weight=1.0
)


def spoken(number: int, n_phones: int) -> TtsItem:
    """An utterance in which each phone has a spectrum of its own."""
    generator = torch.Generator().manual_seed(number)
    spectra = 3 * torch.randn(N_PHONES, N_MELS, generator=torch.Generator().manual_seed(99))
    phones = torch.randint(1, N_PHONES, (n_phones,), generator=generator)
    phones[1:][phones[1:] == phones[:-1]] = 0  # neighbours of one sound have no boundary
    phones = torch.where(phones == 0, torch.roll(phones, 1) % (N_PHONES - 1) + 1, phones)
    durations = torch.randint(2, 9, (n_phones,), generator=generator)
    mel = spectra[phones].repeat_interleave(durations, dim=0).T  # (M, T)
    T = mel.shape[1]
    noise = 0.3 * torch.randn(N_MELS, T, generator=generator)
    f0, energy = torch.full((T,), 150.0), torch.ones(T)
    return TtsItem(f"utt-{number}", phones, number % 2, durations, mel + noise, f0, energy)


def batch_of(numbers: range) -> TtsBatch:
    return collate([spoken(number, 6 + number % 5) for number in numbers], FLOOR)


def network_of(n_speakers: int = 1) -> JointAligner:
    torch.manual_seed(0)
    return JointAligner(SMALL, N_PHONES, N_MELS, n_speakers)


def mean_loss(aligner: JointAligner, batch: TtsBatch) -> torch.Tensor:
    _, losses = aligner.align(batch)
    frames = batch.mel_lengths.sum()
    return sum(term.weight * term.total / frames for term in losses.values())


@pytest.fixture(scope="module")
def trained() -> JointAligner:
    """100 updates of 6 utterances."""
    network = network_of()
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    batches = [batch_of(range(first, first + 6))._replace(durations=None) for first in (0, 6, 12)]
    for step in range(100):
        network.begin_update(step)
        optimizer.zero_grad()
        mean_loss(network, batches[step % 3]).backward()
        optimizer.step()
    return network.eval()


def test_durations_are_found_in_speech_that_was_not_trained_on_in_batches_as_alone(trained):
    batch = batch_of(range(200, 220))
    found = trained.find_durations(batch._replace(durations=None))
    assert torch.equal(found.sum(dim=1), batch.mel_lengths)
    onsets = (found.cumsum(dim=1) - batch.durations.cumsum(dim=1)).abs().float()
    valid = torch.arange(found.shape[1]) < batch.phone_lengths[:, None] - 1
    assert (onsets[valid] <= 1).float().mean() > 0.95  # frames
    for item, number in enumerate(range(200, 206)):
        alone = trained.find_durations(batch_of(range(number, number + 1)))
        N = alone.shape[1]
        assert found[item, :N].tolist() == alone[0].tolist()
        assert not found[item, N:].any()


def test_losses_of_a_batch_are_the_sums_of_its_items_losses():
    aligner = network_of()
    aligner.begin_update(9000)
    parts = [batch_of(range(number, number + 1)) for number in range(3)]
    alone = [aligner.align(part)[1] for part in parts]
    _, together = aligner.align(batch_of(range(3)))
    for name, term in together.items():
        torch.testing.assert_close(term.total, sum(part[name].total for part in alone))
        assert term.per == "frames"


def test_every_parameter_gets_a_gradient_and_speakers_differ():
    network = network_of(n_speakers=2)
    batch = batch_of(range(4))
    mean_loss(network, batch).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad.abs().sum() > 0, name
    other = batch._replace(speaker_ids=1 - batch.speaker_ids)
    first, second = (network(*b[1:4], b.mel, b.mel_lengths) for b in (batch, other))
    assert not torch.allclose(first, second)


def test_its_sizes_are_those_of_the_voice():
    assets = Assets(MelConfig(n_mels=20), Vocabulary(("<pad>", "<sil>", "A")))
    network = JointAligner.build(SMALL, assets)
    assert network.phone_keys.num_embeddings == 3
    assert network.speaker_keys is None


def test_the_binarization_loss_begins_late_and_rises():
    def config(*numbers: float) -> JointAlignerConfig:
        keys = (f"binarization_{name}" for name in ("weight", "start", "warmup"))
        return JointAlignerConfig(**dict(zip(keys, numbers, strict=True)))

    weights = [config(0.8, 100, 4).binarization_at(step) for step in (0, 99, 100, 101, 103, 500)]
    assert weights == pytest.approx([0, 0, 0.2, 0.4, 0.8, 0.8])
    assert config(1.0, 0, 0).binarization_at(0) == 1


def test_attention_and_losses_are_float32_under_autocast(trained):
    batch = batch_of(range(4))
    exact = trained.find_durations(batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        log_attention = trained(*batch[1:4], batch.mel, batch.mel_lengths)
        trained.begin_update(0)
        found, losses = trained.align(batch)
    assert log_attention.dtype == torch.float32
    assert {term.total.dtype for term in losses.values()} == {torch.float32}
    assert ((found - exact).abs() <= 1).float().mean() > 0.9
