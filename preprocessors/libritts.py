"""LibriTTS (Zen et al. 2019, arXiv:1904.02882) and LibriTTS-R (Koizumi et al. 2023), CC BY 4.0.

    <subset>/<speaker>/<chapter>/<id>.wav
    <subset>/<speaker>/<chapter>/<id>.normalized.txt

All subsets found in the folder are used, such as `train-clean-100` and `train-clean-360`.
"""

from pathlib import Path

from config.preprocess import CorpusConfig
from preprocessors.collector import Collector, audio_in, require_layout
from preprocessors.corpora import Archive, Corpus
from preprocessors.manifest import Listing

_TEXT = ".normalized.txt"


def utterances(root: Path, dataset: str, options: CorpusConfig) -> Listing:
    """Lists the utterances of all subsets; speakers are called `<dataset>_<number>`."""
    layout, pattern = f"<subset>/<speaker>/<chapter>/<id>{_TEXT}", f"[!.]*/[!.]*/[!.]*/[!.]*{_TEXT}"
    require_layout(root, dataset, layout, pattern)
    collector = Collector(dataset, options)
    for chapter in sorted(root.glob("[!.]*/[!.]*/[!.]*/")):
        texts = sorted(chapter.glob(f"[!.]*{_TEXT}"))
        by_id = {path.name.removesuffix(_TEXT): path for path in texts}
        collector.add_texts(by_id, audio_in(chapter), root, chapter.parent.name)
    return collector.listing()


CORPUS = Corpus(
    utterances=utterances,
    archive=Archive(
        url="https://www.openslr.org/resources/60/train-clean-100.tar.gz",
        sha256="c5608bf1ef74bb621935382b8399c5cdd51cd3ee47cec51f00f885a64c6c7f6b",
        licence="LibriTTS, Heiga Zen et al. 2019: CC BY 4.0",
        complete="train-clean-100",
    ),
    licence="CC BY 4.0",
    hub_name="mythicinfinity/libritts",
)
