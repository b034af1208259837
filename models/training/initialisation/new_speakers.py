"""New speakers for a trained voice whose other speakers stay as they are, bit for bit."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from models.base.assets import Assets
from models.training.initialisation.finetune import Transfer, tensors_of
from modules.layers.embedding import SpeakerEmbedding
from modules.layers.postnet import MaskedBatchNorm
from modules.variance.contour import SpeakerNorm
from utils.errors import InputError, listed


def extend_assets(voice: Assets, data: Assets) -> Assets:
    """Adds the speakers of the training data to the assets of a voice.

    Args:
        voice: Assets of the trained voice; its speakers keep their ids.

    Raises:
        InputError: If mels or phones differ, or a speaker is in both.
    """
    if different := voice.mel.differences(data.mel):
        raise InputError(
            f"train.trained=speakers: the voice has another mel: {', '.join(different)} (voice and"
            " data); run stage 1 with the voice's preprocess section"
        )
    vocabulary = voice.required_vocabulary()
    if unknown := sorted((data.trained_phones or frozenset()) - set(vocabulary.symbols)):
        raise InputError(
            f"train.trained=speakers: the voice has no phones {' '.join(unknown)}; run stage 1 with"
            " its preprocess.text section, or train all weights (train.trained=all)"
        )
    names = {speaker.name for speaker in voice.speakers}
    if present := [speaker.name for speaker in data.speakers if speaker.name in names]:
        raise InputError(
            f"train.trained=speakers: {', '.join(present)} is a speaker of the voice already; give"
            " the new speaker another name (preprocess.corpus.<dataset>.speaker)"
        )
    if voice.stats is None or data.stats is None:
        raise InputError("train.trained=speakers: the voice has no statistics of its speakers")
    return replace(
        voice,
        speakers=(*voice.speakers, *data.speakers),
        stats=voice.stats.merge(data.stats),
        trained_phones=data.trained_phones,
    )


def check_whole(network: nn.Module, transfer: Transfer) -> None:
    """Makes sure that a network has the weights of a voice and nothing else, but for speakers.

    Raises:
        InputError: If a tensor that will not be trained is only in the network or in the voice.
    """
    of_speakers = tensors_of(network, SpeakerEmbedding) + tensors_of(network, SpeakerNorm)
    kept = network.state_dict().keys() - set(of_speakers)
    new = [name for name in transfer.new if name.partition(": ")[0] in kept]
    faults = [
        f"only in {place}: {listed(names)}"
        for place, names in (("this config", new), ("the voice", transfer.dropped))
        if names
    ]
    if faults:
        raise InputError(
            f"train.trained=speakers: the network is not that of the voice ({'; '.join(faults)});"
            " use the model section of its config.json"
        )


@torch.no_grad()
def begin_at_mean(network: nn.Module, transfer: Transfer) -> None:
    """Gives new speakers the mean embedding of those that were copied.

    Without an embedding in the voice, which had one speaker, all rows become 0: adding it changes
    nothing.
    """
    for name, parameter in _rows_of_speakers(network).items():
        copied = sum(row.startswith(f"{name}: ") for row in transfer.reused)
        parameter[copied:] = parameter[:copied].mean(dim=0) if copied else 0


def train_only_speakers(network: nn.Module, trained: Tensor) -> None:
    """Freezes all weights but the rows of some speakers, and running statistics.

    The gradient of the other rows is 0, for which Adam without weight decay leaves them as they
    are, bit for bit.

    Args:
        network: With a `SpeakerEmbedding`.
        trained: (n_speakers,) bool, True for the rows that learn.
    """
    rows = _rows_of_speakers(network)
    for name, parameter in network.named_parameters():
        parameter.requires_grad = name in rows
    for parameter in rows.values():
        kept = trained.to(parameter.device).view(-1, *[1] * (parameter.dim() - 1))
        parameter.register_hook(lambda gradient, kept=kept: gradient * kept.to(gradient.device))
    for module in network.modules():
        if isinstance(module, MaskedBatchNorm):
            module.momentum = 0.0


def _rows_of_speakers(network: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters with a row for each speaker."""
    names = tensors_of(network, SpeakerEmbedding)
    return {name: p for name, p in network.named_parameters() if name in names}
