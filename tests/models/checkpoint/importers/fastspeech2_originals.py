"""FastSpeech 2 as Amphion and ming024 compute it, and small checkpoints in their formats."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from tests.models.tts.plain_fastspeech2 import PlainFastSpeech2, Sizes, Spoken, settings

SMALL = Sizes(n_layers=(2, 2), hidden=16, filter=32, n_bins=24, max_seq_len=60)
HIDDEN, SIZES = SMALL.hidden, settings(SMALL)


class Levels(NamedTuple):
    pitch: str = "phone"
    energy: str = "phone"


PHONES = Levels()


def checkpoint(n_rows: int, n_speakers: int = 0, ranges: Tensor | None = None) -> dict[str, Tensor]:
    """Random weights under the originals' names; `ranges` are those of the bins, (2, 2)."""
    torch.manual_seed(0)
    network = PlainFastSpeech2(SMALL._replace(n_symbols=n_rows, n_speakers=n_speakers))
    tensors = network.state_dict()
    for name, tensor in tensors.items():
        if name.endswith("_emb.weight") or name.endswith("_embedding.weight"):
            tensor.normal_()
        elif name.endswith("running_var"):
            tensor.uniform_(0.5, 1.5)
        elif name.endswith("num_batches_tracked"):
            tensor.fill_(7)
        elif name.endswith("weight") and tensor.ndim == 1:
            tensor.uniform_(0.8, 1.2)
        elif name.endswith("weight"):
            tensor.normal_(std=tensor[0].numel() ** -0.5)
        elif name.endswith(("bias", "running_mean")):
            tensor.normal_(std=0.1)
    # about six frames, and never none at all: the originals fail where there is nothing to say
    tensors["variance_adaptor.duration_predictor.linear_layer.weight"] *= 0.4
    tensors["variance_adaptor.duration_predictor.linear_layer.bias"].fill_(math.log(6))
    ranges = torch.tensor([[-2.0, 3.0], [-1.5, 2.5]]) if ranges is None else ranges
    for name, (low, high) in zip(("pitch", "energy"), ranges, strict=True):
        tensors[f"variance_adaptor.{name}_bins"] = torch.linspace(low, high, SMALL.n_bins - 1)
    return tensors


def without_postnet(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors for refusals: the 4 million weights of the postnet take time."""
    return {name: t for name, t in tensors.items() if not name.startswith("postnet.")}


@torch.no_grad()
def synthesise(
    tensors: dict[str, Tensor], ids: list[int], speaker: int | None = None, levels: Levels = PHONES
) -> Spoken:
    """One utterance, all controls 1."""
    n_symbols = len(tensors["encoder.src_word_emb.weight"])
    n_speakers = len(tensors.get("speaker_emb.weight", ()))
    with torch.device("meta"):  # random weights of the postnet would take time
        network = PlainFastSpeech2(SMALL._replace(n_symbols=n_symbols, n_speakers=n_speakers))
    network.eval().load_state_dict(tensors, assign=True)
    per_frame = [name for name, level in levels._asdict().items() if level == "frame"]
    return network.speak(torch.tensor([ids]), speaker, per_frame)


def check_spoken(texts, model, tensors, speaker=None, levels=PHONES):
    """Durations exactly and the mel to 1e-4, for every text."""
    for text in texts:
        ids = model.vocabulary.ids(text.split())
        expected = synthesise(tensors, ids, speaker, levels)
        out = model.network.infer(
            torch.tensor([ids]), torch.tensor([len(ids)]), speaker_ids=torch.tensor([speaker or 0])
        )
        assert out.durations[0].tolist() == expected.durations[0].tolist()
        torch.testing.assert_close(out.mel, expected.mel, rtol=0, atol=1e-4)
