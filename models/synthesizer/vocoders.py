"""The vocoder of an acoustic model: one of the same mel, the bundled one, or Griffin-Lim."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from config.schema import InferenceConfig, VocoderPrecision
from models.base.devices import chosen_precision
from models.base.model import TrainedVocoder, Vocoder
from models.base.registry import model_of
from models.checkpoint.loading import TrainedModel, open_model
from models.checkpoint.tensors import weights_digest
from modules.mel import MelConfig, MelConverter
from modules.waveform.griffin_lim import GriffinLim
from utils.config import to_plain
from utils.errors import InputError, nearest
from utils.hub import origin_of
from utils.logging import get_logger

GRIFFIN_LIM = "Griffin-Lim"  # name in metadata.jsonl
# the vocoder where none is given; an installation without the recipes has none
BUNDLED = Path(__file__).parents[2] / "egs" / "_voices" / "freevgl"
# built-in vocoders: the name in metadata.jsonl, and the reference that opens it
BUILT_IN: dict[str, str | Path] = {GRIFFIN_LIM: "griffin_lim", BUNDLED.name: BUNDLED}
_MAY_DIFFER = ("padding",)  # a shift by half a hop is hardly audible


class OpenedVocoder(NamedTuple):
    """A vocoder that fits an acoustic model, before its network is built."""

    model: TrainedModel | None  # None: Griffin-Lim
    mel: MelConfig  # of the acoustic model
    name: str  # of the vocoder, for messages and metadata

    def load(self, settings: InferenceConfig, device: str) -> Vocoder:
        """Builds the vocoder; logs its name if it is Griffin-Lim or resamples."""
        log = get_logger(__name__)
        if self.model is None:
            _check_options(settings.vocoder_options, (), self.name)
            iterations = settings.griffin_lim_iterations
            log.info("Griffin-Lim, %d iterations", iterations)
            return GriffinLim(self.mel, iterations).to(device)
        vocoder = vocoder_for_inference(self.model, settings, self.name, device)
        vocoder_mel = self.model.assets.mel
        different = self.mel.differences(vocoder_mel, ignore=_MAY_DIFFER)
        if not different:
            return vocoder
        log.info(
            "the vocoder %s was made for another mel (%s: acoustic model and vocoder): mels are "
            "converted and the sound is resampled; worse than with a vocoder of the same mel",
            self.name,
            ", ".join(different),
        )
        return ResamplingVocoder(vocoder, self.mel, vocoder_mel).to(device)

    def facts(self, vocoder: Vocoder, settings: InferenceConfig) -> list[object]:
        """Lists what the sound depends on, except the mel, for a fingerprint."""
        if self.model is None:
            return [[self.name, settings.griffin_lim_iterations]]
        return [
            [asdict(self.model.assets.mel), settings.vocoder_precision, settings.vocoder_options],
            to_plain(self.model.config)["model"],
            weights_digest(cast("nn.Module", vocoder)),
        ]


def open_vocoder(
    reference: str | Path | None, mel: MelConfig, *, resample: bool = False
) -> OpenedVocoder:
    """Finds a vocoder and compares it with an acoustic model, before any work.

    Args:
        reference: Experiment, checkpoint or name on the Hub, or "griffin_lim"; None: the bundled
            one, or Griffin-Lim where that was made for another mel.
        resample: Use it also if it was made for another mel or sample rate.
    """
    if str(reference) == BUILT_IN[GRIFFIN_LIM]:
        return OpenedVocoder(None, mel, GRIFFIN_LIM)
    if reference is None and not BUNDLED.is_dir():
        get_logger(__name__).info("no vocoder given, and %s is missing: Griffin-Lim", BUNDLED)
        return OpenedVocoder(None, mel, GRIFFIN_LIM)
    chosen = BUNDLED if reference is None else reference
    model = open_model(chosen)
    model.require_task("vocoder", chosen)
    different = ", ".join(mel.differences(model.assets.mel, ignore=_MAY_DIFFER))
    if reference is not None:
        if not (resample and different):
            check_mel_contract(mel, model.assets.mel, str(reference))
        return OpenedVocoder(model, mel, origin_of(model.weights) or str(reference))
    if different:
        get_logger(__name__).info(
            "no vocoder given, and the bundled one was made for another mel (%s: acoustic model and"
            " vocoder): Griffin-Lim",
            different,
        )
        return OpenedVocoder(None, mel, GRIFFIN_LIM)
    get_logger(__name__).info("no vocoder given: the bundled %s", BUNDLED.name)
    return OpenedVocoder(model, mel, BUNDLED.name)


def vocoder_for_inference(
    model: TrainedModel, settings: InferenceConfig, name: str, device: str
) -> Vocoder:
    """Builds a vocoder's network on a device, optimised for inference."""
    network = with_options(model, settings, name).to(device)
    precision = chosen_precision(settings.vocoder_precision, model.config, device)
    return cast("TrainedVocoder", network).for_inference(cast("VocoderPrecision", precision))


