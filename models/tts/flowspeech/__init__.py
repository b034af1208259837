"""FlowSpeech: the prosody of FastSpeech 2, and a mel by flow matching.

A regression of the mel averages over all ways to speak a text, and sounds blurred; here the mel is
drawn from their distribution. Phones, durations, pitch and energy are those of FastSpeech 2 (Ren et
al. 2021, arXiv:2006.04558) with `variance_predictor.own_encoder`; the decoder is conditional flow
matching as in Matcha-TTS (Mehta et al. 2024, arXiv:2309.03199). It departs from Matcha-TTS in that
- durations are known in training, and pitch and energy are predicted and can be controlled;
- the estimator is a stack of ConvNeXt blocks at frame rate (estimator.py), not a U-Net with
  attention: it costs a fifth, and long mels are computed in windows;
- the estimator also reads the hidden vectors of the frames and the ripple that the harmonics of F0
  have in the mel (modules/harmonics.py); the mean mel ("prior") is one more condition, detached
  from the flow loss;
- noise is a function of seed, phones and frame: a sentence sounds the same alone and in a batch;
  in training, noise and time are functions of the update and the phones;
- times of training are logit-normal, as in Esser et al. 2024, arXiv:2403.03206, not uniform;
- mels are scaled by fixed numbers, not by statistics of the corpus;
- synthesis takes 4 steps with noise of standard deviation 0.3 by default, not 10 with 0.667.
"""

from collections.abc import Iterator
from typing import cast

from torch import Tensor

from models.base.acoustic import AcousticTask, durations_in
from models.base.graphs import feed_forward_graphs
from models.base.model import Model
from models.base.task import LossTerm, Update
from models.tts.flowspeech.config import FlowSpeechConfig
from models.tts.flowspeech.network import MEL_MEAN, MEL_STD, FlowOutput, FlowSpeech
from modules.layers.basic import length_mask
from modules.losses import mse_sum
from modules.variance.prosody_encoder import duration_loss_sum, pitch_loss_sum
from processors.dataset.batch import TtsBatch


class FlowSpeechTask(AcousticTask[FlowSpeech]):
    """Training with the durations of stage 1 or learned ones."""

    def training_step(self, batch: TtsBatch) -> Iterator[Update]:
        """Yields the losses of flow (Lipman et al. 2023, eq. 23), mean mel and prosody."""
        batch = yield from self.with_durations(batch)  # the aligner's update, if there is one
        network = self.network
        mel = (batch.mel.mT - MEL_MEAN) / MEL_STD  # (B, T, M)
        drawn = network.draw(batch.phone_ids, mel.shape[1])
        output: FlowOutput = network(mel, *drawn, *network.inputs_of(batch))
        phone_mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
        frame_mask = length_mask(batch.mel_lengths, mel.shape[1])
        prosody, durations = output.prosody, durations_in(batch)
        pitch = prosody.contours_hat["pitch"], prosody.contours["pitch"], batch.f0, durations
        energy = prosody.contours_hat["energy"], prosody.contours["energy"], phone_mask
        losses = {
            "flow": LossTerm(mse_sum(output.velocity_hat, output.velocity, frame_mask), "frames"),
            "prior": LossTerm(mse_sum(output.prior, mel, frame_mask), "frames"),
            "duration": LossTerm(
                duration_loss_sum(prosody.log_durations_hat, durations, phone_mask), "phones"
            ),
            "pitch": LossTerm(pitch_loss_sum(*pitch), "phones"),
            "energy": LossTerm(mse_sum(*energy), "phones"),
            "f0_residual": LossTerm(cast("Tensor", prosody.f0_residual_l1), "frames"),
        }
        yield Update("model", losses)


MODEL = Model(
    config=FlowSpeechConfig,
    network=FlowSpeech,
    task=FlowSpeechTask,
    aligner=lambda model: model.aligner,
    options=("steps", "temperature"),
    cpu_precision="bf16",
    graphs=feed_forward_graphs,
)
