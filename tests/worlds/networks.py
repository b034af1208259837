"""Every model with `config/tiny`, and batches of random utterances for it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from config.schema import Config
from models.base.assets import Assets, Speaker
from models.base.registry import model_of
from models.base.task import Task
from models.programs.benchmark.run import generated_config, known_models
from models.training.data import collect_assets
from modules.layers.basic import length_mask
from modules.layers.postnet import MaskedBatchNorm
from modules.mel import MelConfig, MelSpectrogram
from processors.dataset.batch import TtsBatch, VocoderBatch
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat

# of a model, what tests of all models run with besides config/tiny, by a name
VARIANTS: dict[str, dict[str, tuple[str, ...]]] = {
    "fastspeech2": {
        "frames": ('model.pitch_level="frame"', 'model.energy_level="frame"'),
        # in these bands harmonics can be seen
        "harmonics": ("model.harmonics=true", "model.use_postnet=false", "preprocess.f_max=1000"),
        "convolution": (
            *('model.variance_embedding.kind="convolution"', "model.variance_embedding.n_bins=256"),
            *("model.harmonics=true", "preprocess.f_max=1000"),
            *('model.transformer.activation="mish"', "model.centred_postnet=true"),
        ),
        "own encoder": ("model.variance_predictor.own_encoder=true",),
        "log bins": tuple(
            f'model.variance_embedding.{what}_quantization="log"' for what in ("pitch", "energy")
        ),
    },
    "fastpitch": {
        "1.0": ('model.variant="1.0"', 'preprocess.aligner="pocketsphinx"'),
        "log-mel energy": ('model.energy="log_mel"',),
    },
    "flowspeech": {
        "learned durations": ('preprocess.aligner="learned"',),
        "discriminators": ("model.lambda_adversarial=0.02", "model.adversarial_start=0"),
    },
    "matcha": {
        "three lengths": (
            *("model.decoder.channels=[16,8,24]", "model.decoder.n_blocks=2"),
            "model.encoder.prenet=false",
        ),
    },
    "tacotron2": {
        "one frame per step": ("model.decoder.n_frames_per_step=1",),
        "guided attention": ("model.guided_attention=2.0",),
    },
    "hifigan": {
        "pairs": ('model.generator.resblock="1"',),
        "no discriminators": ("model.adversarial=false",),
    },
    "vocos": {
        "same": ('preprocess.mel_padding="hifigan"',),
        "no discriminators": ("model.adversarial=false",),
    },
    "freevgl": {
        "discriminators": (
            *("model.band_channels=4", "model.lambda_adversarial=0.5", "model.adversarial_start=0"),
        )
    },
}
_FEW = ("train.synthetic_utterances=8", 'train.tracker="none"', "train.dataloader.num_worker=0")


def names_of(task: str) -> list[tuple[str, str]]:
    """Lists the models of a task, each as it is ("") and in its variants."""
    names = [name for name, of_task in known_models().items() if of_task == task]
    return [(name, variant) for name in names for variant in ("", *VARIANTS.get(name, {}))]


class Subject:
    """A model of `config/tiny`.

    Attributes:
        config: Its configuration.
        assets: Of acoustic models with several speakers, the second higher and louder.
    """

    def __init__(self, model: str, variant: str = "", n_speakers: int = 1) -> None:
        overrides = VARIANTS[model][variant] if variant else ()
        self.config: Config = generated_config(model, [*_FEW, *overrides], small=True)
        self.assets = with_speakers(collect_assets(self.config), n_speakers)

    @property
    def mel(self) -> MelConfig:
        return self.assets.mel

    def task(self, seed: int = 0) -> Task[Any]:
        """Builds the training task in eval mode."""
        torch.manual_seed(seed)
        task = model_of(self.config).task.build(self.config, self.assets)
        for network in task.networks.values():
            as_if_trained(network.eval())
        return task

    def network(self, seed: int = 0) -> Any:  # an acoustic model or a vocoder
        """Builds the network for synthesis."""
        torch.manual_seed(seed)
        network = model_of(self.config).network.build(self.config.model, self.assets)
        return as_if_trained(network.eval())

    def phones(self, seed: int = 0) -> TtsBatch:
        """Makes a batch of three utterances of random phones, of all speakers."""
        n_phones = len(self.assets.required_vocabulary().symbols)
        return random_phones(n_phones, self.mel, len(self.assets.speakers), seed)

    def recordings(self, lengths: Sequence[int] = (14, 14)) -> VocoderBatch:
        """Makes a batch of tones of these lengths in frames."""
        return tones(self.mel, lengths)


def with_speakers(assets: Assets, n_speakers: int) -> Assets:
    """Replaces the only speaker by several, with pitch and energy of their own."""
    if n_speakers == 1 or assets.stats is None:
        return assets
    stats = {}
    for number in range(n_speakers):
        scale = 1.5**number
        f0 = Stat(150 * scale, 20, 80 * scale, 260 * scale)
        energy = Stat(40 * scale, 20, 0, 120 * scale)
        stats[f"speaker-{number}"] = SpeakerStats(f0, f0, energy, energy, seconds=1.0)
    speakers = tuple(Speaker(name, "en-us") for name in stats)
    return replace(assets, speakers=speakers, stats=CorpusStats(stats))


def as_if_trained(network: nn.Module) -> nn.Module:
    """Fills weights that training starts at zero, so that what they multiply counts."""
    for weight in network.parameters():
        if weight.ndim > 1 and not weight.any():
            nn.init.normal_(weight.data, std=0.05)
    return network


def without_chance(task: Task[Any]) -> Task[Any]:
    """Puts a task into eval mode, but batch normalisation, which trains without dropout."""
    for network in task.networks.values():
        network.eval()
        for module in network.modules():
            if isinstance(module, MaskedBatchNorm):
                module.train()
    return task


def random_phones(n_phones: int, mel: MelConfig, n_speakers: int = 1, seed: int = 0) -> TtsBatch:
    """Makes a batch of random features of three utterances, with unvoiced frames."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([7, 4, 6])
    mask = length_mask(lengths)
    durations = torch.randint(1, 5, mask.shape, generator=generator) * mask
    mel_lengths = durations.sum(dim=1)
    frame_mask = length_mask(mel_lengths)
    B, T = frame_mask.shape
    voiced = torch.rand(B, T, generator=generator) < 0.7
    mels = torch.randn(B, mel.n_mels, T, generator=generator) - 4
    return TtsBatch(
        ids=tuple(f"utterance-{item}" for item in range(B)),
        phone_ids=torch.randint(1, n_phones, mask.shape, generator=generator) * mask,
        phone_lengths=lengths,
        speaker_ids=torch.arange(B) % n_speakers,
        durations=durations,
        mel=mels.masked_fill(~frame_mask[:, None], mel.log_floor_value),
        mel_lengths=mel_lengths,
        f0=(100 + 200 * torch.rand(B, T, generator=generator)) * voiced * frame_mask,
        energy=100 * torch.rand(B, T, generator=generator) * frame_mask,
    )


