from pathlib import Path

import numpy as np
import pytest

from config.preprocess import CorpusConfig, PreprocessConfig
from config.schema import Config
from processors.audio.files import write_wav
from processors.extraction.checking import check_corpus
from utils.errors import InputError

RATE = 22050


def config_of(root: Path, task="tts", **preprocess) -> Config:
    options = PreprocessConfig(
        backend="sequential",
        processed_dir=str(root / "data"),
        corpus={"mine": CorpusConfig("folder")},
        **preprocess,
    )
    return Config(task, "", ("mine",), {"mine": str(root)}, str(root / "ckpts"), None, options)


def sound(seconds: float) -> np.ndarray:
    return 0.3 * np.sin(np.arange(int(seconds * RATE)) * 0.05)


@pytest.fixture
def corpus(tmp_path):
    """One good recording, and one of each fault."""
    wavs = {
        "good": sound(1.0),
        "silent": np.zeros(RATE),
        "clipped": np.clip(9 * sound(1.0), -0.995, 0.995),
        "long": sound(40),
        "strange": sound(1.0),
        "sign": sound(1.0),
    }
    for id, wav in wavs.items():
        write_wav(tmp_path / f"{id}.wav", wav, RATE)
    texts = {"strange": "The zzyxqv.", "sign": "漢字", "missing": "Not there."}
    table = "".join(f"{id}|{texts.get(id, 'One two.')}\n" for id in [*wavs, "missing"])
    (tmp_path / "metadata.csv").write_text(table)
    return tmp_path


def test_each_fault_is_listed_with_its_utterance_and_nothing_is_written(corpus):
    before = sorted(corpus.rglob("*"))
    check = check_corpus(config_of(corpus), "mine", 1)
    report = check.report()

    assert [item.id for item in check.rejected] == ["long", "missing", "sign", "silent"]
    for line in (
        "mine: 7 utterances, 0.00 h, 1.0 to 1.0 s each, in ",
        "  long: long.wav: 40.0 s is too long (preprocess.max_seconds is 30); cut it",
        "  missing: metadata.csv:7: no audio file missing.wav or .flac",
        "  sign: '漢'",
        "  silent: silent.wav: the recording is silent",
        "% of the samples are clipped: clipped\n",
        "Words in no lexicon, whose pronunciation is guessed:\n  zzyxqv: strange\n",
        "mine: stage 1 would fail; preprocess.max_bad_ratio 0.01 allows 3 of 7 (a small corpus may"
        " have 3, up to half of it); correct them or raise it",
    ):
        assert line in report
    assert not check.passes
    assert sorted(corpus.rglob("*")) == before


def test_a_corpus_that_stage_1_would_accept_passes(corpus):
    check = check_corpus(config_of(corpus, max_bad_ratio=0.6), "mine", 1)

    assert check.passes
    assert "stage 1 would leave them out and go on" in check.report()


def test_the_recordings_of_a_vocoder_are_checked_without_their_texts(corpus):
    check = check_corpus(config_of(corpus, "vocoder"), "mine", 1)

    assert [item.id for item in check.rejected] == ["long", "missing", "silent"]
    assert "Words in no lexicon" not in check.report()


def test_alignment_files_are_read_too(corpus):
    (corpus / "TextGrid").mkdir()
    check = check_corpus(config_of(corpus, aligner="textgrid"), "mine", 1)

    assert "good.TextGrid: no TextGrid" in check.report()


def test_a_fault_of_no_single_utterance_is_an_error(corpus):
    with pytest.raises(InputError, match=r"there is no folder .*TextGrid"):
        check_corpus(config_of(corpus, aligner="textgrid"), "mine", 1)
