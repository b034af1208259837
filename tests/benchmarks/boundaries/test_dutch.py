import json

import numpy as np
import pytest
import soundfile

from tests.benchmarks.boundaries.clips import WordOnsets
from tests.benchmarks.boundaries.dutch import dutch_clips


def word(text, *phones):
    return {
        "word": text,
        "phones": [{"start": start, "duration": 0.1, "phone": phone} for phone, start in phones],
    }


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "wavs").mkdir()
    for name in ("a", "b"):
        soundfile.write(tmp_path / f"wavs/{name}.flac", np.ones(8000) / 2, 8000)
    (tmp_path / "metadata.csv").write_text("a|Een kat.|Een kat.\nb|Nee.|Nee.\n")
    said = [
        word("een", ("e", 0.0), ("n", 0.1)),
        word("<eps>", ("SIL", 0.2)),
        word("kat", ("k", 0.3)),
    ]
    (tmp_path / "align.jsonl").write_text(json.dumps({"id": "a", "words": said}) + "\n")
    return tmp_path


def test_words_have_the_times_of_the_file_and_silence_is_none(corpus):
    (clip,) = dutch_clips(corpus, as_aligned=False)
    assert clip.utterance.text == "Een kat."
    assert clip.utterance.language == "nl"
    assert clip.words == (WordOnsets("een", (0.0, 0.1)), WordOnsets("kat", (0.3,)))


def test_phones_of_the_file_are_said_in_its_place(corpus):
    (clip,) = dutch_clips(corpus, as_aligned=True)
    assert clip.utterance.text == "{e n} {k}"
    assert [one.text for one in clip.words] == ["e n", "k"]
