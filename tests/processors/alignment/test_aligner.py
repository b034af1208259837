"""How aligners are found by name, and what they may offer."""

import sys
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors import alignment
from processors.alignment.aligner import (
    AlignedWord,
    AlignmentError,
    aligned_words,
    find_aligner,
    is_punctuated,
    make_aligner,
    merge,
    naming,
    pauses_after,
)
from processors.records import TimedPhone
from tests.processors.utterances import spoken_text
from utils.errors import InputError

ALIGNERS = get_args(get_type_hints(PreprocessConfig)["aligner"])
UTTERANCE = Utterance("u1", Path("u1.wav"), "Hi.", "ann")


@pytest.mark.parametrize("aligner", ALIGNERS)
def test_each_aligner_reads_a_file_or_computes_and_only_hmm_is_trained(aligner, tmp_path):
    config = PreprocessConfig(aligner=aligner)
    files = {"textgrid": "TextGrid/u1.TextGrid", "imported": "alignments/u1.json"}
    expected = tmp_path / files[aligner] if aligner in files else None
    definition = find_aligner(config)
    path = definition.files(config, tmp_path)(UTTERANCE) if definition.files else None
    assert path == expected
    is_default = definition is find_aligner(PreprocessConfig(aligner="none"))
    assert is_default == (aligner in ("learned", "none"))
    assert (definition.plan_training is not None) == (aligner == "hmm")


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("", "does not end with ALIGNER = Aligner"),
        ("ALIGNER = Aligner(make=print, file=print)", "line 2: .* argument 'file'"),
        ("ALIGNER = Aligner(files=print)", "line 2: .* argument: 'make'"),
    ],
)
def test_a_file_that_is_no_aligner_is_refused_with_its_name(end, message, tmp_path, monkeypatch):
    start = "from processors.alignment.aligner import Aligner\n"
    (tmp_path / "broken.py").write_text(start + end)
    monkeypatch.setattr(alignment, "__path__", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "processors.alignment.broken", raising=False)
    config = PreprocessConfig(aligner="broken")
    with pytest.raises(InputError, match=rf"processors/alignment/broken\.py.*{message}"):
        find_aligner(config)


@pytest.mark.parametrize("aligner", ["textgrid", "imported", "hmm"])
def test_an_aligner_without_its_files_is_refused_when_it_is_made(aligner, tmp_path):
    with pytest.raises(InputError, match=str(tmp_path)):
        make_aligner(PreprocessConfig(aligner=aligner), tmp_path, tmp_path)


def test_an_error_is_named_by_its_file():
    with pytest.raises(AlignmentError, match=r"^a/u1\.json: too short$"), naming("a/u1.json"):
        raise AlignmentError("too short")


SPOKEN = spoken_text("Hi, you there?", "<sil> Hi=HH-AY1 <,> you=Y-UW1 there=DH-EH1-R <?>")


def aligned(text, start_s, end_s, pause="", phones=("AA1", "B")):
    edges = np.linspace(start_s, end_s, len(phones) + 1).tolist()
    return AlignedWord(text, tuple(map(TimedPhone, phones, edges[:-1], edges[1:])), pause)


def test_a_boundary_between_words_in_letters_lasts_as_long_as_the_silence_there():
    spoken = spoken_text("so a b.", "<sil> so=s-o <space> a=a <space> b=b <.>")
    assert pauses_after(SPOKEN) == ["<,>", "", "<?>"]
    assert pauses_after(spoken) == ["<space>", "<space>", "<.>"]
    assert is_punctuated(spoken) == [False, False, True]
    so = [TimedPhone("s", 0.1, 0.2), TimedPhone("o", 0.2, 0.3)]
    timed = [so, [TimedPhone("a", 0.5, 0.6)], [TimedPhone("b", 0.6, 0.7)]]
    alignment = merge(aligned_words(spoken, timed), 1.0, 0.1)
    assert alignment.phones == spoken.phones
    assert alignment.words == spoken.words
    expected = [0.1, 0.1, 0.1, 0.2, 0.1, 0.0, 0.1, 0.1]
    assert np.diff(alignment.boundaries_s) == pytest.approx(np.array(expected))


def test_sequence_of_the_frontend_comes_back_with_the_silences_measured():
    words = [
        aligned("Hi", 0.5, 0.7, "<,>", ("HH", "AY1")),
        aligned("you", 0.9, 1.1, "", ("Y", "UW1")),
        aligned("there", 1.1, 1.4, "<?>", ("DH", "EH1", "R")),
    ]
    alignment = merge(words, duration_s=2.0, edge_silence_s=0.1)
    assert alignment.phones == SPOKEN.phones
    assert alignment.words == SPOKEN.words
    expected = [0.4, 0.5, 0.6, 0.7, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    assert alignment.boundaries_s == pytest.approx(np.array(expected))


@pytest.mark.parametrize(
    ("pause", "gap_s", "between", "lengths"),
    [
        ("<,>", 0.0, ["<,>"], [0.0]),  # punctuation without a silence
        ("", 0.03, ["<sp>"], [0.03]),  # a silence without punctuation
        ("", 0.02, [], []),  # a gap that its neighbours share
    ],
)
def test_pauses_between_words_are_those_of_text_and_sound(pause, gap_s, between, lengths):
    words = [aligned("a", 0.03, 0.4, pause), aligned("b", 0.4 + gap_s, 0.6, "<.>")]
    alignment = merge(words, duration_s=0.65, edge_silence_s=0.1)
    assert list(alignment.phones) == ["<sil>", "AA1", "B", *between, "AA1", "B", "<.>"]
    n = len(between)
    assert np.diff(alignment.boundaries_s)[3 : 3 + n] == pytest.approx(lengths)
    assert alignment.boundaries_s[3] == pytest.approx(0.4 + (0.0 if between else gap_s / 2))
    assert alignment.boundaries_s[[0, 1, -2, -1]] == pytest.approx([0.0, 0.03, 0.6, 0.65])
    assert [word[1:] for word in alignment.words] == [(1, 3), (3 + n, 5 + n)]


def test_overlaps_and_phones_past_the_end_never_turn_time_back():
    words = [aligned("a", 0.2, 0.5), aligned("b", 0.4, 1.2), aligned("c", 1.2, 1.4, "<.>")]
    alignment = merge(words, duration_s=1.0, edge_silence_s=0.1)
    assert alignment.phones == ("<sil>", *("AA1", "B") * 3, "<.>")
    assert np.diff(alignment.boundaries_s).min() == 0
    assert alignment.boundaries_s[[0, -1]] == pytest.approx([0.1, 1.0])


def test_a_word_that_was_not_found_leaves_its_punctuation():
    words = [aligned("a", 0.2, 0.4), AlignedWord("lost", (), "<,>"), aligned("b", 0.5, 0.6, "<.>")]
    alignment = merge(words, 0.7, 0.1)
    assert alignment.phones == ("<sil>", "AA1", "B", "<,>", "AA1", "B", "<.>")
    assert [word.text for word in alignment.words] == ["a", "b"]


@pytest.mark.parametrize(
    "words", [[], [aligned("late", 2.0, 2.4, "<.>")], [AlignedWord("x", (), "<.>")]]
)
def test_an_alignment_without_a_phone_in_the_audio_is_refused(words):
    with pytest.raises(AlignmentError, match="no phone of the alignment lies in the audio"):
        merge(words, duration_s=1.0, edge_silence_s=0.1)
