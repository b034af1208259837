"""The vocoder that belongs to an acoustic model."""

from pathlib import Path
from typing import NamedTuple, cast

from config.schema import InferenceConfig
from models.base.interfaces import TrainedVocoder, Vocoder
from models.checkpoint.loading import OpenedModel, open_model
from models.synthesizer.resampling_vocoder import ResamplingVocoder
from modules.griffin_lim import GriffinLim
from modules.mel import MelConfig
from utils.errors import InputError
from utils.logging import get_logger

GRIFFIN_LIM = "Griffin-Lim"  # the name of what needs no training, in records
_MAY_DIFFER = ("padding",)  # a shift by half a hop is hardly audible


class OpenedVocoder(NamedTuple):
    """A vocoder that fits an acoustic model, before its network is built.

    Attributes:
        model: None: Griffin-Lim.
        mel: What the acoustic model makes.
        name: What the vocoder is called.
    """

    model: OpenedModel | None
    mel: MelConfig
    name: str

    def load(self, settings: InferenceConfig, device: str) -> Vocoder:
        """Builds it; says so if there is only Griffin-Lim.

        Raises:
            InputError: If its weights cannot be read.
        """
        log = get_logger(__name__)
        if self.model is None:
            iterations = settings.griffin_lim_iterations
            log.info("no vocoder given: Griffin-Lim, %d iterations", iterations)
            return GriffinLim(self.mel, iterations).to(device)
        vocoder = prepared(self.model.load(device).network, settings)
        theirs = self.model.assets.mel
        different = self.mel.differences(theirs, ignore=_MAY_DIFFER)
        if not different:
            return vocoder
        log.info(
            "the vocoder %s was made for another mel (%s: acoustic model and vocoder): mels are "
            "converted and the sound is resampled; worse than with a vocoder of the same mel",
            self.name,
            ", ".join(different),
        )
        return ResamplingVocoder(vocoder, self.mel, theirs).to(device)


def open_vocoder(
    reference: str | Path | None, mel: MelConfig, *, resample: bool = False
) -> OpenedVocoder:
    """Finds a vocoder and compares it with an acoustic model, before any work.

    Args:
        reference: Experiment, checkpoint or name on the Hub; None: Griffin-Lim.
        mel: What the acoustic model makes.
        resample: Use it also if it was made for another mel or sample rate.

    Raises:
        InputError: If it cannot be found, is no vocoder, or was made for another mel.
    """
    if reference is None:
        return OpenedVocoder(None, mel, GRIFFIN_LIM)
    model = open_model(reference)
    if model.config.task != "vocoder":
        raise InputError(f"{reference} is an acoustic model; expected a vocoder")
    if not (resample and mel.differences(model.assets.mel, ignore=_MAY_DIFFER)):
        check_mel_contract(mel, model.assets.mel, str(reference))
    return OpenedVocoder(model, mel, str(reference))


def prepared(network: object, settings: InferenceConfig) -> Vocoder:
    """The network of a vocoder, ready to speak fast and as precisely as the settings say."""
    return cast("TrainedVocoder", network).for_inference(settings.vocoder_precision)


def check_mel_contract(acoustic: MelConfig, vocoder: MelConfig, name: str) -> None:
    """Compares the mel that a model makes with the one that a vocoder was trained on.

    Half a hop of shift (`padding`) is heard as next to nothing: it is allowed, and said.

    Raises:
        InputError: If anything else differs; the message gives both values of each.
    """
    if different := acoustic.differences(vocoder, ignore=_MAY_DIFFER):
        raise InputError(
            f"the vocoder {name} was made for another mel than the acoustic model: "
            f"{', '.join(different)} (acoustic model and vocoder); use one trained on the same "
            "mel, or none (Griffin-Lim), or add --resample to convert mels and sound, at some cost "
            "of quality"
        )
    if acoustic.padding != vocoder.padding:
        get_logger(__name__).info(
            "mel padding: the acoustic model has %s, the vocoder %s; half a hop of shift, allowed",
            acoustic.padding,
            vocoder.padding,
        )
