"""Tacotron 2 (Shen et al. 2018, "Natural TTS Synthesis by Conditioning ...", arXiv:1712.05884).

Sizes and layers are those of NVIDIA's implementations, whose checkpoints can be loaded. As they do,
it departs from the paper in that
- the LSTMs have dropout 0.1 on their hidden states instead of zoneout, for no loss of quality;
- attention also sees the weights of the previous step, not only their sum.
It departs from these implementations in that
- padding is masked before every convolution, in the batch normalisation and in the losses: an
  utterance gives the same result alone and in a batch;
- the prenet's dropout is seeded by the text outside training, so that synthesis, validation and
  teacher-forced mels can be repeated;
- mels are normalised inside the network, where a configuration says so;
- several frames per step are possible (the reduction factor of Wang et al. 2017,
  arXiv:1703.10135), as is guided attention (Tachibana et al. 2018, arXiv:1710.08969);
- a voice may have several speakers; their embedding is added to the encoded phones.
"""

from collections.abc import Iterator

from torch.nn import functional as F

from models.base.acoustic import AcousticTask
from models.base.model import Model
from models.base.task import LossTerm, Update
from models.tts.tacotron2.config import Tacotron2Config
from models.tts.tacotron2.graphs import tacotron2_graphs
from models.tts.tacotron2.network import Tacotron2, Tacotron2Output
from modules.layers.basic import length_mask
from modules.losses import guided_attention_sum, mse_sum
from processors.dataset.batch import TtsBatch


class Tacotron2Task(AcousticTask[Tacotron2]):
    """Training by teacher forcing."""

    def training_step(self, batch: TtsBatch) -> Iterator[Update]:
        """Yields squared errors of mels, cross-entropy of the gate (section 2.2), guided attention.

        The gate is to open in the step of the last frame; all frames of a step share it. `focus`,
        with weight 0, is the largest weight of the attention: near 1 where a frame belongs to one
        phone.
        """
        network = self.network
        output: Tacotron2Output = network(batch)
        mel, frame_mask = batch.mel.mT, length_mask(batch.mel_lengths, batch.mel.shape[2])
        r = network.frames_per_step
        last_step = (batch.mel_lengths - 1) // r * r  # its first frame, (B,)
        ends = ~length_mask(last_step, batch.mel.shape[2])  # (B, T)
        logits = output.gate_logits.float()
        gate = F.binary_cross_entropy_with_logits(logits, ends.float(), reduction="none")
        focus = output.alignment.detach().amax(dim=2)  # (B, T)
        losses = {
            "mel": LossTerm(mse_sum(output.mel_hat, mel, frame_mask), "frames"),
            "refined_mel": LossTerm(mse_sum(output.refined_mel_hat, mel, frame_mask), "frames"),
            "gate": LossTerm((gate * frame_mask).sum(), "frames"),
            "focus": LossTerm((focus * frame_mask).sum(), "frames", weight=0.0),
        }
        if (weight := network.config.guided_attention) > 0:
            lengths, width = (batch.phone_lengths, batch.mel_lengths), network.config.guided_width
            total = guided_attention_sum(output.alignment, *lengths, width)
            losses["guided_attention"] = LossTerm(total, "frames", weight)
        yield Update("model", losses)


MODEL = Model(
    config=Tacotron2Config,
    network=Tacotron2,
    task=Tacotron2Task,
    needs_durations=False,
    aligns_by_attention=True,
    graphs=tacotron2_graphs,
)
