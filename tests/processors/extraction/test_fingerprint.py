"""What a second run does after the config or the corpus has changed: only what depends on it."""

import json
import logging
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from config.preprocess import CorpusConfig, PreprocessConfig, SplitConfig
from config.text import TextConfig
from preprocessors.manifest import Listing, Origin, Utterance, read_utterances
from processors.dataset.store import FeatureStore
from processors.extraction.features import feature_dependence
from processors.extraction.fingerprint import (
    Fingerprint,
    _changed,
    changes,
    check_made_with,
    check_prepared,
    derived_folder,
    fingerprint_of,
    read_fingerprint,
    write_fingerprint,
)
from tests.processors import small_corpus
from tests.processors.small_corpus import IDS, SPLIT, config_of, prepare_dataset, texts, write_texts
from tests.processors.stores import damaged_ids
from utils.errors import InputError
from utils.files import read_json

ID = "LJ001-0011"
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def place(corpus, prepared, tmp_path) -> Path:
    """A copy of both, times included, to change something in."""
    place = tmp_path / "place"
    shutil.copytree(corpus, place / "corpus")
    shutil.copytree(prepared, place / "data/LJSpeech")
    for name in ("fingerprint.json", "manifest.jsonl"):
        path = place / "data/LJSpeech" / name
        path.write_text(path.read_text().replace(str(corpus), str(place / "corpus")))
    return place


def prepare(place: Path, **keys: object):
    return prepare_dataset(config_of(place / "corpus", place / "data", **keys), "LJSpeech", 1)


def shard_of(place: Path, id: str) -> set[str]:
    """All utterances of the shard that an utterance is in."""
    store = FeatureStore(place / "data/LJSpeech")
    shard = store._shards[store.index_of(id)]
    return {other for other, name in zip(store.ids, store._shards, strict=True) if name == shard}


