"""What is exported in any format and imported again gives the same features, frame by frame."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from processors.dataset.store import FeatureStore
from processors.durations import EXPORT_FORMATS, SUBTITLES
from processors.durations.exporting import export_store
from processors.durations.fitting import Interpretation
from processors.durations.importing import import_durations
from processors.durations.sources import durations_in
from tests.processors.small_corpus import config_of, copy_corpus, prepare_dataset

NAME = "LJSpeech"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """An experiment whose features were made by the TextGrid aligner."""
    folder = tmp_path_factory.mktemp("durations")
    config = config_of(copy_corpus(folder / "corpus"), folder / "processed")
    prepare_dataset(config, NAME, 1)
    return config


def with_imported(config, folder: Path):
    processed = folder / "processed"
    preprocess = replace(
        config.preprocess,
        aligner="imported",
        imported_dir=str(folder / "imported"),
        processed_dir=str(processed),
    )
    return replace(config, preprocess=preprocess), processed / NAME


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
def test_export_and_import_give_the_same_features(prepared, tmp_path, format):
    processed = Path(prepared.preprocess.processed_dir) / NAME
    export_store(prepared.preprocess, processed, format, tmp_path / "exported")
    config, folder = with_imported(prepared, tmp_path)
    import_durations(config, NAME, durations_in(tmp_path / "exported"), Interpretation())
    prepare_dataset(config, NAME, 1)
    assert_same_features(processed, folder)


def test_imported_textgrids_give_the_features_of_the_textgrid_aligner(prepared, tmp_path):
    config, folder = with_imported(prepared, tmp_path)
    textgrids = Path(prepared.dataset_path[NAME]) / "TextGrid"
    before = {path: path.read_bytes() for path in textgrids.iterdir()}
    import_durations(config, NAME, durations_in(textgrids), Interpretation())
    prepare_dataset(config, NAME, 1)
    assert_same_features(Path(prepared.preprocess.processed_dir) / NAME, folder)
    assert {path: path.read_bytes() for path in textgrids.iterdir()} == before


def test_exported_textgrids_are_read_by_the_textgrid_aligner_frame_by_frame(prepared, tmp_path):
    processed = Path(prepared.preprocess.processed_dir) / NAME
    export_store(prepared.preprocess, processed, "textgrid", tmp_path / "exported")
    preprocess = replace(
        prepared.preprocess,
        textgrid_dir=str(tmp_path / "exported"),
        processed_dir=str(tmp_path / "processed"),
    )
    prepare_dataset(replace(prepared, preprocess=preprocess), NAME, 1)
    assert_same_features(processed, tmp_path / "processed" / NAME)


def test_exported_json_is_what_stage_1_reads(prepared, tmp_path):
    processed = Path(prepared.preprocess.processed_dir) / NAME
    export_store(prepared.preprocess, processed, "json", tmp_path / "imported")
    config, folder = with_imported(prepared, tmp_path)
    prepare_dataset(config, NAME, 1)
    assert_same_features(processed, folder)