def with_options(model: TrainedModel, settings: InferenceConfig, name: str) -> nn.Module:
    """Builds the network of a vocoder with `vocoder_options`; errors as of `_check_options`."""
    options = settings.vocoder_options
    _check_options(options, model_of(model.config).options, name)
    network: Any = model.build_network()
    if options:
        try:
            network.config = replace(network.config, **options)
        except ValueError as error:
            raise InputError(f"inference.vocoder_options: {error}") from error
    return cast("nn.Module", network)


def _check_options(options: Iterable[str], accepted: Sequence[str], name: str) -> None:
    for option in options:
        if option not in accepted:
            its = f"its options: {', '.join(accepted)}" if accepted else "it has none"
            raise InputError(
                f"inference.vocoder_options: the vocoder {name} has no option "
                f"{option}{nearest(option, accepted)} ({its})"
            )


def check_mel_contract(acoustic: MelConfig, vocoder: MelConfig, name: str) -> None:
    """Refuses a vocoder of another mel than the acoustic model's; logs another padding."""
    if different := acoustic.differences(vocoder, ignore=_MAY_DIFFER):
        raise InputError(
            f"the vocoder {name} was made for another mel than the acoustic model: "
            f"{', '.join(different)} (acoustic model and vocoder); use one of the same mel, "
            "or griffin_lim, or add --resample to convert mels and sound, at some cost of quality"
        )
    if acoustic.padding != vocoder.padding:
        get_logger(__name__).info(
            "mel padding: the acoustic model has %s, the vocoder %s; half a hop of shift, allowed",
            acoustic.padding,
            vocoder.padding,
        )


class ResamplingVocoder(nn.Module):
    """A vocoder of another mel and sample rate: converts mels for it, and resamples its sound."""

    def __init__(self, vocoder: Vocoder, source: MelConfig, target: MelConfig) -> None:
        super().__init__()
        self.vocoder = vocoder
        self.source = source
        self.target = target
        self.convert = MelConverter(source, target)

    @torch.no_grad()
    def infer(self, mel: Tensor, mel_lengths: Tensor | None = None, *, seed: int = 0) -> Tensor:
        """Converts mels to wavs."""
        B, _, T = mel.shape
        if mel_lengths is None:
            mel_lengths = torch.full((B,), T, device=mel.device)
        lengths = self.convert.lengths(mel_lengths)
        wavs = self.vocoder.infer(self.convert(mel, mel_lengths), lengths, seed=seed).cpu().numpy()
        result = torch.zeros(B, T * self.source.hop_length)
        frames = zip(mel_lengths.tolist(), lengths.tolist(), strict=True)
        for item, (n_frames, n_converted) in enumerate(frames):
            converted_wav = wavs[item, : n_converted * self.target.hop_length]
            n_samples = n_frames * self.source.hop_length
            pieces = list(self._resampled([converted_wav], n_samples))
            result[item, :n_samples] = torch.from_numpy(np.concatenate(pieces))
        return result

    @torch.no_grad()
    def generate(
        self, mel: Tensor | Iterable[Tensor], chunk_frames: int | None = None, *, seed: int = 0
    ) -> Iterator[Tensor]:
        """Synthesises a wav in pieces (1, n) on the CPU. The whole mel is converted first."""
        whole = mel if isinstance(mel, Tensor) else torch.cat(list(mel), dim=2)
        T = whole.shape[2]
        converted = self.convert(whole, torch.tensor([T], device=whole.device))
        generated = self.vocoder.generate(converted, chunk_frames, seed=seed)
        pieces = (piece[0].cpu().numpy() for piece in generated)
        for piece in self._resampled(pieces, T * self.source.hop_length):
            if len(piece):  # the resampler waits until it has seen enough
                yield torch.from_numpy(piece)[None]

    def _resampled(self, pieces: Iterable[np.ndarray], n_samples: int) -> Iterator[np.ndarray]:
        """Resamples pieces of a wav; cuts or pads the result to `n_samples`."""
        import soxr  # here: most vocoders need none

        resampler = soxr.ResampleStream(
            self.target.sample_rate, self.source.sample_rate, 1, dtype="float32"
        )
        for piece in pieces:
            made = resampler.resample_chunk(piece)[:n_samples]
            n_samples -= len(made)
            yield made
        made = resampler.resample_chunk(np.zeros(0, np.float32), last=True)[:n_samples]
        yield np.pad(made, (0, n_samples - len(made)))
