"""Exported files, as other programs read them."""

import json

import numpy as np
import parselmouth
import pytest

from processors.durations.writing import WRITERS, AlignedSpeech
from tests.processors.durations.examples import SPEECH


def tiers_in_praat(path):
    """Labels and times of every tier, as Praat sees them."""
    call = parselmouth.praat.call
    grid = parselmouth.read(str(path))
    return {
        call(grid, "Get tier name", tier): [
            (
                call(grid, "Get label of interval", tier, n),
                round(call(grid, "Get start time of interval", tier, n), 4),
                round(call(grid, "Get end time of interval", tier, n), 4),
            )
            for n in range(1, call(grid, "Get number of intervals", tier) + 1)
        ]
        for tier in range(1, call(grid, "Get number of tiers") + 1)
    }


def test_praat_opens_textgrids_and_sees_every_phone(tmp_path):
    WRITERS["textgrid"](tmp_path, [SPEECH])
    tiers = tiers_in_praat(tmp_path / "u1.TextGrid")
    assert list(tiers) == ["words", "phones", "pauses"]
    assert [one for one in tiers["words"] if one[0]] == [('"hm"', 0.2, 0.3), ("m m", 0.3, 0.5)]
    assert tiers["phones"] == [
        ("", 0.0, 0.2),
        ("HH", 0.2, 0.3),
        ("M", 0.3, 0.3001),  # Praat has no intervals of no length
        ("", 0.3001, 0.3002),
        ("M", 0.3002, 0.5),
        ("", 0.5, 1.0),
    ]
    assert [one for one in tiers["pauses"] if one[0]] == [
        ("<sil>", 0.1, 0.2),
        ("<,>", 0.3001, 0.3002),
        ("<.>", 0.5, 0.6),
    ]


def test_ctm_has_a_line_for_each_phone_and_each_word(tmp_path):
    WRITERS["ctm"](tmp_path, [SPEECH])
    assert (tmp_path / "phones.ctm").read_text().splitlines()[:3] == [
        "u1 1 0.100000 0.100000 <sil>",
        "u1 1 0.200000 0.100000 HH",
        "u1 1 0.300000 0.000000 M",
    ]
    assert (tmp_path / "words.ctm").read_text().splitlines()[1] == "u1 1 0.300000 0.200000 m_m"


def test_json_has_the_text_and_times_in_seconds(tmp_path):
    WRITERS["json"](tmp_path, [SPEECH])
    row = json.loads((tmp_path / "u1.json").read_text())
    assert (row["id"], row["text"], row["recording_s"]) == ("u1", 'He said "hm".', 1.0)
    assert row["sentences"] == [{"sentence": 'He said "hm".', "start_s": 0.2, "end_s": 0.5}]
    assert row["words"][0] == {"word": '"hm"', "start_s": 0.2, "end_s": 0.3}
    assert row["phones"][1] == {"phone": "HH", "start_s": 0.2, "end_s": 0.3}


def test_json_is_the_same_object_whatever_the_text(tmp_path):
    odd = 'a}, {b: [{"x": 1}, {"y"'
    speech = AlignedSpeech(**{**vars(SPEECH), "text": odd})
    WRITERS["json"](tmp_path, [speech])
    assert json.loads((tmp_path / "u1.json").read_text())["text"] == odd


def test_subtitles_are_by_sentences_and_words(tmp_path):
    for format in ("srt", "vtt"):
        WRITERS[format](tmp_path, [SPEECH])
    shown = (tmp_path / "u1.srt").read_text().replace("\u00a0", " ")
    assert shown == '1\n00:00:00,200 --> 00:00:01,033\nHe said "hm".\n'
    assert (tmp_path / "u1.words.srt").read_text().startswith("1\n00:00:00,200 --> ")
    assert (tmp_path / "u1.vtt").read_text().startswith("WEBVTT\n\n00:00:00.200 --> ")


def test_arrays_come_with_the_names_of_their_phones(tmp_path):
    WRITERS["npy"](tmp_path, [SPEECH])
    frames = np.load(tmp_path / "u1-durations.npy")
    assert frames.tolist() == [10, 10, 0, 0, 20, 10]
    assert frames.dtype == np.int64
    assert (tmp_path / "phones.txt").read_text().splitlines() == [
        "# hop_size 160 sample_rate 16000",
        "u1|<sil> HH M <,> M <.>|0.1",
    ]


@pytest.mark.parametrize("name", ["ctm", "npy"])
def test_tables_of_many_utterances_hold_all_of_them(tmp_path, name):
    other = AlignedSpeech(**{**vars(SPEECH), "id": "u2"})
    WRITERS[name](tmp_path, [SPEECH, other])
    table = {"ctm": "phones.ctm", "npy": "phones.txt"}[name]
    rows = [row for row in (tmp_path / table).read_text().splitlines() if row[0] != "#"]
    assert {row[:2] for row in rows} == {"u1", "u2"}
