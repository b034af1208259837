"""Mels of passages of text, by any acoustic model."""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from config.schema import Config, InferenceConfig
from models.base.acoustic.output import Control
from models.base.compilers import require_compiler
from models.base.interfaces import AcousticModel
from models.checkpoint.loading import LoadedModel
from models.synthesizer.acoustic.retries import Reading, infer_with_retries
from models.synthesizer.prosody.contours import PitchContour
from models.synthesizer.settings import Settings
from models.synthesizer.text.passages import Passage
from modules.alignment.attention_quality import AttentionQuality
from processors.records import SpokenText
from processors.text.nearest_phones import is_voiced
from utils.errors import InputError
from utils.logging import get_logger


class PassageMels:
    """Synthesises the mels of passages.

    Raises:
        InputError: If the settings do not fit the network.
    """

    def __init__(self, model: LoadedModel, config: Config, device: torch.device) -> None:
        if config.train.synthetic_utterances:
            get_logger(__name__).warning(
                "this voice was trained on generated data (--synthetic): its speech is noise"
            )
        self._network = _for_inference(model.network, config, device)
        self._vocabulary = model.assets.required_vocabulary(model.home)
        self._log_floor = model.mel.log_floor_value
        self._config = config
        self._device = device

    @property
    def controls(self) -> frozenset[Control]:
        """The controls that the network takes."""
        return self._network.controls

    def __call__(self, passages: Sequence[Passage], speaker: int, settings: Settings) -> Reading:
        """Runs the acoustic model on one batch.

        Args:
            speaker: Index of the speaker of all.
        """
        phones = [passage.spoken.phones for passage in passages]
        phone_ids = self._padded([self._vocabulary.ids(names) for names in phones])  # (B, N)
        phone_lengths = torch.tensor([len(names) for names in phones], device=self._device)  # (B,)
        speaker_ids = torch.full((len(phones),), speaker, device=self._device)
        reading = infer_with_retries(
            partial(self._network.infer, **self._prosody(passages, settings)),
            phone_ids,
            phone_lengths,
            speaker_ids,
            seed=settings.seed,
            attempts=self._config.inference.attention_attempts,
            log_floor=self._log_floor,
        )
        for passage, quality in zip(passages, reading.attention, strict=True):
            _warn_of_fault(passage.spoken, quality)
        return reading

    def _prosody(self, passages: Sequence[Passage], settings: Settings) -> dict[str, Any]:
        """Arguments of `infer` for the controls that are asked for."""
        asked = settings.changed_controls()
        if "pitch" in asked:
            asked["pitch"] = self._padded([passage.pitch or () for passage in passages])
        if "pitch_transform" in asked:
            transform = settings.transform
            if isinstance(transform, PitchContour):
                spans = [[passage.start, passage.end] for passage in passages]
                transform = transform.over(torch.tensor(spans))
            in_letters = self._config.preprocess.text.in_letters
            voiced = [
                [is_voiced(phone, in_letters=in_letters) for phone in passage.spoken.phones]
                for passage in passages
            ]
            asked |= {"pitch_transform": transform, "voiced": self._padded(voiced)}
        return asked

    def _padded(self, rows: Sequence[Sequence[float]]) -> Tensor:
        """Rows of different lengths as one tensor on the device, (B, N), padded with 0."""
        tensors = [torch.tensor(row) for row in rows]
        return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True).to(self._device)


def _for_inference(network: nn.Module, config: Config, device: torch.device) -> AcousticModel:
    """The network, optimised for synthesis."""
    precision, model = config.inference.acoustic_precision, cast("AcousticModel", network)
    if precision not in model.PRECISIONS:
        raise InputError(
            f"inference.acoustic_precision is {precision}; {config.model_type} has"
            f" {', '.join(model.PRECISIONS)}"
        )
    attempts = config.inference.attention_attempts
    if model.controls and attempts != InferenceConfig.attention_attempts:
        raise InputError(
            f"inference.attention_attempts is {attempts}, and {config.model_type} does not align by"
            " attention; remove it"
        )
    if config.inference.compile != "off":
        require_compiler("inference.compile", device)
    return model.for_inference(precision, config.inference.compile)


def _warn_of_fault(clause: SpokenText, quality: AttentionQuality | None) -> None:
    if quality is not None and quality.fault:
        get_logger(__name__).warning(
            "%r: attention failed in every attempt (inference.attention_attempts), the best is"
            " used: %s; another --seed, a shorter sentence or more training may help",
            clause.text,
            quality.fault,
        )
