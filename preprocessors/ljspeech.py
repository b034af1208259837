"""LJ Speech 1.1 (Ito 2017, public domain), and any corpus in its layout.

    metadata.csv    id|text|normalized text      or    id|text
    wavs/<id>.wav   or .flac

The normalized text is used where there is one (it may be empty in some lines): numbers and
abbreviations are spelt out in it.
"""

from dataclasses import replace
from pathlib import Path

from config.preprocess import CorpusConfig
from preprocessors.collector import AudioFiles, require_layout
from preprocessors.corpora import Archive, Corpus
from preprocessors.folder import list_table
from preprocessors.manifest import Listing


def utterances(root: Path, dataset: str, options: CorpusConfig) -> Listing:
    """Lists the utterances of `metadata.csv`; raises InputError if it or the layout is wrong."""
    require_layout(root, dataset, "metadata.csv and wavs/", "metadata.csv", "wavs/")
    layout = replace(options, table="metadata.csv", delimiter="|", columns=())
    return list_table(dataset, layout, AudioFiles(root, ("wavs",)), [root / layout.table])


CORPUS = Corpus(
    utterances=utterances,
    archive=Archive(
        url="https://data.keithito.com/data/speech/LJSpeech-1.1.tar.bz2",
        sha256="be1a30453f28eb8dd26af4101ae40cbf2c50413b1bb21936cbcdc6fae3de8aa5",
        licence="LJ Speech 1.1, Keith Ito 2017: public domain",
        complete="metadata.csv",
    ),
    licence="public domain",
    hub_name="keithito/lj_speech",
)
