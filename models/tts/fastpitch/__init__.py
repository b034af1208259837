"""FastPitch (Łańcucki 2021, arXiv:2006.06873): versions 1.0 and 1.1 of its author at NVIDIA.

Both are this network. Version 1.0 (`model.variant`) has no energy and reads durations that
stage 1 stored; version 1.1 has energy, and learns the durations (`preprocess.aligner: "learned"`,
Badlani et al. 2021, arXiv:2108.10447). Either goes with stored and with learned durations.
Checkpoints of NVIDIA's code can be loaded. It departs from that code in that
- padding is masked before every convolution: an utterance gives the same result alone and in a
  batch (an utterance alone gives NVIDIA's numbers);
- pitch is normalised per speaker; controls multiply Hz and linear energy and may differ from phone
  to phone; speech has at least one frame;
- energy is that of the spectrum: more is louder. NVIDIA's is the norm of the log-mel, which falls
  as speech gets louder; its checkpoints keep it (`model.energy: "log_mel"`);
- with `model.harmonics`, the decoder is conditioned on the harmonics of F0, which one pitch value
  per phone does not determine (modules/harmonics.py);
- the aligner is a separate network (models/base/aligner.py), and its prior ends.
"""

from collections.abc import Iterator

from models.base.acoustic import AcousticTask, durations_in
from models.base.graphs import feed_forward_graphs
from models.base.model import Model
from models.base.task import LossTerm, Update
from models.tts._feed_forward import FeedForwardOutput
from models.tts.fastpitch.config import FastPitchConfig
from models.tts.fastpitch.network import FastPitch
from modules.layers.basic import length_mask
from modules.losses import mse_sum
from processors.dataset.batch import TtsBatch


class FastPitchTask(AcousticTask[FastPitch]):
    """Training with the durations of stage 1 or learned ones."""

    def training_step(self, batch: TtsBatch) -> Iterator[Update]:
        """Yields squared errors of mel, ln(frames + 1), normalised pitch and ln(1 + energy).

        With harmonics also L1 of the residual of F0.
        """
        batch = yield from self.with_durations(batch)  # the aligner's update, if there is one
        network = self.network
        output: FeedForwardOutput = network(*network.inputs_of(batch))
        prosody = output.prosody
        phone_mask = length_mask(batch.phone_lengths, batch.phone_ids.shape[1])
        frame_mask = length_mask(batch.mel_lengths, batch.mel.shape[2])
        weights = network.config
        mel = mse_sum(output.mel_hat, batch.mel.mT, frame_mask)
        log_durations = durations_in(batch).float().log1p()
        durations = mse_sum(prosody.log_durations_hat, log_durations, phone_mask)
        losses = {
            "mel": LossTerm(mel, "frames"),
            "duration": LossTerm(durations, "phones", weights.duration_loss_weight),
        }
        if prosody.f0_residual_l1 is not None:
            losses["f0_residual"] = LossTerm(prosody.f0_residual_l1, "frames")
        scales = {"pitch": weights.pitch_loss_weight, "energy": weights.energy_loss_weight}
        for name, target in prosody.contours.items():
            total = mse_sum(prosody.contours_hat[name], target, phone_mask)
            losses[name] = LossTerm(total, "phones", scales[name])
        yield Update("model", losses)


MODEL = Model(
    config=FastPitchConfig,
    network=FastPitch,
    task=FastPitchTask,
    aligner=lambda model: model.aligner,
    cpu_precision="bf16",
    graphs=feed_forward_graphs,
)
