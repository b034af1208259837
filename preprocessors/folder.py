"""Your own recordings: one table and the audio files it names.

    metadata.csv          id|text, id|text|normalized text, or the columns that its first line
                          (id|speaker|text) or the config names
    <id>.wav or .flac     beside the table, or in wavs/

`id` may be a path relative to the table, with or without its ending: `anna/001.wav` is the
utterance `anna_001`. The config section `preprocess.corpus.<dataset>` names table, delimiter,
columns, encoding, speaker and language.
"""

from pathlib import Path

from config.schema import CorpusConfig
from preprocessors.audio_files import AudioFiles
from preprocessors.collector import require_layout
from preprocessors.manifest import Listing
from preprocessors.tables import read_table
from utils.config import nearest
from utils.errors import InputError

# "-" is a column to leave out of account.
_COLUMNS = ("id", "text", "normalized", "speaker", "-")


def utterances(root: Path, dataset: str, options: CorpusConfig) -> Listing:
    """Lists the utterances of a table.

    Args:
        root: Folder that holds the table.
        dataset: Name of the dataset in the config.
        options: Its `preprocess.corpus` section.

    Raises:
        InputError: If the table is missing or wrong, or the config's columns make no sense.
    """
    key = f"preprocess.corpus.{dataset}"
    if not options.delimiter:
        raise InputError(f'{key}.delimiter is empty; expected a separator such as "|" or ","')
    if options.columns:
        _check_columns(options.columns, f"{key}.columns")
    require_layout(root, dataset, f"the table {options.table}", options.table)
    return read_table(root, dataset, options, AudioFiles(root, (".", "wavs")))


def _check_columns(columns: tuple[str, ...], key: str) -> None:
    for name in columns:
        if name not in _COLUMNS:
            raise InputError(
                f"{key}: unknown column {name!r}; known: {', '.join(_COLUMNS)}"
                f"{nearest(name, _COLUMNS)}"
            )
    named = [name for name in columns if name != "-"]
    if len(set(named)) < len(named):
        raise InputError(f"{key}: a column stands twice in {list(columns)}")
    if "id" not in named or not {"text", "normalized"} & set(named):
        raise InputError(f'{key}: needs "id" and "text" (or "normalized"), found {list(columns)}')
