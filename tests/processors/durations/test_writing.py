"""Exported files, as other programs read them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import parselmouth
import pytest

from processors.dataset.store import FeatureStore
from processors.durations import EXPORT_FORMATS, IMPORT_FORMATS
from processors.durations.importing import import_durations
from processors.durations.sources import durations_in
from processors.durations.writing import WRITERS, export_store
from tests.processors.durations.examples import FILES, SPEECH
from tests.processors.small_corpus import config_of, prepare_dataset

NAME = "LJSpeech"

SUBTITLES = ("srt", "vtt")


def tiers_in_praat(path):
    """Labels and times of every tier, as Praat sees them."""
    call = parselmouth.praat.call
    grid = parselmouth.read(str(path))
    tiers = {}
    for tier in range(1, call(grid, "Get number of tiers") + 1):
        rows = tiers.setdefault(call(grid, "Get tier name", tier), [])
        for n in range(1, call(grid, "Get number of intervals", tier) + 1):
            what = (f"Get {edge} time of interval" for edge in ("start", "end"))
            times = (round(call(grid, command, tier, n), 4) for command in what)
            rows.append((call(grid, "Get label of interval", tier, n), *times))
    return tiers


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
    pauses = [("<sil>", 0.1, 0.2), ("<,>", 0.3001, 0.3002), ("<.>", 0.5, 0.6)]
    assert [one for one in tiers["pauses"] if one[0]] == pauses


def test_json_has_the_text_and_times_in_seconds(tmp_path):
    WRITERS["json"](tmp_path, [SPEECH])
    row = json.loads((tmp_path / "u1.json").read_text())
    assert (row["id"], row["text"], row["recording_s"]) == ("u1", 'He said "hm".', 1.0)
    assert row["sentences"] == [{"sentence": 'He said "hm".', "start_s": 0.2, "end_s": 0.5}]
    assert row["words"][0] == {"word": '"hm"', "start_s": 0.2, "end_s": 0.3}
    assert row["phones"][1] == {"phone": "HH", "start_s": 0.2, "end_s": 0.3}
    odd = 'a}, {b: [{"x": 1}, {"y"'
    WRITERS["json"](tmp_path, [replace(SPEECH, text=odd)])
    assert json.loads((tmp_path / "u1.json").read_text())["text"] == odd


def test_subtitles_are_by_sentences_and_arrays_come_with_the_names_of_their_phones(tmp_path):
    for format in ("srt", "vtt", "npy"):
        WRITERS[format](tmp_path, [SPEECH])
    shown = (tmp_path / "u1.srt").read_text().replace("\u00a0", " ")
    assert shown == '1\n00:00:00,200 --> 00:00:01,033\nHe said "hm".\n'
    assert (tmp_path / "u1.vtt").read_text().startswith("WEBVTT\n\n00:00:00.200 --> ")
    frames = np.load(tmp_path / "u1-durations.npy")
    assert frames.tolist() == [10, 10, 0, 0, 20, 10]
    assert frames.dtype == np.int64
    assert (tmp_path / "phones.txt").read_text().splitlines() == [
        "# hop_size 160 sample_rate 16000",
        "u1|<sil> HH M <,> M <.>|0.1",
    ]


@pytest.fixture
def experiment(corpus, prepared):
    """An experiment whose features were made by the TextGrid aligner."""
    return config_of(corpus, prepared.parent)


def with_imported(config, folder: Path):
    keys = {"imported_dir": str(folder / "imported"), "processed_dir": str(folder / "processed")}
    preprocess = replace(config.preprocess, aligner="imported", **keys)
    return replace(config, preprocess=preprocess), folder / "processed" / NAME


def assert_same_features(first: Path, second: Path):
    one, other = FeatureStore(first), FeatureStore(second)
    assert one.ids == other.ids
    for id in one.ids:
        expected, found = one.read(id), other.read(id)
        assert found.phones == expected.phones, id
        assert found.durations.tolist() == expected.durations.tolist(), id
        assert found.start == expected.start, id
        assert np.array_equal(found.mel, expected.mel), id
        assert np.array_equal(found.f0, expected.f0), id


@pytest.mark.parametrize("format", sorted({*EXPORT_FORMATS} - {*SUBTITLES}))
def test_export_and_import_give_the_same_features(experiment, prepared, tmp_path, format):
    export_store(experiment.preprocess, prepared, format, tmp_path / "exported")
    config, folder = with_imported(experiment, tmp_path)
    import_durations(config, NAME, durations_in(tmp_path / "exported"))
    prepare_dataset(config, NAME, 1)
    assert_same_features(prepared, folder)


def test_imported_textgrids_give_the_features_of_the_textgrid_aligner(
    experiment, corpus, prepared, tmp_path
):
    config, folder = with_imported(experiment, tmp_path)
    textgrids = corpus / "TextGrid"
    before = {path: path.read_bytes() for path in textgrids.iterdir()}
    import_durations(config, NAME, durations_in(textgrids))
    prepare_dataset(config, NAME, 1)
    assert_same_features(prepared, folder)
    assert {path: path.read_bytes() for path in textgrids.iterdir()} == before


def test_exported_textgrids_are_read_by_the_textgrid_aligner_frame_by_frame(
    experiment, corpus, prepared, tmp_path
):
    exported = tmp_path / "exported"
    export_store(experiment.preprocess, prepared, "textgrid", exported)
    prepare_dataset(config_of(corpus, tmp_path / "p", textgrid_dir=str(exported)), NAME, 1)
    assert_same_features(prepared, tmp_path / "p" / NAME)


def test_each_format_is_listed():
    assert tuple(sorted(FILES)) == IMPORT_FORMATS  # test_sources.py reads each
    assert tuple(sorted(WRITERS)) == EXPORT_FORMATS
