"""Generated data in place of what stage 1 wrote (`train.synthetic_utterances`)."""

import string
from functools import reduce

from config.preprocess import CorpusConfig
from config.schema import Config
from models.base.assets import Assets, Speaker
from processors.dataset.generated import GeneratedFeatures, GeneratedRecordings
from processors.dataset.statistics import CorpusStats, corpus_stats
from processors.text.symbols import APOSTROPHE, ARPABET, Vocabulary, model_vocabulary

_STATS_OF = 200  # utterances of each dataset: more change nothing


def generated_assets(config: Config) -> Assets:
    """Makes the assets of a model that is trained on generated data: a speaker for each dataset."""
    speakers = tuple(Speaker(name, _language(config, name)) for name in sorted(config.dataset))
    if config.task == "vocoder":
        return Assets(config.preprocess.mel, speakers=speakers)
    vocabulary = _vocabulary(config)
    stats: list[CorpusStats] = []
    for source in generated_features(config, vocabulary):
        some = source.ids[:: -(-len(source.ids) // _STATS_OF)]
        stats.append(corpus_stats(source, some, config.preprocess))
    return Assets(
        config.preprocess.mel,
        vocabulary=vocabulary,
        speakers=speakers,
        stats=reduce(CorpusStats.merge, stats),
        trained_phones=frozenset(_symbols(vocabulary)),
    )


def generated_features(config: Config, vocabulary: Vocabulary) -> list[GeneratedFeatures]:
    """Makes utterances in place of each dataset."""
    preprocess, train = config.preprocess, config.train
    return [
        GeneratedFeatures(
            name,
            train.synthetic_utterances,
            preprocess.mel,
            _symbols(vocabulary),
            (preprocess.f0_min, preprocess.f0_max),
            timed=preprocess.has_aligner,
            seed=train.random_seed,
        )
        for name in config.dataset
    ]


def generated_recordings(config: Config) -> list[GeneratedRecordings]:
    """Makes recordings in place of each dataset."""
    n, mel, seed = (
        config.train.synthetic_utterances,
        config.preprocess.mel,
        config.train.random_seed,
    )
    return [GeneratedRecordings(name, n, mel, seed=seed) for name in config.dataset]


def _vocabulary(config: Config) -> Vocabulary:
    """Symbols of the same kind as those of a corpus; for IPA, the names of ARPAbet."""
    text = config.preprocess.text
    letters = (*string.ascii_lowercase, APOSTROPHE) if text.in_letters else ()
    return model_vocabulary(text, letters or ARPABET)


def _symbols(vocabulary: Vocabulary) -> tuple[str, ...]:
    """All symbols but the padding."""
    return vocabulary.symbols[1:]


def _language(config: Config, dataset: str) -> str:
    return config.preprocess.corpus.get(dataset, CorpusConfig()).language
