"""Stage 1 for vocoders: whole recordings and their mels; no text, no alignment, no pitch."""

from functools import partial

from config.schema import Config
from preprocessors.manifest import Splits, Utterance
from processors.dataset.store import processed_folder
from processors.extraction.fingerprint import Dependence
from processors.extraction.plan import Run, corpus_of, plan_run
from processors.extraction.recordings import RecordingTools
from processors.extraction.shards import ShardReport, ShardWork
from processors.extraction.summary import split_usable
from utils.files import size_and_time

# Keys of text, alignment, pitch and energy.
IGNORED = {
    *("text", "aligner", "textgrid_dir", "imported_dir", "edge_silence_s", "max_misfit"),
    *("pitch_extractor", "f0_min", "f0_max", "pitch_remove_outlier", "energy_remove_outlier"),
}


def plan_recordings(config: Config, dataset: str) -> Run:
    """Plans stage 1 of a vocoder.

    Raises:
        InputError: If the corpus or the config cannot be used.
    """
    options = config.preprocess
    _, listing = corpus_of(config, dataset)
    dependence = Dependence("vocoder", IGNORED, _identity, {})
    tools = partial(RecordingTools, options)
    work = ShardWork(tools, processed_folder(options, dataset), options.mel)
    return plan_run(options, dataset, listing, dependence, RecordingProduct(), work)


def _identity(utterance: Utterance) -> list[object]:
    return [utterance.id, utterance.speaker, *size_and_time(utterance.audio)]


class RecordingProduct:
    """Recordings, and nothing beside them."""

    outputs: tuple[str, ...] = ()
    mels_from = ""

    def check(self, run: Run, total: ShardReport) -> None:
        """Every recording that can be read is good."""

    def split(self, run: Run, total: ShardReport) -> Splits:
        """Splits by id, as for an acoustic model of the same corpus."""
        return split_usable(run, total)

    def complete(self, run: Run, splits: Splits) -> None:
        """Nothing depends on the splits."""
