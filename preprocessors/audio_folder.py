"""Recordings without text, for vocoders: any folder of audio files, at any depth.

Files are known by their suffix (`AUDIO_SUFFIXES` of the collector). Hidden files and folders are
left out. The id of a recording is made of its path below the folder (`manifest.safe_id`):
`anna/001.wav` is `anna_001`, `My take 1.wav` is `My_take_1-acd551e4`. All recordings are by the
dataset's speaker (`preprocess.corpus.<dataset>.speaker`, or its name).
"""

import os
from collections.abc import Iterator
from pathlib import Path

from config.preprocess import CorpusConfig
from preprocessors.collector import AUDIO_SUFFIXES, UNREADABLE_SUFFIXES, Collector
from preprocessors.corpora import Corpus
from preprocessors.manifest import Listing, safe_id
from utils.errors import InputError

SUFFIXES = AUDIO_SUFFIXES
_SUFFIXES = SUFFIXES + UNREADABLE_SUFFIXES


def utterances(root: Path, dataset: str, options: CorpusConfig) -> Listing:
    """Lists the audio files of a folder; of the options, only speaker and language are used."""
    collector = Collector(dataset, options)
    paths = sorted(_audio_below(root))
    if not paths:
        fault = f"{dataset}: no audio file ({', '.join(SUFFIXES)}) in {root} or below"
        raise InputError(f"{fault}; set dataset_path.{dataset} to the folder of the recordings")
    readable = {path.with_suffix("") for path in paths if path.suffix.lower() in SUFFIXES}
    for path in paths:
        if path.suffix.lower() in UNREADABLE_SUFFIXES and path.with_suffix("") in readable:
            continue  # it was converted
        name = path.relative_to(root).as_posix()
        if name.isprintable():
            collector.add(recording_id(name), None, [path], name, name=name)
        else:  # such as a name that is not UTF-8, which no JSON file can hold
            collector.reject(recording_id(name), f"{name!a}: its name cannot be printed; rename it")
    return collector.listing()


def _audio_below(root: Path) -> Iterator[Path]:
    """Yields audio files at any depth; a folder that several links lead to is visited once."""
    visited = set()
    for folder, folders, names in os.walk(root, onerror=_refuse, followlinks=True):
        real = os.path.realpath(folder)
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            if name.lower().endswith(_SUFFIXES) and not name.startswith("."):
                yield Path(folder, name)


def _refuse(error: OSError) -> None:
    """Ends the listing: `os.walk` would leave out a folder that cannot be read."""
    fault = f"{error.filename}: {error.strerror}"
    raise InputError(f"{fault}; make it readable, or take it out of the corpus") from error


def recording_id(name: str) -> str:
    """Makes the id of a recording from its path relative to the corpus, with `/`."""
    return safe_id(os.path.splitext(name)[0])  # noqa: PTH122  (a name, not a path on this machine)


CORPUS = Corpus(utterances=utterances)
