"""Batches of random utterances, for the tests of acoustic models."""

from collections.abc import Mapping
from typing import Any

import torch

from models.base.acoustic import AcousticTask
from models.base.task import LossTerm
from modules.layers.basic import length_mask
from modules.mel import MelConfig
from modules.variance.contours import ContourStats
from processors.dataset.batch import TtsBatch

N_PHONES, N_MELS = 12, 6
MEL = MelConfig(n_mels=N_MELS, f_max=1000)  # bands in which harmonics can be seen
FLOOR = MEL.log_floor_value
PITCH = ContourStats(*torch.tensor([[200.0], [50], [80], [400]]))
ENERGY = ContourStats(*torch.tensor([[40.0], [20], [0], [120]]))
TWO_PITCHES = ContourStats(*torch.tensor([[120.0, 220], [20, 40], [70, 120], [200, 400]]))


def batch_of(phone_lengths: tuple[int, ...] = (7, 4, 6), longest_phone: int = 4) -> TtsBatch:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.tensor(phone_lengths)
    mask = length_mask(lengths)
    B, N = mask.shape
    durations = torch.randint(0, longest_phone + 1, (B, N), generator=generator) * mask
    durations[:, 0] = longest_phone
    mel_lengths = durations.sum(dim=1)
    frame_mask = length_mask(mel_lengths)
    T = frame_mask.shape[1]
    voiced = torch.rand(B, T, generator=generator) < 0.7
    mel = torch.randn(B, N_MELS, T, generator=generator)
    return TtsBatch(
        ids=tuple(f"utterance-{item}" for item in range(B)),
        phone_ids=torch.randint(1, N_PHONES, (B, N), generator=generator) * mask,
        phone_lengths=lengths,
        speaker_ids=torch.zeros(B, dtype=torch.long),
        durations=durations,
        mel=mel.masked_fill(~frame_mask[:, None], FLOOR),
        mel_lengths=mel_lengths,
        f0=(100 + 200 * torch.rand(B, T, generator=generator)) * voiced * frame_mask,
        energy=100 * torch.rand(B, T, generator=generator) * frame_mask,
    )


def assert_taught(network: Any, batch: TtsBatch, mel_hat: torch.Tensor) -> None:
    """The teacher-forced mel is this one, (B, T, M), with the log floor beyond the lengths."""
    mel = network.teacher_forced_mel(batch)
    valid = length_mask(batch.mel_lengths)[:, None].expand_as(mel)
    assert torch.equal(mel[valid], mel_hat.mT[valid])
    assert (mel[~valid] == FLOOR).all()
    assert not mel.requires_grad


def losses_of(task: AcousticTask, batch: TtsBatch) -> Mapping[str, LossTerm]:
    (update,) = task.training_step(batch)
    return update.losses


def mean_loss(task: AcousticTask, batch: TtsBatch) -> torch.Tensor:
    counts, terms = task.counts(batch), losses_of(task, batch).values()
    return sum(term.weight * term.total / counts[term.per] for term in terms)
