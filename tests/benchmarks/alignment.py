"""How far the boundaries of the built-in aligners are from those of the Montreal Forced Aligner.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.alignment [CORPUS]

CORPUS is in LJ Speech layout with a folder TextGrid. Onsets of phones are compared, in recordings
where both have the same number of phones. MFA rounds to 10 ms; the columns to the right are of
boundaries rounded in the same way. Times are CPU seconds, training included.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from config.schema import CorpusConfig, PreprocessConfig
from preprocessors.corpora import read_corpus
from preprocessors.manifest import Utterance
from processors.alignment import Aligner, AlignmentError, make_aligner, plan_training
from processors.alignment.textgrid import find_textgrid, read_textgrid
from processors.audio import read_audio
from processors.text.frontend import TextFrontend
from processors.text.symbols import PAUSES

DEMO = Path(__file__).parents[2] / "egs/_demo/LJSpeech-mini"
BAD = {"LJ001-0013", "LJ006-0114"}  # whose TextGrids do not fit


def main() -> None:
    """Prints a line for each aligner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, nargs="?", default=DEMO)
    corpus = parser.parse_args().corpus
    columns = "median   <=10  <=20  <=50 ms"
    print(f"aligner        phones   {columns}  lead | rounded {columns}      s")  # noqa: T201
    for name in ("pocketsphinx", "hmm"):
        start = time.process_time()
        onsets_ms = np.array(list(_onsets(name, corpus))) * 1000
        seconds = time.process_time() - start
        found, reference = onsets_ms.T
        lead = float(np.median(found - reference))
        print(  # noqa: T201
            f"{name:13}{len(found):8} {_row(found - reference)} {lead:+7.1f} |"
            f" {_row(np.round(found / 10) * 10 - reference)} {seconds:6.1f}"
        )


def _row(errors_ms: np.ndarray) -> str:
    sizes = np.abs(errors_ms)
    shares = (f"{100 * float((sizes < limit + 0.01).mean()):5.1f}" for limit in (10, 20, 50))
    return f"{float(np.median(sizes)):9.1f} {' '.join(shares)}"


def _onsets(name: str, corpus: Path) -> Iterator[tuple[float, float]]:
    """Every onset as found and as MFA has it, seconds."""
    config = PreprocessConfig(aligner=name, backend="sequential")
    options = CorpusConfig(format="ljspeech")
    utterances = read_corpus("LJSpeech", corpus, options).utterances
    frontend = TextFrontend(config.text, "en-us")
    with TemporaryDirectory() as folder:
        training = plan_training(config, utterances, Path(folder))
        if training is not None:
            training.carry_out(1)
        align = make_aligner(config, corpus, Path(folder))
        for utterance in utterances:
            if utterance.id not in BAD:
                yield from _onsets_in(utterance, align, frontend, config, corpus)


def _onsets_in(
    utterance: Utterance,
    align: Aligner,
    frontend: TextFrontend,
    config: PreprocessConfig,
    corpus: Path,
) -> Iterator[tuple[float, float]]:
    wav = read_audio(utterance.audio, config).wav
    grid = read_textgrid(find_textgrid(corpus / "TextGrid", utterance))
    try:
        found = align(utterance, wav, config.sample_rate, frontend(utterance.text))
    except AlignmentError as error:
        print(f"{utterance.id}: {error}")  # noqa: T201
        return
    pairs = zip(found.phones, found.boundaries_s, strict=False)
    onsets = [start for phone, start in pairs if phone not in PAUSES]
    if len(onsets) == len(grid.phones):
        yield from zip(onsets, (phone.start_s for phone in grid.phones), strict=True)


if __name__ == "__main__":
    main()
