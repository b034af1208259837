"""Matcha-TTS (Mehta et al. 2024, arXiv:2309.03199): a mel drawn by conditional flow matching.

A text encoder gives a mean mel and a duration for each phone; a U-Net, which reads the mean mels,
follows a flow from noise to the mel. Without durations of stage 1, as published, each update finds
the most likely monotonic alignment of the recording with the mean mels. It departs from the
authors' code:
- padding of a batch changes nothing: norms and attention of the U-Net read the frames that pad a
  mel to a multiple of 4, as in the authors' code for a mel alone, and no further ones;
- noise is a function of seed, phones and frame, so that a sentence sounds the same alone and in a
  batch; in training, noise, time and segment are functions of the update and the phones;
- durations of stage 1 may be given (`preprocess.aligner`);
- a block of the text encoder has no dropout between its convolutions.
"""

import math
from collections.abc import Iterator

from models.base.acoustic import AcousticTask
from models.base.graphs import feed_forward_graphs
from models.base.model import Model
from models.base.results import add_alignment_figures
from models.base.task import LossTerm, Sample, Unit, Update
from models.tts.matcha.config import MatchaConfig
from models.tts.matcha.network import Matcha, MatchaOutput
from modules.layers.basic import length_mask
from modules.losses import mse_sum
from processors.dataset.batch import TtsBatch

_SMALLEST = 1e-8  # added to a duration, whose logarithm is predicted


class MatchaTask(AcousticTask[Matcha]):
    """Training with the durations of stage 1 or of the most likely alignment."""

    def counts(self, batch: TtsBatch) -> dict[Unit, int]:
        """Counts the valid elements of the batch; frames are those of the segments."""
        counts, out_size = super().counts(batch), self.network.config.out_size
        if out_size and self.network.training:
            counts["frames"] = int(batch.mel_lengths.clamp(max=out_size).sum())
        return counts

    def training_step(self, batch: TtsBatch) -> Iterator[Update]:
        """Yields the losses of flow (eq. 4), mean mel and durations."""
        output: MatchaOutput = self.network(batch)
        log_durations = (output.durations + _SMALLEST).log()
        phone_mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
        duration = mse_sum(output.log_durations_hat, log_durations, phone_mask)
        flow = mse_sum(output.velocity_hat, output.velocity, output.mask)
        # the negative log-likelihood of a normal mel with variance 1
        prior = mse_sum(output.prior, output.mel, output.mask)
        prior = 0.5 * (prior + math.log(2 * math.pi) * output.mask.sum())
        yield Update(
            "model",
            {
                "flow": LossTerm(flow, "frames"),
                "prior": LossTerm(prior, "frames"),
                "duration": LossTerm(duration, "phones"),
            },
        )

    def samples(self, batch: TtsBatch) -> Iterator[Sample]:
        """Synthesises the batch from its phones; figures show the alignment with the recording."""
        durations = self.network.durations_of(batch)
        return add_alignment_figures(super().samples(batch), batch, durations, self.assets)


MODEL = Model(
    config=MatchaConfig,
    network=Matcha,
    task=MatchaTask,
    needs_durations=False,
    options=("steps", "temperature"),
    graphs=feed_forward_graphs,
)
