"""Stage 1 for acoustic models: features, and statistics of the training split."""

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

from config.schema import Config, PreprocessConfig
from preprocessors.manifest import Splits, Utterance
from processors.alignment import alignment_file, plan_training
from processors.dataset.statistics import corpus_stats
from processors.dataset.store import FeatureStore, processed_folder
from processors.extraction.features import FeatureTools
from processors.extraction.fingerprint import Dependence
from processors.extraction.plan import Run, corpus_of, plan_run
from processors.extraction.shards import ShardReport, ShardWork
from processors.extraction.summary import split_usable
from utils.errors import InputError
from utils.files import replacing, sha256_of, size_and_time, write_json
from utils.logging import get_logger

_UNKNOWN_SHARE = 0.1  # above: another phone set; the rare phones of 55 clips are 0.05 %
# The content of these is fingerprinted utterance by utterance.
_IGNORED = {"textgrid_dir", "imported_dir"}


def plan_features(config: Config, dataset: str) -> Run:
    """Plans stage 1 of an acoustic model.

    Raises:
        InputError: If the corpus or the config cannot be used.
    """
    options = config.preprocess
    root, listing = corpus_of(config, dataset)
    if not any(utterance.text for utterance in listing.utterances):
        raise InputError(
            f"{dataset}: its recordings have no text, and an acoustic model needs it; give "
            f"preprocess.corpus.{dataset}.format a format with texts, such as folder"
        )
    folder = processed_folder(options, dataset)
    dependence = feature_dependence(options, root)
    training = plan_training(options, listing.utterances, folder)
    if training is not None:
        dependence = dependence._replace(other={**dependence.other, **training.identity})
    tools = partial(FeatureTools, options, root, folder)
    work = ShardWork(tools, folder, options.mel, dependence.other)
    run = plan_run(options, dataset, listing, dependence, FeatureProduct(), work)
    if training is None:
        return replace(run, check=lambda: tools().prepare(listing.utterances))
    return replace(run, prepare=training.carry_out)


def feature_dependence(config: PreprocessConfig, dataset_root: Path) -> Dependence:
    """What features depend on.

    Raises:
        InputError: If the user's lexicon is missing.
    """

    def identity(utterance: Utterance) -> list[object]:
        files = [utterance.audio]
        if (aligned := alignment_file(utterance, config, dataset_root)) is not None:
            files.append(aligned)
        words = [utterance.id, utterance.text, utterance.speaker, utterance.language]
        return [*words, *(number for path in files for number in size_and_time(path))]

    return Dependence("tts", _IGNORED, identity, _lexicon(config))


def _lexicon(config: PreprocessConfig) -> dict[str, object]:
    """The user's lexicon counts by what it says, wherever it lies."""
    path = Path(config.text.lexicon_path)
    if not config.text.lexicon_path:
        return {}
    if not path.is_file():
        raise InputError(f"preprocess.text.lexicon_path: no file {path}")
    return {"preprocess.text.lexicon_path": f"sha256 {sha256_of(path)[:16]}"}


class FeatureProduct:
    """Features with their phones, words that no lexicon holds, and statistics."""

    outputs: tuple[str, ...] = ("phones.json", "oov.txt", "stats.json")
    mels_from = ""

    def check(self, run: Run, total: ShardReport) -> None:
        """Writes phones and unknown words; compares the phones of texts with the alignments'."""
        write_json(run.folder / "phones.json", dict(sorted(total.phones.items())))
        write_words(run.folder / "oov.txt", total.out_of_vocabulary)
        check_phones(run, total)

    def split(self, run: Run, total: ShardReport) -> Splits:
        """Splits by id."""
        return split_usable(run, total)

    def complete(self, run: Run, splits: Splits) -> None:
        """Writes the statistics of the training split."""
        store = FeatureStore(run.folder, run.config.mel)
        stats = corpus_stats(store, splits.train, run.config)
        write_json(run.folder / "stats.json", stats.to_plain())


def check_phones(run: Run, total: ShardReport) -> None:
    """Makes sure that a model will know the phones of texts; names those that no recording has.

    Raises:
        InputError: If they are more than `_UNKNOWN_SHARE` of the corpus's own texts.
    """
    unknown = Counter(
        {phone: n for phone, n in total.text_phones.items() if phone not in total.phones}
    )
    if not unknown:
        return
    share = unknown.total() / total.text_phones.total()
    listed = ", ".join(f"{phone} ({n})" for phone, n in unknown.most_common())
    message = (
        f"{run.dataset}: {100 * share:.2g} % of the phones of its texts are in no alignment, so"
        f" that a model cannot say them: {listed}"
    )
    if share > _UNKNOWN_SHARE:
        raise InputError(
            f"{message}; the aligner writes other phones than preprocess.text.phone_extractor"
            f" {run.config.text.phone_extractor}: correct that, or give the aligner's dictionary as"
            " preprocess.text.lexicon_path"
        )
    _log.warning("%s", message)


def write_words(path: Path, words: Counter[str]) -> None:
    """Writes one word and its count per line, the most frequent first."""
    ordered = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    with replacing(path) as temporary:
        temporary.write_text("".join(f"{word}\t{n}\n" for word, n in ordered), encoding="utf-8")


_log = get_logger(__name__)