def tones(mel: MelConfig, lengths: Sequence[int]) -> VocoderBatch:
    """Makes a batch of harmonic tones in noise, padded to the longest."""
    generator = np.random.default_rng(0)
    times = np.arange(max(lengths) * mel.hop_length) / mel.sample_rate
    wavs = []
    for item, length in enumerate(lengths):
        pitch = 150 * 1.4**item
        tone = sum(np.sin(2 * np.pi * k * pitch * times) / k for k in range(1, 6))
        wav = 0.2 * tone + 0.01 * generator.normal(size=len(times))
        wavs.append(wav * (np.arange(len(times)) < length * mel.hop_length))
    batch = torch.tensor(np.stack(wavs), dtype=torch.float32)
    mels = MelSpectrogram(mel)(batch)
    frame_mask = length_mask(torch.tensor(lengths))
    return VocoderBatch(
        ids=tuple(f"clip-{item}" for item in range(len(lengths))),
        mel=mels.masked_fill(~frame_mask[:, None], mel.log_floor_value),
        mel_lengths=torch.tensor(lengths),
        wav=batch,
    )


def padded(batch: Any, mel: MelConfig, frames: int = 5, phones: int = 3) -> Any:
    """Adds padding to a batch of either task."""
    if isinstance(batch, TtsBatch):
        durations = batch.durations
        return batch._replace(
            phone_ids=F.pad(batch.phone_ids, (0, phones)),
            durations=None if durations is None else F.pad(durations, (0, phones)),
            mel=F.pad(batch.mel, (0, frames), value=mel.log_floor_value),
            f0=F.pad(batch.f0, (0, frames)),
            energy=F.pad(batch.energy, (0, frames)),
        )
    return batch._replace(
        mel=F.pad(batch.mel, (0, frames), value=mel.log_floor_value),
        wav=F.pad(batch.wav, (0, frames * mel.hop_length)),
    )


def item_of(batch: Any, item: int) -> Any:
    """Takes one utterance of a batch, with its padding."""
    parts = (part[item : item + 1] if isinstance(part, Tensor | tuple) else part for part in batch)
    return type(batch)._make(parts)
