"""The built-in aligner on real recordings, against the Montreal Forced Aligner."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from config.preprocess import PreprocessConfig
from config.text import TextConfig
from preprocessors.manifest import Utterance
from processors.alignment import pocketsphinx as aligner_module
from processors.alignment.aligner import AlignmentError, make_aligner
from processors.alignment.textgrid import read_textgrid
from processors.records import SpokenText, Word
from processors.text.symbols import PAUSES
from utils.errors import InputError

DEMO = Path(__file__).parents[3] / "egs/_demo/LJSpeech-mini"
CONFIG = PreprocessConfig()
IDS = ("LJ001-0002", "LJ001-0004", "LJ001-0008", "LJ001-0012", "LJ001-0016", "LJ001-0024")


def recording(id):
    return soundfile.read(DEMO / f"wavs/{id}.flac", dtype="float32")[0]


def spoken_of(words):
    """What the frontend would give for [("in", "IH0 N"), ...]."""
    phones, spans = ["<sil>"], []
    for text, said in words:
        names = said.split()
        spans.append(Word(text, len(phones), len(phones) + len(names)))
        phones += names
    return SpokenText("", "", (*phones, "<.>"), tuple(spans))


SAID = "IH0 N", "B IY1 IH0 NG", "K AH0 M P EH1 R AH0 T IH0 V L IY0", "M AA1 D ER0 N"
MODERN = spoken_of(zip(("in", "being", "comparatively", "modern"), SAID, strict=True))


def reference(id):
    """MFA's start of each phone, and its words as a text."""
    grid = read_textgrid(DEMO / f"TextGrid/{id}.TextGrid")
    words = [
        (word.text, " ".join(p.name for p in grid.phones if word.start_s <= p.start_s < word.end_s))
        for word in grid.words
    ]
    return np.array([phone.start_s for phone in grid.phones]), spoken_of(words)


def align(id, spoken, wav=None, rate=22050, language="en-us"):
    wav = recording(id) if wav is None else wav
    utterance = Utterance(id, DEMO / f"wavs/{id}.flac", "", "LJSpeech", language)
    return make_aligner(replace(CONFIG, sample_rate=rate), DEMO)(utterance, wav, spoken)


def said(alignment):
    """The phones that are no pauses, and their starts."""
    spans = zip(alignment.phones, alignment.boundaries_s[:-1], strict=True)
    phones, starts = zip(*[(p, s) for p, s in spans if p not in PAUSES], strict=True)
    return phones, np.array(starts)


@pytest.fixture(scope="module")
def aligned():
    return {id: align(id, reference(id)[1]) for id in IDS}


def test_phones_start_where_mfa_says(aligned):
    difference_ms = []
    for id in IDS:
        expected, spoken = reference(id)
        phones, starts = said(aligned[id])
        assert phones == tuple(phone for phone in spoken.phones if phone not in PAUSES)
        difference_ms += list(1000 * (starts - expected))
    size_ms = np.abs(difference_ms)
    assert abs(np.median(difference_ms)) < 5
    assert np.median(size_ms) < 10.1
    assert np.mean(size_ms < 20.1) > 0.88
    assert np.mean(size_ms < 50.1) > 0.97
    for id in reversed(IDS[:3]):  # whatever utterance came before
        found = align(id, reference(id)[1]).boundaries_s
        assert np.array_equal(found, aligned[id].boundaries_s), id


def test_phones_keep_their_stress_and_the_audio_is_covered():
    alignment = align("LJ001-0002", MODERN)
    assert alignment.phones == MODERN.phones
    assert alignment.words == MODERN.words
    assert np.diff(alignment.boundaries_s).min() >= 0
    assert alignment.boundaries_s[0] == 0
    assert alignment.boundaries_s[-1] == pytest.approx(len(recording("LJ001-0002")) / 22050)


def test_a_pause_is_found_and_named_by_the_text():
    _, plain = reference("LJ001-0008")  # "has never been surpassed."
    wav = recording("LJ001-0008")
    where, pause = starts_of_second_word(plain, wav), np.zeros(8820, dtype=np.float32)  # 0.4 s
    cut = np.concatenate([wav[:where], pause, wav[where:]])
    assert [p for p in align("LJ001-0008", plain, cut).phones[1:-1] if p in PAUSES] == ["<sp>"]
    end = plain.words[0].end
    marked = replace(plain, phones=(*plain.phones[:end], "<,>", *plain.phones[end:]), words=())
    words = [plain.words[0], *(Word(w.text, w.start + 1, w.end + 1) for w in plain.words[1:])]
    marked = replace(marked, words=tuple(words))
    alignment = align("LJ001-0008", marked, cut)
    assert alignment.phones == marked.phones
    assert np.diff(alignment.boundaries_s)[end] == pytest.approx(0.4, abs=0.05)


def starts_of_second_word(spoken, wav):
    """The sample at which the second word starts."""
    alignment = align("LJ001-0008", spoken, wav)
    return round(22050 * float(alignment.boundaries_s[alignment.words[1].start]))


def test_recordings_of_any_rate_give_the_same_times():
    wav = recording("LJ001-0002")
    expected = align("LJ001-0002", MODERN).boundaries_s
    for rate in (16000, 48000):
        other = align("LJ001-0002", MODERN, soxr.resample(wav, 22050, rate), rate)
        assert np.abs(other.boundaries_s - expected).max() <= 0.0201


def test_a_second_try_is_made_and_what_no_beam_aligns_is_refused_and_harms_no_other(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(aligner_module, "BEAMS", (1.0, 1e-48))  # the first one prunes everything
        assert align("LJ001-0002", MODERN).phones == MODERN.phones
        patch.setattr(aligner_module, "BEAMS", (1.0,))
        with pytest.raises(AlignmentError, match="text and recording do not fit: pocketsphinx"):
            align("LJ001-0002", MODERN)
    assert align("LJ001-0002", MODERN).phones == MODERN.phones


def test_another_text_language_or_phone_set_is_refused_with_the_remedy():
    _, other = reference("LJ001-0012")
    with pytest.raises(AlignmentError, match=r"do not fit|too short for"):
        align("LJ001-0002", other)
    with pytest.raises(AlignmentError, match=r"1.90 s of audio are too short for 220 phones"):
        align("LJ001-0002", spoken_of([("a", "AH0")] * 220))
    with pytest.raises(AlignmentError, match=r"knows English, not de; set preprocess.aligner to"):
        align("LJ001-0002", MODERN, language="de")
    with pytest.raises(AlignmentError, match="does not know the phone ə; it takes ARPAbet"):
        align("LJ001-0002", spoken_of([("a", "ə")]))
    config = PreprocessConfig(text=TextConfig(phone_extractor="espeak"))
    with pytest.raises(InputError, match=r"set preprocess.text.phone_extractor to lexicon"):
        make_aligner(config, DEMO)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    aligner_module._recogniser.cache_clear()
    with pytest.raises(InputError, match="pip install pocketsphinx"):
        align("LJ001-0002", MODERN)
