"""Imported alignments, as stage 1 reads them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError, find_aligner, make_aligner
from processors.records import Word
from tests.processors.utterances import spoken_text

RATE = 1000
CONFIG = PreprocessConfig(aligner="imported", sample_rate=RATE, f_max=500.0, f0_max=400.0)
SPOKEN = spoken_text("Hi, you!", "<sil> Hi=HH-AY1 <,> you=Y-UW1 <!>")
WHOLE = ["<sil>", "HH", "AY1", "<,>", "Y", "<sp>", "UW1", "<!>"]
BYE = {"word": "Bye", "start_s": 0.2, "end_s": 0.9}
EDGES = [0.05, 0.2, 0.3, 0.4, 0.4, 0.6, 0.7, 0.8, 1.0]


def align(tmp_path, names, edges, **members):
    spans = zip(names, edges[:-1], edges[1:], strict=True)
    phones = [{"phone": name, "start_s": start, "end_s": end} for name, start, end in spans]
    return align_row(tmp_path, {"phones": phones, **members})


def align_row(tmp_path, row):
    folder = tmp_path / "alignments"
    folder.mkdir(exist_ok=True)
    (folder / "u1.json").write_text(json.dumps(row))
    utterance = Utterance("u1", tmp_path / "u1.wav", "Hi, you!", "Ada")
    return make_aligner(CONFIG, tmp_path)(utterance, np.zeros(RATE, dtype=np.float32), SPOKEN)


def test_a_complete_sequence_is_used_unchanged_and_others_get_pauses_and_the_usual_edges(tmp_path):
    alignment = align(tmp_path, WHOLE, EDGES, text="Hi, you!")
    assert alignment.phones == tuple(WHOLE)
    assert alignment.boundaries_s.tolist() == EDGES
    assert alignment.words == (Word("Hi", 1, 3), Word("you", 4, 7))
    names = ["sil", "HH", "AY1", "Y", "UW1", "sil"]
    alignment = align(tmp_path, names, [0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0])
    assert alignment.phones == SPOKEN.phones
    expected = [0.1, 0.2, 0.3, 0.4, 0.4, 0.5, 0.6, 0.7]
    assert alignment.boundaries_s.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("pitch", [-1.0, float("inf"), float("nan")])
def test_a_pitch_that_is_none_is_refused(tmp_path, pitch):
    phone = {"phone": "AY1", "start_s": 0.0, "end_s": 0.1}
    row = {"phones": [{**phone, "f0_hz": 0.0}, {**phone, "f0_hz": pitch}]}
    match = rf"u1.json: .*(f0_hz of {pitch:g}, expected Hz|Infin|NaN)"
    with pytest.raises(AlignmentError, match=match):
        align_row(tmp_path, row)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        *(([], r"list indices"), ({"phones": 1}, r"not iterable")),
        *(({"text": "a"}, r"KeyError\('phones'\)"), ({"phones": [], "words": [{}]}, r"'word'")),
        ({"phones": [{"phone": "A", "start_s": 0}]}, r"KeyError\('end_s'\)"),
        ({"phones": [{"word": "A", "start_s": 0, "end_s": 1}]}, r"KeyError\('phone'\)"),
        ({"phones": [{"phone": "A", "start_s": 0, "end_s": "x"}]}, r"could not convert"),
    ],
)
def test_an_object_of_another_form_is_named_with_what_was_expected(tmp_path, row, message):
    with pytest.raises(AlignmentError, match=rf"u1.json: expected .*{message}"):
        align_row(tmp_path, row)


@pytest.mark.parametrize(
    ("names", "members", "message"),
    [
        (WHOLE, {"text": "Hi, them!"}, r"it is of the text 'Hi, them!', not 'Hi, you!'"),
        (WHOLE, {"recording_s": 2.0}, r"it lasts 2.00 s, the recording 1.00 s"),
        (WHOLE, {"words": [BYE]}, r"its words are 'Bye', those of the text 'Hi, you!'"),
        (["<sil>", *"ABCDEFGHI", "<.>"], {}, r"it has 9 phones, the text 4"),
    ],
)
def test_what_is_of_another_text_or_recording_is_refused(tmp_path, names, members, message):
    edges = np.linspace(0, 1, len(names) + 1).tolist()
    with pytest.raises(AlignmentError, match=rf"u1.json: {message}"):
        align(tmp_path, names, edges, **members)


def test_the_folder_is_in_that_of_the_data_set_or_anywhere(tmp_path):
    utterance = Utterance("u1", tmp_path / "u1.wav", "Hi", "Ada")
    find = find_aligner(CONFIG).files
    assert find(CONFIG, tmp_path)(utterance) == tmp_path / "alignments/u1.json"
    config = replace(CONFIG, imported_dir=str(tmp_path / "mine"))
    assert find(config, Path("elsewhere"))(utterance) == tmp_path / "mine/u1.json"
