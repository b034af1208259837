import json
from pathlib import Path

import pytest

import preprocessors
from config.preprocess import CorpusConfig
from preprocessors import ljspeech
from preprocessors.corpora import (
    Corpus,
    archive_of,
    dataset_folder,
    find_format,
    known_formats,
    licence_of,
    published,
    read_corpus,
    read_origin,
)
from preprocessors.manifest import Origin
from utils.errors import InputError

ROOT = Path(__file__).parents[2]


def test_formats_are_found_by_file_name():
    assert known_formats() == ["audio_folder", "folder", "libritts", "ljspeech", "vctk"]
    for name in known_formats():
        assert isinstance(find_format(name, CorpusConfig()), Corpus)


def test_a_format_is_found_however_its_record_is_written(tmp_path, monkeypatch):
    code = "from preprocessors.ljspeech import CORPUS as LJSPEECH\nCORPUS: object = LJSPEECH\n"
    (tmp_path / "mine.py").write_text(code)
    monkeypatch.setattr(preprocessors, "__path__", [*preprocessors.__path__, str(tmp_path)])
    assert find_format("mine", CorpusConfig()) is ljspeech.CORPUS


def test_a_file_without_a_record_is_named(tmp_path, monkeypatch):
    (tmp_path / "unfinished.py").write_text('"""\nCORPUS = to be written\n"""\n')
    monkeypatch.setattr(preprocessors, "__path__", [*preprocessors.__path__, str(tmp_path)])
    match = r"preprocessors/unfinished\.py does not end with CORPUS = Corpus"
    with pytest.raises(InputError, match=match):
        find_format("unfinished", CorpusConfig())


def test_another_dataset_is_read_by_the_format_that_the_config_names():
    options = CorpusConfig(format="ljspeech", speaker="Linda")
    found = read_corpus("demo", ROOT / "egs/_demo/LJSpeech-mini", options)
    assert len(found.utterances) == 55
    assert {u.speaker for u in found.utterances} == {"Linda"}


@pytest.mark.parametrize("name", ["split", "fetch", "manifest", "collector", "corpora"])
def test_a_dataset_named_as_a_helper_module_has_no_format_of_its_own(name):
    match = rf"^preprocess\.corpus\.{name}\.format: unknown .* \(folder: your own recordings;"
    with pytest.raises(InputError, match=match):
        find_format(name, CorpusConfig())


@pytest.mark.parametrize(
    ("fields", "message"),
    [("utterances=print, licens=''", "argument 'licens'"), ("", "argument: 'utterances'")],
)
def test_a_wrong_field_of_a_corpus_names_file_and_field(fields, message, tmp_path, monkeypatch):
    start = "from preprocessors.corpora import Corpus\n"
    (tmp_path / "broken.py").write_text(f"{start}CORPUS = Corpus({fields})\n")
    monkeypatch.setattr(preprocessors, "__path__", [*preprocessors.__path__, str(tmp_path)])
    with pytest.raises(InputError, match=rf"preprocessors/broken\.py, line \d+: .*{message}"):
        find_format("broken", CorpusConfig())
    assert "broken" in known_formats()
    assert licence_of("LJSpeech", CorpusConfig()) == "public domain"


@pytest.mark.parametrize("path", ["", " ", "[dataset path]", "<folder>", "/path/to/LJSpeech"])
def test_a_placeholder_is_an_error_that_says_which_key_to_set(path):
    with pytest.raises(InputError, match=r"dataset_path\.LJSpeech is .*: set it to the folder"):
        dataset_folder("LJSpeech", {"LJSpeech": path})


@pytest.mark.parametrize(
    ("name", "format", "message"),
    [
        (
            "LJSpech",
            "",
            r"preprocess\.corpus\.LJSpech\.format: unknown corpus format 'ljspech';"
            r" known: audio_folder, folder, libritts, ljspeech, vctk .*did you mean ljspeech\?",
        ),
        (
            "LJSpeech",
            "",
            r"LJSpeech: no folder .*none; set dataset_path\.LJSpeech .*; stage 0 fetches this",
        ),
        ("Mine", "ljspeech", r"set dataset_path\.Mine to the folder of the corpus$"),
        ("../x", "folder", r"^dataset: '../x' is not a safe id"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_an_error_with_the_remedy(tmp_path, name, format, message):
    config = CorpusConfig(format=format) if format else CorpusConfig()
    with pytest.raises(InputError, match=message):
        read_corpus(name, tmp_path / "none", config)


def test_relative_dataset_paths_start_at_the_repository_root():
    assert dataset_folder("x", {"x": "data/x"}) == ROOT / "data/x"
    assert dataset_folder("x", {"x": "/data/x"}) == Path("/data/x")
    assert dataset_folder("x", {"x": "~/x"}) == Path.home() / "x"


def test_the_licence_of_a_published_corpus_is_known_and_that_of_ones_own_is_what_one_says():
    assert licence_of("LJSpeech", CorpusConfig()) == "public domain"
    assert licence_of("ljspeech", CorpusConfig(format="LJSpeech")) == "public domain"
    assert licence_of("VCTK", CorpusConfig()).startswith("CC BY 4.0")
    assert licence_of("LibriTTS", CorpusConfig()) == "CC BY 4.0"
    assert licence_of("mine", CorpusConfig(format="ljspeech")) == ""
    assert licence_of("unheard of", CorpusConfig()) == ""
    assert licence_of("mine", CorpusConfig(format="folder", licence="CC0")) == "CC0"
    assert published("LJSpeech", CorpusConfig()).hub_name == "keithito/lj_speech"
    assert published("mine", CorpusConfig(format="ljspeech")) is None
    assert archive_of("LJSpeech", CorpusConfig()).url.endswith("LJSpeech-1.1.tar.bz2")
    assert archive_of("mine", CorpusConfig(format="ljspeech")) is None


@pytest.mark.parametrize("content", ["[]", "{}", '{"source": "the web"}'])
def test_a_file_of_others_with_the_name_of_an_origin_says_nothing(tmp_path, content):
    (tmp_path / "corpus.json").write_text(content)
    (tmp_path / "metadata.csv").write_text("a|Hello.\n")
    (tmp_path / "a.wav").touch()
    listing = read_corpus("mine", tmp_path, CorpusConfig(format="folder"))
    assert (listing.origin, listing.notices) == (Origin(), [])


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ({"spoken_by": "Toy 1"}, "missing key licence"),
        ({"spoken_by": "Toy 1", "licence": None}, "licence"),
        ({"spoken_by": "Toy 1", "licence": "", "url": 1}, "url"),
        ("the web", "expected a section"),
    ],
)
def test_a_damaged_origin_is_refused(tmp_path, origin, message):
    (tmp_path / "corpus.json").write_text(json.dumps({"origin": origin}))
    with pytest.raises(InputError, match=f"corpus.json.*{message}"):
        read_origin(tmp_path / "corpus.json")
