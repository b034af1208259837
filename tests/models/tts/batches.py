"""Batches of random utterances, for the tests of acoustic models."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from config.train import CompileMode
from models.base.acoustic import AcousticTask
from models.base.task import LossTerm
from modules.layers.basic import length_mask
from modules.mel import MelConfig
from modules.variance.contours import ContourStats
from processors.dataset.batch import TtsBatch, pad_batch
from processors.dataset.sampler import Shape

N_PHONES, N_MELS = 12, 6
MEL = MelConfig(n_mels=N_MELS, f_max=1000)  # bands in which harmonics can be seen
FLOOR = MEL.log_floor_value
PITCH = ContourStats(*torch.tensor([[200.0], [50], [80], [400]]))
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


def pad(batch: TtsBatch, phones: int, frames: int) -> TtsBatch:
    """The same batch with more padding."""
    shape = Shape(batch.phone_ids.shape[1] + phones, batch.mel.shape[2] + frames)
    return pad_batch(batch, shape, FLOOR)


def losses_of(task: AcousticTask, batch: TtsBatch) -> Mapping[str, LossTerm]:
    (update,) = task.training_step(batch)
    return update.losses


def mean_loss(task: AcousticTask, batch: TtsBatch) -> torch.Tensor:
    counts, terms = task.counts(batch), losses_of(task, batch).values()
    return sum(term.weight * term.total / counts[term.per] for term in terms)


@torch.no_grad()
def check_for_inference(network: Any, batch: TtsBatch, **asked: Any) -> None:
    """Checks that `for_inference` changes no prosody, the mel in bf16 only, and in no batch.

    Args:
        network: FastSpeech 2 or FastPitch.
        batch: Of several items, the first the longest.
        asked: Controls, as of `infer`, tensors of one value per phone.
    """
    network.eval()
    exact, half = network.for_inference(), network.for_inference("bf16")
    with pytest.raises(KeyError):
        network.for_inference("int8")
    plain, spoken, rounded = (
        one.infer(batch.phone_ids, batch.phone_lengths, **asked) for one in (network, exact, half)
    )
    torch.testing.assert_close(spoken.mel, plain.mel, rtol=0, atol=1e-5)
    torch.testing.assert_close(spoken[1:5], plain[1:5], rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(rounded[1:5], spoken[1:5], rtol=0, atol=0)
    assert rounded.mel.dtype == torch.float32
    assert 0 < (rounded.mel - spoken.mel).abs().mean() < 0.01
    first = {k: v[:1] if isinstance(v, torch.Tensor) else v for k, v in asked.items()}
    for one, together, tolerance in ((exact, spoken, 1e-5), (half, rounded, 0.05)):
        alone = one.infer(batch.phone_ids[:1], batch.phone_lengths[:1], **first)
        T = int(alone.mel_lengths)
        torch.testing.assert_close(together.mel[:1, :, :T], alone.mel, rtol=0, atol=tolerance)


@torch.no_grad()
def check_compiled_for_inference(
    network: Any, mode: CompileMode, n_parts: int = 2, **asked: Any
) -> None:
    """Checks that the graphs speak what the network does, and that sizes in a bucket share them.

    Args:
        network: FastSpeech 2 or FastPitch.
        mode: "dynamic" or "buckets".
        n_parts: Graphs of a text.
        asked: Controls, as of `infer`.
    """
    compiled = network.eval().for_inference("fp32", mode)
    counts, n_graphs = torch._dynamo.utils.counters["stats"], []
    before = counts["unique_graphs"]
    for n_items, n_phones in ((3, 9), (3, 6), (3, 7), (1, 9), (1, 6)):
        ids = torch.arange(1, 1 + n_items * n_phones).view(n_items, n_phones) % 7 + 1
        lengths = torch.arange(n_phones, n_phones - n_items, -1)
        arguments = {"durations": torch.full_like(ids, 2)} | asked
        expected, spoken = (one.infer(ids, lengths, **arguments) for one in (network, compiled))
        torch.testing.assert_close(spoken[:5], expected[:5], rtol=1e-4, atol=1e-5)
        n_graphs.append(counts["unique_graphs"] - before)
    assert n_graphs == [n_parts * count for count in (1, 1, 1, 2, 2)]
