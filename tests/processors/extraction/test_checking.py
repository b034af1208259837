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
    keys = {"backend": "sequential", "processed_dir": str(root / "data")}
    options = PreprocessConfig(corpus={"mine": CorpusConfig("folder")}, **keys, **preprocess)
    return Config(task, "", ("mine",), {"mine": str(root)}, str(root / "ckpts"), None, options)


def sound(seconds: float) -> np.ndarray:
    return 0.3 * np.sin(np.arange(int(seconds * RATE)) * 0.05)


@pytest.fixture
def corpus(tmp_path):
    """One good recording, and one of each fault."""
    wavs = {"good": sound(1.0), "silent": np.zeros(RATE), "long": sound(40)}
    wavs |= {"clipped": np.clip(9 * sound(1.0), -0.995, 0.995)}
    wavs |= {"strange": sound(1.0), "sign": sound(1.0)}
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
        "  4 to correct\nfound in  utterances  what\n",
        "corpus    missing     metadata.csv:7: no audio file missing (.wav, .flac, .mp3 ...)\n",
        "audio     long        long.wav: 40.0 s is too long (preprocess.max_seconds is 30); cut it",
        "text      sign        '漢'",
        "audio     silent      silent.wav: the recording is silent",
        "% of the samples are clipped\n",
        "word      strange     zzyxqv\n",
    ):
        assert line in report
    rule = (
        "preprocess.max_bad_ratio 0.01 allows 3 of 7 (a small corpus may have 3, up to half of it)"
    )
    assert check.verdict == f"mine: stage 1 would fail; {rule}; correct them or raise it"
    kinds = [finding.kind for finding in check.findings]
    assert kinds == ["corpus", "audio", "audio", "text", "notice", "word"]  # worst first
    assert not check.passes
    assert sorted(corpus.rglob("*")) == before


def test_a_corpus_that_stage_1_would_accept_passes_and_a_vocoder_needs_no_texts(corpus):
    check = check_corpus(config_of(corpus, max_bad_ratio=0.6), "mine", 1)
    assert check.passes
    assert "stage 1 would leave them out and go on" in check.verdict
    check = check_corpus(config_of(corpus, "vocoder"), "mine", 1)
    assert [item.id for item in check.rejected] == ["long", "missing", "silent"]
    assert "word" not in [finding.kind for finding in check.findings]


def test_alignment_files_are_read_too_and_a_fault_of_no_single_utterance_is_an_error(corpus):
    with pytest.raises(InputError, match=r"there is no folder .*TextGrid"):
        check_corpus(config_of(corpus, aligner="textgrid"), "mine", 1)
    (corpus / "TextGrid").mkdir()
    check = check_corpus(config_of(corpus, aligner="textgrid"), "mine", 1)
    assert "good.TextGrid: No such file" in check.report()


@pytest.mark.parametrize("names", [(), ("good",), ("good", "strange")])
def test_everything_is_listed_of_a_corpus_with_too_few_utterances(corpus, names):
    table = "".join(f"{id}|One two.\n" for id in (*names, "silent", "lost", "../x"))
    (corpus / "metadata.csv").write_text(table)
    if not names:
        (corpus / "silent.wav").unlink()
    check = check_corpus(config_of(corpus), "mine", 1)
    lost = {finding.ids[0]: finding.text for finding in check.findings if finding.ids}
    assert "no audio file lost" in lost["lost"]
    assert "is not the name of a file in the corpus" in lost["../x"]
    assert not check.passes
    if len(names) < 2:
        assert check.findings[0].kind == "corpus"
        assert check.summary()["to_correct"] == 4


def test_the_summary_has_the_names_of_the_corpus_beside_ids(corpus):
    (corpus / "good.wav").rename(corpus / "Take (1).wav")
    (corpus / "metadata.csv").write_text("Take (1)|Zzyxqv.\nsign|One.\nstrange|One.\n")
    (word,) = (row for row in check_corpus(config_of(corpus), "mine", 1).summary()["findings"])
    assert word["names"] == ["Take (1)"]
    assert word["ids"][0].startswith("Take_1_-")
    assert word["text"] == "Zzyxqv"
