"""Vocos (Siuzdak 2024, "Vocos: Closing the gap between time-domain and Fourier-based neural ...").

arXiv:2306.00814. Networks, losses and optimizer are those of the author's implementation, whose
checkpoints of mels can be loaded. It departs from that in that
- a mel of T frames gives T hops of samples, with both paddings; the author's "center" gives T - 1;
- each item of a batch gives what it gives alone: padding is masked;
- losses are means per segment, so that they do not depend on how a batch is split;
- the mel loss has as many bands as the input, which at 24 kHz is as published;
- a generator can first be trained without discriminators, on the mel and the multi-resolution STFT
  loss (`adversarial: false`), a good start on a small machine.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from config.preprocess import PreprocessConfig
from config.schema import Config
from models.base.adversarial import HINGE, adversarial_losses, discriminator_losses, frozen
from models.base.assets import Assets
from models.base.graphs import vocoder_graphs
from models.base.model import Model
from models.base.task import Update
from models.vocoder._gan import WaveGanTask
from models.vocoder.vocos.config import VocosConfig
from models.vocoder.vocos.discriminators import WaveDiscriminator
from models.vocoder.vocos.network import Vocos, VocosGraph
from processors.dataset.batch import VocoderBatch


class VocosTask(WaveGanTask):
    """Training of a generator, with or without discriminators (section 3.3 of the paper)."""

    @classmethod
    def build(cls, config: Config, assets: Assets) -> "VocosTask":
        """Builds the task of an experiment."""
        model, mel, discriminator = cast("VocosConfig", config.model), assets.mel, None
        if model.adversarial:
            discriminator = WaveDiscriminator(model.discriminator, model.lambda_resolution)
        whole_band = replace(mel, f_min=0.0, f_max=mel.sample_rate / 2)
        published = replace(whole_band, scale="htk", log_floor=1e-7, padding="centre")
        return cls(Vocos.build(model, assets), discriminator, model, mel, published)

    def training_step(self, batch: VocoderBatch) -> Iterator[Update]:
        """Yields the update of the discriminators, then of the generator: hinge losses."""
        wav, wav_hat = batch.wav, self.networks["generator"](batch.mel)  # (B, S)
        discriminator = self.networks.get("discriminator")
        if discriminator is None:
            yield Update("generator", self.reconstruction_losses(wav, wav_hat))
            return
        losses = discriminator_losses(discriminator, wav, wav_hat.detach(), HINGE)
        yield Update("discriminator", losses)
        with frozen(discriminator):
            adversarial = adversarial_losses(discriminator, wav, wav_hat, 1.0, 1.0, HINGE)
            yield Update("generator", adversarial | self.reconstruction_losses(wav, wav_hat))


def _check_overlap(_model: VocosConfig, preprocess: PreprocessConfig) -> None:
    """Refuses frames whose windows hardly overlap: the last hop of a mel has few of them."""
    n_fft, hop = preprocess.n_fft, preprocess.hop_length
    if n_fft < 3 * hop:
        raise ValueError(
            f"preprocess.n_fft is {n_fft} and hop_length {hop}: expected three hops or more"
        )


MODEL = Model(
    config=VocosConfig,
    network=Vocos,
    task=VocosTask,
    check=_check_overlap,
    graphs=lambda network: vocoder_graphs(VocosGraph(network), network.mel.n_mels),
)
