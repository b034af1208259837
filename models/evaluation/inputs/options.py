"""Inputs and options of stage 4: folders of systems, references, metrics and checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from config.preprocess import PreprocessConfig
from config.schema import Config, InferenceConfig
from models.base.registry import config_of
from models.checkpoint.loading import open_model
from models.synthesizer.runs.results import TestingSet, default_output
from processors.metrics.recognition.user_models import UserModels
from utils.config_tree import overridden

ALL = "all"


@dataclass(frozen=True)
class EvaluationInputs:
    """Folders of synthesised speech, one for each system, and where their references are."""

    folders: tuple[Path, ...]
    preprocess: PreprocessConfig  # the mel, and where the datasets of stage 1 are
    recordings: Path | None = None  # folder of `<id>.wav`, or with `wavs`; None: as in stage 1
    # espeak codes by speaker, "" if unknown, for utterances that are in no manifest
    languages: Mapping[str, str] = field(default_factory=dict)
    datasets: tuple[str, ...] = ()  # to search for files that name none
    texts: Mapping[str, str] | None = None  # by id, for copies and files of unknown origin
    # of the vocoder that resynthesises recordings
    inference: InferenceConfig = field(default_factory=InferenceConfig)


@dataclass(frozen=True)
class EvaluationOptions:
    """How a run scores its inputs."""

    metrics: tuple[str, ...] = (ALL,)  # names, or `all` for those that apply
    dataset: str | None = None  # score only files of this dataset
    testing_set: TestingSet | None = None  # score only this split of it, and all of the split
    checks: tuple[str, ...] | None = None  # names, or `all`; None: all with all metrics, else none
    natural: Path | None = None  # folder of second readings, named by the id of the sentence
    copies: bool = True  # score resynthesised recordings, too, if the systems are not copies
    vocoder: str | Path | None = None  # resynthesises; None: that of stage 3, if it is built in
    resample: bool = False  # accept a vocoder of another mel or sample rate
    user_models: UserModels = field(default_factory=UserModels)
    # of page, comparison and copies; None: that of the only system, or `comparison` in the first
    folder: Path | None = None


def inputs_of_model(
    reference: str | Path,
    outputs: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    recordings: Path | None = None,
) -> EvaluationInputs:
    """Builds the inputs for speech that stage 3 wrote with a model.

    Args:
        reference: Experiment folder, a checkpoint in it, or a name on the Hub.
        outputs: Folders of stage 3; none: `result` in the folder of the experiment.
        overrides: `key.path=value` for the configuration of the experiment.

    Raises:
        InputError: If the model cannot be loaded, or is from the Hub and `outputs` is empty.
    """
    model = open_model(reference)
    config = config_of(overridden(model.tree, overrides))
    folders = outputs or [default_output(reference, model.home)]
    inputs = inputs_of_config(config, folders, recordings)
    languages = {speaker.name: speaker.language for speaker in model.assets.speakers}
    return replace(inputs, languages={**inputs.languages, **languages})


def inputs_of_config(
    config: Config, folders: Sequence[Path], recordings: Path | None
) -> EvaluationInputs:
    """Builds the inputs; unknown speakers get the common language of the datasets, if any."""
    languages = {config.preprocess.corpus_of(name).language for name in config.dataset}
    return EvaluationInputs(
        tuple(folders),
        config.preprocess,
        recordings,
        languages={"": languages.pop()} if len(languages) == 1 else {},
        datasets=config.dataset,
        inference=config.inference,
    )
