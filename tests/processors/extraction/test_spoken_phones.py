"""Phones that a table has, and names that stage 1 refuses."""

import numpy as np
import pytest

from config.preprocess import CorpusConfig, PreprocessConfig
from config.schema import Config
from preprocessors.manifest import Utterance, safe_id
from processors.alignment.textgrid import find_textgrid
from processors.audio.files import write_wav
from processors.durations.sources import durations_in, match_names
from processors.extraction.features import feature_dependence
from processors.extraction.plan import list_corpus
from processors.extraction.shards import Trace, UtteranceReader
from utils.errors import InputError

RATE = 22050


def test_phones_of_the_corpus_are_read_in_place_of_the_text(tmp_path):
    write_wav(tmp_path / "a.wav", 0.3 * np.sin(np.arange(RATE) * 0.05), RATE)
    config = PreprocessConfig()
    plain = Utterance("a", tmp_path / "a.wav", "Read it.", "x")
    marked = Utterance("a", tmp_path / "a.wav", "Read it.", "x", phones="{R IY1 D} {IH1 T}.")
    spoken = [UtteranceReader(config).read(u, Trace())[1].phones for u in (plain, marked)]
    assert spoken[0][1:4] == ("R", "EH1", "D")
    assert spoken[1][1:] == ("R", "IY1", "D", "IH1", "T", "<.>")
    identity = feature_dependence(config, tmp_path).identity
    assert identity(plain) != identity(marked)


@pytest.mark.parametrize("n", [1, 2])
def test_refused_names_are_listed_where_the_split_fails_for_want_of_utterances(tmp_path, n):
    table = "".join(f"{id}|One.\n" for id in ["../a", "b", "c"][: n + 1])
    (tmp_path / "metadata.csv").write_text(f"{table}d|Two.\n")
    for id in "bd":
        (tmp_path / f"{id}.wav").touch()
    options = PreprocessConfig(corpus={"mine": CorpusConfig("folder")})
    config = Config("tts", "", ("mine",), {"mine": str(tmp_path)}, "", None, options)
    message = r"(?s)none are left to train on.* \d more are rejected:.*\.csv:1: '\.\./a' is not"
    with pytest.raises(InputError, match=message):
        list_corpus(config, "mine")


def test_files_of_durations_are_found_by_the_name_of_a_recording(tmp_path):
    name = "Recording (3)"
    utterance = Utterance(safe_id(name), tmp_path / f"{name}.wav", "One.", "x", name=name)
    (tmp_path / f"{name}.TextGrid").touch()
    assert find_textgrid(tmp_path, utterance) == tmp_path / f"{name}.TextGrid"
    assert list(match_names(durations_in(tmp_path), {utterance.id}).entries) == [utterance.id]
