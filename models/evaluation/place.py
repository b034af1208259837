"""What stage 4 scores, and where it looks for what it needs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from config.schema import Config, CorpusConfig, InferenceConfig
from models.base.registry import config_of, load_config
from models.checkpoint.loading import load_model
from models.evaluation.inputs import read_texts
from models.evaluation.references import References
from models.synthesizer.speak_each import default_output
from utils.config import overridden
from utils.errors import InputError

_SINGLE = "single"  # folder of what stage 3 wrote in this mode
_RESULT = "result"  # folder of an experiment into which stage 3 writes


class Place(NamedTuple):
    """What is scored, and where its recordings are."""

    folders: tuple[Path, ...]
    references: References
    inference: InferenceConfig = InferenceConfig()

    def of_single(self) -> "Place":
        """What stage 3 wrote in its mode `single`."""
        return self._replace(folders=tuple(folder / _SINGLE for folder in self.folders))

    def with_texts(self, table: Path) -> "Place":
        """The same with a table of texts, for files that stage 3 did not write.

        Raises:
            InputError: If the table cannot be read.
        """
        return self._replace(references=replace(self.references, texts=read_texts(table)))


def place_of_model(
    reference: str | Path,
    outputs: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    recordings: Path | None = None,
) -> Place:
    """What stage 3 wrote with a model.

    Args:
        reference: Experiment folder, a checkpoint in it, or a name on the Hub.
        outputs: Where stage 3 wrote; none: `result` in the experiment's folder.
        overrides: `key.path=value` for the experiment's own configuration.
        recordings: A folder of recordings; None: those of stage 1.

    Raises:
        InputError: If the model cannot be loaded, or the output must be named and is not.
    """
    model = load_model(reference)
    config = config_of(overridden(model.tree, overrides))
    languages = {speaker.name: speaker.language for speaker in model.speakers}
    folders = tuple(outputs) or (default_output(reference, model.home),)
    return _place(folders, config, languages, recordings)


def place_of_config(
    config: Path,
    outputs: Sequence[Path],
    overrides: Sequence[str] = (),
    recordings: Path | None = None,
) -> Place:
    """What was written with a model that is not at hand; see `place_of_model`.

    Raises:
        InputError: If the configuration is wrong.
    """
    return _place(tuple(outputs), load_config(config, overrides), {}, recordings)


def _place(
    folders: tuple[Path, ...], config: Config, languages: dict[str, str], recordings: Path | None
) -> Place:
    """Speakers that nobody knows speak the language of the data sets, where these have one."""
    corpora = [config.preprocess.corpus.get(name, CorpusConfig()) for name in config.dataset]
    spoken = {corpus.language for corpus in corpora}
    common = {"": spoken.pop()} if len(spoken) == 1 else {}
    references = References(config.preprocess, recordings, common | languages, config.dataset)
    return Place(folders, references, config.inference)


def names_of(folders: Sequence[Path], taken: Sequence[str] = ()) -> list[str]:
    """The shortest ends of paths that tell folders apart, in their order.

    `result` and `single` say nothing by themselves: what an experiment wrote there has its name.

    Args:
        folders: At least one.
        taken: Names that none may get.

    Raises:
        InputError: If a folder is named twice.
    """
    parts = [folder.resolve().parts for folder in folders]
    for n, one in enumerate(parts):
        if one in parts[:n]:
            raise InputError(f"--infer_output_dir names {folders[n]} twice")
    telling = [_telling(one) for one in parts]
    if len(set(telling)) == len(parts):
        parts = telling
    names = []
    for n, one in enumerate(parts):
        others = [other for m, other in enumerate(parts) if m != n]
        length = next(
            length
            for length in range(1 + one[-1:].count(_SINGLE), len(one) + 1)
            if all(other[-length:] != one[-length:] for other in others)
            and "/".join(one[-length:]) not in taken
        )
        names.append("/".join(one[-length:]))
    return names


def _telling(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The parts of a path without the `result` that every experiment has."""
    folder, mode = (parts[:-1], parts[-1:]) if parts[-1] == _SINGLE else (parts, ())
    return folder[:-1] + mode if folder[-1] == _RESULT else parts
