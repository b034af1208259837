"""VCTK (Veaux, Yamagishi and MacDonald; 0.92: CC BY 4.0, 0.80: ODC-By 1.0), about 110 speakers.

    txt/<speaker>/<id>.txt
    wav48_silence_trimmed/<speaker>/<id>_mic1.flac      0.92
    wav48/<speaker>/<id>.wav                            0.80

Of the two microphones of 0.92, the first is used: it exists for every speaker.
"""

from pathlib import Path

from config.preprocess import CorpusConfig
from preprocessors.collector import Collector, audio_in, require_layout
from preprocessors.corpora import Archive, Corpus
from preprocessors.manifest import Listing

_TRIMMED = "wav48_silence_trimmed"
_MICROPHONE = "_mic1"


def utterances(root: Path, dataset: str, options: CorpusConfig) -> Listing:
    """Lists the utterances of VCTK; speakers are called `<dataset>_<speaker>`: `VCTK_p225`."""
    audio = f"{_TRIMMED}/<speaker>/<id>{_MICROPHONE}.flac or wav48/<speaker>/<id>.wav"
    layout = f"txt/<speaker>/<id>.txt and {audio}"
    require_layout(root, dataset, layout, "txt/[!.]*/[!.]*.txt", "wav48*/[!.]*/[!.]*")
    collector = Collector(dataset, options)
    audio_root = root / (_TRIMMED if (root / _TRIMMED).is_dir() else "wav48")
    folders = [*audio_root.glob("[!.]*/"), *(root / "txt").glob("[!.]*/")]
    for folder in (audio_root / name for name in sorted({folder.name for folder in folders})):
        texts = sorted((root / "txt" / folder.name).glob("[!.]*.txt"))
        recordings = audio_in(folder)
        if audio_root.name == _TRIMMED:
            first = (item for item in recordings.items() if item[0].endswith(_MICROPHONE))
            recordings = {name.removesuffix(_MICROPHONE): paths for name, paths in first}
        collector.add_texts({path.stem: path for path in texts}, recordings, root, folder.name)
    return collector.listing()


CORPUS = Corpus(
    utterances=utterances,
    archive=Archive(
        url="https://datashare.ed.ac.uk/bitstream/handle/10283/3443/VCTK-Corpus-0.92.zip",
        sha256="f96258be9fdc2cbff6559541aae7ea4f59df3fcaf5cf963aae5ca647357e359c",
        licence="CSTR VCTK Corpus 0.92, University of Edinburgh: CC BY 4.0",
        complete="txt",
    ),
    licence="CC BY 4.0 (version 0.92)",
    hub_name="CSTR-Edinburgh/vctk",
)