@pytest.mark.parametrize(
    ("keys", "n_extracted", "named"),
    [
        ({}, None, "nothing to do"),
        ({"split": replace(SPLIT, valid_ids=("LJ001-0008",))}, 0, "preprocess.split.valid_ids was"),
        ({"pitch_remove_outlier": False}, 0, "preprocess.pitch_remove_outlier was"),
        ({"energy_remove_outlier": False}, 0, "preprocess.energy_remove_outlier was"),
        ({"max_bad_ratio": 0.5}, 0, "preprocess.max_bad_ratio was"),
        ({"n_mels": 40}, 9, "preprocess.n_mels was 80, is 40"),
        ({"f0_max": 400.0}, 9, "preprocess.f0_max was 600.0, is 400.0"),
        ({"text": TextConfig(normalizer="none")}, 9, "normalizer was 'english', is 'none'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_depends_on_changed_keys_is_made_again(keys, n_extracted, named, place, caplog):
    index = place / "data/LJSpeech/features/index.jsonl"
    before = index.stat().st_mtime_ns
    with caplog.at_level(logging.INFO):
        summary = prepare(place, **keys)
    log = " ".join(caplog.text.split())
    assert named in log
    if summary is not None:
        assert (summary.n_extracted, summary.n_usable) == (n_extracted, 9)
        made = "features are kept" if n_extracted == 0 else "3 of 3 shards of features are made"
        assert made in log
    assert (summary is None) == (n_extracted is None)
    assert summary is not None or index.stat().st_mtime_ns == before
    mel = config_of(place, place, **keys).preprocess.mel
    assert damaged_ids(FeatureStore(place / "data/LJSpeech", mel)) == []
    assert prepare(place, **keys) is None


@pytest.mark.parametrize(
    "keys",
    [{"backend": "loky"}, {"textgrid_dir": "moved"}, {"processed_dir": "moved"}],
    ids=lambda keys: next(iter(keys)),
)
def test_keys_without_effect_make_nothing_again(keys, place, monkeypatch):
    monkeypatch.chdir(place)
    if "textgrid_dir" in keys:
        shutil.move(place / "corpus/TextGrid", place / "moved")
        keys = {"textgrid_dir": str(place / "moved")}
    if "processed_dir" in keys:
        shutil.move(place / "data", place / "moved")
    assert prepare(place, **keys) is None


def test_a_new_split_gives_other_splits_and_statistics(place):
    folder = place / "data/LJSpeech"
    before = (folder / "stats.json").read_bytes()
    prepare(place, split=replace(SPLIT, valid_ids=("LJ001-0008",)))
    assert read_json(folder / "valid.json") == ["LJ001-0008"]
    assert (folder / "stats.json").read_bytes() != before


def test_the_share_of_phones_in_training_is_no_part_of_features():
    texts = [TextConfig(phone_extractor="mixed", p_arpabet=p) for p in (0.5, 1.0)]
    one, other = (fingerprint(PreprocessConfig(text=text, aligner="learned")) for text in texts)
    assert one == other
    assert "preprocess.text.p_arpabet" not in one.features


def test_another_program_or_licence_makes_only_the_report_again():
    config = PreprocessConfig(aligner="learned")
    origins = Origin(), Origin("Toy 1"), Origin("Toy 2"), Origin("Toy 1", "cc0-1.0")
    listings = [Listing([], [], [], origin) for origin in origins]
    dependence = feature_dependence(config, Path())
    prints = [fingerprint_of(config, listing, {"0": []}, dependence) for listing in listings]
    assert len({made.listing for made in prints}) == 4
    # of [[],[],[]], as in former versions
    assert prints[0].listing == "5ae1625b488b3935122d8dd627fe575b"
    assert len({made.shards["0"] for made in prints}) == 1


def test_going_back_to_an_older_config_half_way_trusts_nothing_stale(place, monkeypatch):
    def no_space(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("processors.extraction.shards.write_shard_report", no_space)
        with pytest.raises(OSError, match="No space"):
            prepare(place, n_mels=40)
    assert prepare(place).n_extracted == 9
    assert {FeatureStore(place / "data/LJSpeech").read(id).mel.shape[0] for id in IDS} == {80}


@pytest.mark.parametrize("changed", ["text", f"wavs/{ID}.flac", f"TextGrid/{ID}.TextGrid"])
def test_a_changed_text_recording_or_alignment_makes_only_its_shard_again(changed, place):
    shard = shard_of(place, ID)
    if changed == "text":
        write_texts(place / "corpus", {id: texts()[id] for id in IDS} | {ID: "Something else."})
    else:
        os.utime(place / "corpus" / changed)
    assert prepare(place).n_extracted == len(shard) < 9


@pytest.mark.processes
@pytest.mark.parametrize("backend", ["sequential", pytest.param("loky", marks=pytest.mark.slow)])
def test_a_changed_lexicon_is_read_again_by_processes_that_had_read_it(backend, place):
    lexicon, keys = place / "lexicon.txt", {"backend": backend}
    for pronunciation in ("M AA1", "ZH ZH ZH"):
        lexicon.write_text(f"MODERN  {pronunciation}\n")
        prepare(place, text=TextConfig(lexicon_path=str(lexicon)), max_bad_ratio=1.0, **keys)
    reports = (place / "data/LJSpeech/features").glob("*.json")
    assert sum(read_json(path)["text_phones"].get("ZH", 0) for path in reports) == 3


def test_a_removed_utterance_makes_only_its_shard_again(place):
    shard = shard_of(place, ID)
    write_texts(place / "corpus", {id: texts()[id] for id in IDS if id != ID})
    summary = prepare(place)
    assert (summary.n_extracted, summary.n_usable) == (len(shard) - 1, 8)
    assert ID not in FeatureStore(place / "data/LJSpeech")


def test_an_added_utterance_gives_the_same_as_a_fresh_run(place, tmp_path):
    added = "LJ001-0004"
    for folder, suffix in (("wavs", ".flac"), ("TextGrid", ".TextGrid")):
        shutil.copy2(small_corpus.DEMO / folder / f"{added}{suffix}", place / "corpus" / folder)
    write_texts(place / "corpus", {id: texts()[id] for id in sorted([*IDS, added])})
    summary = prepare(place)
    assert summary.n_extracted < summary.n_usable == 10
    prepare_dataset(config_of(place / "corpus", tmp_path / "fresh"), "LJSpeech", 1)
    for name in ("features/index.jsonl", "stats.json"):
        fresh = tmp_path / "fresh/LJSpeech" / name
        assert (place / "data/LJSpeech" / name).read_bytes() == fresh.read_bytes()


def cut(content: bytes) -> bytes:
    return content[:-50]


def without_last_line(content: bytes) -> bytes:
    return content[: content[:-1].rindex(b"\n") + 1]


@pytest.mark.parametrize(
    ("name", "damage", "named"),
    [
        ("stats.json", lambda _: b"3", "stats.json: expected a JSON object"),
        *((f"{name}.json", lambda _: b"3", f"{name}.json: expected a JSON")
          for name in ("train", "speakers", "phones", "audio")),
        *((name, cut, name) for name in ("stats.json", "manifest.jsonl", "features/index.jsonl")),
        *((name, without_last_line, f"{name}: 8 lines, expected 9")
          for name in ("manifest.jsonl", "features/index.jsonl")),
        ("features/shard-00001.json", cut, "shard-00001.json: missing or damaged"),
        ("features/shard-00001.safetensors", cut, "shard-00001.safetensors: missing or cut short"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named_and_made_again(name, damage, named, place, caplog):
    path = place / "data/LJSpeech" / name
    before = path.read_bytes()
    path.write_bytes(damage(before))
    summary = prepare(place)
    assert (summary.n_extracted > 0) == ("shard" in name)
    assert summary.n_extracted < 9
    assert path.read_bytes() == before
    assert named in caplog.text.replace("\n", "")
    assert prepare(place) is None


def fingerprint(config: PreprocessConfig, *utterances: Utterance) -> Fingerprint:
    listing = Listing(list(utterances), [], [])
    dependence = feature_dependence(config, Path("corpus"))
    return fingerprint_of(config, listing, {"shard-00000": utterances}, dependence)


def test_a_fingerprint_comes_back_from_its_file_the_same_and_a_damaged_one_counts_as_none(tmp_path):
    made = fingerprint(PreprocessConfig(split=SplitConfig(test_ids=("a",))), UTTERANCE)
    write_fingerprint(tmp_path, made)
    assert read_fingerprint(tmp_path) == made
    for damaged in ('{"a": 1}', '{"features": 1, "finishing": 1, "listing": "", "shards": 1}'):
        (tmp_path / "fingerprint.json").write_text(damaged)
        assert read_fingerprint(tmp_path) is None


UTTERANCE = Utterance("a", Path("missing.wav"), "Hello.", "ann")


@pytest.mark.parametrize(
    ("task", "keys", "same"),
    [
        ("tts", {"f0_max": 500.0}, False),
        ("tts", {"split": SplitConfig(seed=1), "pitch_remove_outlier": False}, True),
        ("tts", {"min_attention": 0.1}, True),
        ("vocoder", {"split": SplitConfig(seed=1), "min_attention": 0.1}, True),
        ("tts", {"aligner": "imported", "imported_dir": "elsewhere"}, False),
        ("tts", {"shard_size": 50, "backend": "dask", "max_bad_ratio": 0.5}, True),
        ("tts", {"processed_dir": "elsewhere"}, True),
        ("vocoder", {"f0_max": 500.0, "aligner": "hmm"}, True),
        ("vocoder", {"f_max": 7600.0}, False),
        ("vocoder", {"mel_padding": "hifigan"}, False),
        ("tts", {"mel_scale": "slaney"}, True),
        ("vocoder", {"mel_scale": "htk"}, False),
    ],
)
def test_a_derived_folder_differs_if_and_only_if_the_keys_of_features_do(task, keys, same):
    folders = [derived_folder(task, PreprocessConfig(**given)) for given in ({}, keys)]
    assert (folders[0] == folders[1]) == same


def test_a_store_from_before_the_scale_of_mels_has_slaneys():
    made = fingerprint(PreprocessConfig(), UTTERANCE)
    assert "preprocess.mel_scale" not in made.features
    assert _changed(made, PreprocessConfig()) == ""
    changed = _changed(made, PreprocessConfig(mel_scale="htk"))
    assert changed == "preprocess.mel_scale was 'slaney', is 'htk'"
    made = fingerprint(PreprocessConfig(mel_scale="htk"), UTTERANCE)
    assert _changed(made, PreprocessConfig()).endswith("was 'htk', is 'slaney'")


def test_the_name_of_a_derived_folder_is_readable_and_stays_the_same():
    config = PreprocessConfig(aligner="hmm", sample_rate=24000, f0_max=500.0)
    assert derived_folder("tts", config) == "data/tts_hmm_24000_992c6e55"
    assert derived_folder("vocoder", config).startswith("data/vocoder_")  # never shared


def test_a_dataset_in_another_folder_is_named_with_the_keys_that_differ(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old, new = PreprocessConfig(f0_max=500), PreprocessConfig(f0_max=400)
    new = replace(new, processed_dir=derived_folder("tts", new))
    check_prepared(new, "Anna", "tts")  # there is no other
    made = fingerprint(old, UTTERANCE)
    write_fingerprint(Path("data/Anna"), replace(made, task="vocoder"))
    write_fingerprint(Path("data/far/Anna"), fingerprint(replace(old, n_mels=40), UTTERANCE))
    write_fingerprint(Path("data/near/Anna"), made)
    keys = r"another configuration: preprocess\.f0_max was 500, is 400"
    message = rf"data/near/Anna was made with {keys}"
    with pytest.raises(InputError, match=message + r"; run stage 1, or undo the change"):
        check_prepared(new, "Anna", "tts", same_keys=True)
    with pytest.raises(InputError, match=message + r".* or use it by --acoustic_data=data/near"):
        check_prepared(new, "Anna", "tts", flag="--acoustic_data")
    with pytest.raises(InputError, match=r"data/Anna was made .*processed_dir=data$"):
        check_prepared(new, "Anna", "vocoder")
    check_prepared(replace(new, processed_dir="data/mine"), "Anna", "tts")  # named by the user
    write_fingerprint(Path(new.processed_dir) / "Anna", fingerprint(new, UTTERANCE))
    check_prepared(new, "Anna", "tts", same_keys=True)
    write_fingerprint(Path("data/Ben"), fingerprint(new, UTTERANCE))
    message = r"made with the same keys; .* --set preprocess\.processed_dir=data$"
    with pytest.raises(InputError, match=message):
        check_prepared(new, "Ben", "tts", same_keys=True)


def test_data_are_compared_with_the_keys_that_they_depend_on(tmp_path):
    config = PreprocessConfig(f0_max=500, max_bad_ratio=0.5)
    write_fingerprint(tmp_path, fingerprint(config, UTTERANCE))
    check_made_with(tmp_path, replace(config, processed_dir="moved", max_bad_ratio=0.1))
    keys = r"preprocess\.f0_max was 500, is 400; preprocess\.split\.seed was 0, is 1"
    message = rf"another configuration: {keys}; run stage 1 with this one, or undo the change"
    with pytest.raises(InputError, match=message):
        check_made_with(tmp_path, replace(config, f0_max=400, split=SplitConfig(seed=1)))


def test_data_of_another_corpus_are_refused_with_both_folders(tmp_path):
    config = PreprocessConfig()
    write_fingerprint(tmp_path / "Anna", fingerprint(config, UTTERANCE))  # of the folder `corpus`
    remedy = r"run stage 1, or use the data by --set dataset_path\.Anna=corpus$"
    message = rf"Anna holds the data of the corpus corpus, not of /other; {remedy}"
    with pytest.raises(InputError, match=message):
        check_made_with(tmp_path / "Anna", config, {"Anna": "/other"})
    for same in ("corpus", str(REPOSITORY / "corpus"), "", "/path/to/Anna"):
        check_made_with(tmp_path / "Anna", config, {"Anna": same})


def test_another_corpus_does_not_overwrite_the_data_of_one_of_the_same_name(place):
    before = (place / "data/LJSpeech/fingerprint.json").read_bytes()
    shutil.copytree(place / "corpus", place / "other")
    (place / "other/wavs" / f"{ID}.wav").touch()
    fault = r"data/LJSpeech holds the data of another corpus, \S+/place/corpus, not of"
    remedy = r"set preprocess\.processed_dir to another folder, or remove this one"
    with pytest.raises(InputError, match=rf"{fault} \S+/place/other: {remedy}"):
        prepare_dataset(config_of(place / "other", place / "data"), "LJSpeech", 1)
    assert (place / "data/LJSpeech/fingerprint.json").read_bytes() == before


def test_data_of_another_table_of_a_corpus_are_refused_with_both_names(place):
    (place / "corpus/metadata.csv").rename(place / "corpus/other.csv")
    config = config_of(place / "corpus", place / "data")
    options = {"LJSpeech": CorpusConfig(format="folder", table="other.csv")}
    other = replace(config, preprocess=replace(config.preprocess, corpus=options))
    message = "holds the data of the table {}, not of {}; run stage 1"
    with pytest.raises(InputError, match=message.format("metadata.csv", "other.csv")):
        check_made_with(place / "data/LJSpeech", other.preprocess, other.dataset_path)
    assert prepare_dataset(other, "LJSpeech", 1).n_extracted == 0
    check_made_with(place / "data/LJSpeech", other.preprocess, other.dataset_path)
    with pytest.raises(InputError, match=message.format("other.csv", "metadata.csv")):
        check_made_with(place / "data/LJSpeech", config.preprocess, config.dataset_path)


def test_a_corpus_that_was_moved_keeps_its_features(place):
    (place / "corpus").rename(place / "moved")
    config = config_of(place / "moved", place / "data")
    assert prepare_dataset(config, "LJSpeech", 1).n_extracted == 0
    check_made_with(place / "data/LJSpeech", config.preprocess, config.dataset_path)
    wavs = {u.audio.parent for u in read_utterances(place / "data/LJSpeech").values()}
    assert wavs == {place / "moved/wavs"}


def test_a_lexicon_is_compared_by_its_content_as_far_as_it_is_there(tmp_path):
    path = tmp_path / "lexicon.txt"
    config = PreprocessConfig(text=TextConfig(lexicon_path=str(path)))
    path.write_text("ARION  ER0 AY1 AH0 N\n")
    write_fingerprint(tmp_path, fingerprint(config, UTTERANCE))
    check_made_with(tmp_path, config)
    path.write_text("ARION  AE1 R IY0 AH0 N\n")
    with pytest.raises(InputError, match=r"lexicon_path was 'sha256 \w+', is 'sha256"):
        check_made_with(tmp_path, config)
    path.unlink()
    check_made_with(tmp_path, config)
    with pytest.raises(InputError, match=r"lexicon_path was 'sha256 \w+', is ''"):
        check_made_with(tmp_path, PreprocessConfig())


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        *(({field: "xyz"}, False) for field in ("id", "text", "speaker", "language")),
        ({"audio": Path("elsewhere.wav"), "source": "metadata.csv:9"}, True),
    ],
)
def test_fields_of_an_utterance_count_but_the_place_of_audio_and_text_does_not(changes, same):
    made = [fingerprint(PreprocessConfig(), replace(UTTERANCE, **c)) for c in ({}, changes)]
    assert (made[0] == made[1]) == same


def test_features_are_not_said_to_be_kept_when_they_are_made_again():
    old = fingerprint(PreprocessConfig(), UTTERANCE)
    both = PreprocessConfig(n_mels=40, max_bad_ratio=0.5)
    assert changes(old, fingerprint(both, UTTERANCE)) == [
        "preprocess.max_bad_ratio was 0.01, is 0.5",
        "preprocess.n_mels was 80, is 40",
        "1 of 1 shards of features are made again",
    ]


def test_what_an_older_version_wrote_is_made_again_and_said(place, caplog):
    path = place / "data/LJSpeech/fingerprint.json"
    old = read_json(path)
    del old["task"]
    path.write_text(json.dumps(old | {"version": 1}))
    with caplog.at_level(logging.INFO):
        prepare(place)
    assert "are of version 1, now 2: all are made again" in " ".join(caplog.text.split())
