"""The aligner "hmm": a hidden Markov model trained on the corpus, for any language and phones.

Stage 1 trains the model on a part of the recordings before it aligns the first of them, and keeps
it in the folder of the processed data. A few utterances more or less do not train it again.
"""

from pathlib import Path

from config.preprocess import PreprocessConfig
from processors.alignment.aligner import Aligner
from processors.alignment.hmm.aligner import HmmAligner
from processors.alignment.hmm.plan import MODEL_FILE, plan_training


def _make(config: PreprocessConfig, dataset_root: Path, folder: Path) -> HmmAligner:
    return HmmAligner(folder / MODEL_FILE, config.edge_silence_s)


ALIGNER = Aligner(make=_make, plan_training=plan_training)
