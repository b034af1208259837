"""Stage 1 on small real corpora: whole, broken, and killed half way."""

import logging
import os
import re
import shutil
import signal
import sys
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from config.preprocess import CorpusConfig, SplitConfig
from config.schema import Config
from modules.mel import MelConfig
from preprocessors.manifest import Utterance, read_splits, read_utterances
from processors.dataset.statistics import CorpusStats, corpus_stats
from processors.dataset.store import FeatureStore
from processors.extraction import shards
from processors.extraction.run import prepare_datasets
from tests.processors import small_corpus
from tests.processors.small_corpus import DEMO, IDS, config_of, copy_corpus, prepare_dataset, texts
from tests.processors.stores import damaged_ids
from utils.errors import InputError
from utils.files import read_json, read_jsonl
from utils.locks import locked
from utils.parallel import ChunkResult

SAME_EVERYWHERE = (
    "features/index.jsonl",
    *("stats.json", "phones.json", "oov.txt", "rejected.jsonl", "manifest.jsonl", "audio.json"),
    *("train.json", "valid.json", "test.json", "golden_test.json", "speakers.json"),
)


def test_the_documentation_shows_every_file_of_a_folder(prepared):
    shown = (Path(__file__).parents[3] / "docs" / "architecture.md").read_text()
    names = [path.name for path in prepared.rglob("[!.]*")]
    assert [name for name in names if re.sub(r"\d{5}", "00000", name) not in shown] == []


def reasons(folder: Path) -> dict[str, tuple[str, str]]:
    return {r["id"]: (r["stage"], r["reason"]) for r in read_jsonl(folder / "rejected.jsonl")}


def assert_same_output(left: Path, right: Path) -> None:
    for name in SAME_EVERYWHERE:
        assert (left / name).read_bytes() == (right / name).read_bytes(), name
    shards = sorted(path.name for path in (left / "features").glob("*.safetensors"))
    assert shards == sorted(path.name for path in (right / "features").glob("*.safetensors"))
    for name in shards:
        assert (left / "features" / name).read_bytes() == (right / "features" / name).read_bytes()


def test_every_utterance_becomes_features_that_fit_together_in_a_folder_that_says_all(prepared):
    store = FeatureStore(prepared, MelConfig())
    assert list(store.ids) == IDS == list(read_utterances(prepared))
    assert damaged_ids(store) == []
    for id in IDS:
        features = store.read(id)
        T = features.mel.shape[1]
        assert features.durations.sum() == T == len(features.f0) == len(features.energy)
        assert features.speaker == "LJSpeech"
        assert features.start == store.starts[store.index_of(id)]
    assert len(set(store.starts.tolist())) > 1  # some begin after a silence
    assert read_splits(prepared).test == ["LJ002-0035"]
    assert read_json(prepared / "speakers.json") == [{"name": "LJSpeech", "language": "en-us"}]
    phones = read_json(prepared / "phones.json")
    assert phones["<sil>"] == len(IDS)
    assert phones["<.>"] == len(IDS) + 1  # LJ002-0035 holds two sentences
    report = read_json(prepared / "report.json")
    assert (report["utterances"], report["rejected"]) == (9, {})
    assert report["splits"] == {"train": 7, "valid": 1, "test": 1, "golden_test": 1}


def test_statistics_are_of_the_training_split_only(prepared, corpus):
    store, config = FeatureStore(prepared), config_of(corpus, prepared).preprocess
    stats = CorpusStats.read(prepared / "stats.json")
    assert stats == corpus_stats(store, read_splits(prepared).train, config)
    assert stats != corpus_stats(store, IDS, config)
    assert 150 < stats.pooled.f0_frame.mean < 280


@pytest.mark.processes
def test_workers_change_nothing(corpus, prepared, tmp_path):
    summary = prepare_dataset(config_of(corpus, tmp_path, backend="loky"), "LJSpeech", 2)
    assert (summary.n_extracted, summary.n_usable) == (9, 9)
    assert_same_output(tmp_path / "LJSpeech", prepared)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_dask_cluster_with_one_thread_a_worker_changes_nothing(
    n_threads, corpus, prepared, tmp_path, monkeypatch
):
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # for the workers
    options = {"n_workers": 2, "threads_per_worker": n_threads, "dashboard_address": None}
    # as by DASK_SCHEDULER_ADDRESS, which is read when Dask is imported
    with (
        distributed.LocalCluster(**options) as cluster,
        dask.config.set(scheduler_address=cluster.scheduler_address),
        nullcontext() if n_threads == 1 else pytest.raises(InputError, match="has 2 threads"),
    ):
        prepare_dataset(config_of(corpus, tmp_path, backend="dask"), "LJSpeech", 1)
    if n_threads == 1:
        assert_same_output(tmp_path / "LJSpeech", prepared)


def prepare_and_be_killed(config: Config) -> None:
    """Stage 1 in this process, which ends when it has written two shards."""
    write_shard_report, n_written = shards.write_shard_report, count()

    def kill_after_two(*arguments: object) -> None:
        if next(n_written) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        write_shard_report(*arguments)

    shards.write_shard_report = kill_after_two
    torch.set_num_threads(1)  # a fork has none of the threads that PyTorch would wait for
    prepare_datasets(config, 2)


@pytest.mark.parametrize(
    ("backend", "start"),
    [("sequential", "fork"), pytest.param("loky", "spawn", marks=pytest.mark.slow)],
)
def test_after_kill_9_finished_shards_stay(backend, start, corpus, prepared, tmp_path):
    config = config_of(corpus, tmp_path, backend=backend)
    killed = get_context(start).Process(target=prepare_and_be_killed, args=(config,))
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    folder = tmp_path / "LJSpeech"
    with pytest.raises(InputError, match="not finished"):
        FeatureStore(folder)
    shards = [path.with_suffix(".safetensors") for path in (folder / "features").glob("*.json")]
    finished = {path: path.stat().st_mtime_ns for path in shards}
    assert len(finished) == 2
    (folder / "features/.shard-00000.77.safetensors").write_bytes(b"half")  # it was writing this
    summary = prepare_dataset(config_of(corpus, tmp_path), "LJSpeech", 1)
    assert 0 < summary.n_extracted < 9
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert not list((folder / "features").glob(".*"))
    assert_same_output(folder, prepared)


def test_a_full_disk_leaves_no_partial_files(corpus, tmp_path, monkeypatch):
    def fill(work, *_arguments):
        (work.folder / "features" / ".shard-00000.9.safetensors").touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("processors.extraction.run.run_chunks", fill)
    with pytest.raises(OSError, match="No space left"):
        prepare_dataset(config_of(corpus, tmp_path), "LJSpeech", 1)
    assert not list(tmp_path.rglob(".shard*"))


def assert_it_crashed(folder: Path) -> None:
    stage, reason = reasons(folder)["LJ001-0011"]
    assert (stage, "crashed" in reason) == ("features", True)
    assert len(FeatureStore(folder)) == 8


@pytest.mark.slow
@pytest.mark.processes
def test_stage_1_outlives_an_utterance_that_kills_workers(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("processors.extraction.shards.ShardWork", CrashOn("LJ001-0011"))
    prepare_dataset(config_of(corpus, tmp_path, backend="loky"), "LJSpeech", 2)
    assert_it_crashed(tmp_path / "LJSpeech")


class CrashOn:
    """Stands in for ShardWork: kills the process that comes to one utterance."""

    def __init__(self, id: str) -> None:
        self.id, self.make = id, shards.ShardWork

    def __call__(self, *arguments: object) -> "CrashingWork":
        return CrashingWork(self.id, self.make(*arguments))


class CrashingWork:
    def __init__(self, id: str, work: shards.ShardWork) -> None:
        self.id, self.work = id, work

    def __call__(self, name: str, utterances: list[Utterance]) -> shards.ShardReport:
        if any(utterance.id == self.id for utterance in utterances):
            os.kill(os.getpid(), signal.SIGSEGV)
        return self.work(name, utterances)


def test_an_utterance_that_kills_workers_is_rejected(corpus, tmp_path, monkeypatch):
    def run_chunks(work, chunks, *_):
        for key, utterances in chunks.items():
            lost = tuple(u for u in utterances if u.id == "LJ001-0011")
            yield ChunkResult(key, work(key, [u for u in utterances if u not in lost]), lost)

    monkeypatch.setattr("processors.extraction.run.run_chunks", run_chunks)
    prepare_dataset(config_of(corpus, tmp_path), "LJSpeech", 2)
    assert_it_crashed(tmp_path / "LJSpeech")


# --- faults of a corpus, one copy of each ------------------------------------------------------


def write(path: Path, wav: np.ndarray, rate: int = 22050, subtype: str = "PCM_16") -> None:
    soundfile.write(path, wav, rate, subtype=subtype)


def truncate(path: Path) -> None:
    write(path, WAV)
    os.truncate(path, path.stat().st_size // 2)


WAV = soundfile.read(DEMO / "wavs/LJ001-0002.flac", dtype="float32")[0]
NAN = np.where(np.arange(len(WAV)) == 100, np.nan, WAV)
BAD_AUDIO = {
    "empty": (lambda path: path.touch(), "empty"),
    "text": (lambda path: path.write_text("hello"), "not readable as audio"),
    "truncated": (truncate, "cut short"),
    "header_only": (lambda path: write(path, np.zeros(0)), "0 samples"),
    "nan": (lambda path: write(path, NAN, subtype="FLOAT"), "NaN"),
    "loud": (lambda path: write(path, 8 * WAV, subtype="FLOAT"), "beyond full scale"),
    "short": (lambda path: write(path, WAV[:1100]), "too short"),
    "long": (lambda path: write(path, np.full(31 * 8000, 0.1), 8000), "too long"),
    "antiphase": (lambda path: write(path, np.stack([WAV, -WAV], axis=1)), "cancel each other out"),
    "silent": (lambda path: write(path, np.zeros(22050)), "silent"),
}
GOOD_AUDIO = {
    "stereo": lambda path: write(path, np.stack([WAV] * 2, axis=1)),
    "pcm24": lambda path: write(path, WAV, subtype="PCM_24"),
    "pcm8": lambda path: write(path, WAV, subtype="PCM_U8"),
    "double": lambda path: write(path, WAV, subtype="DOUBLE"),
    "clipped": lambda path: write(path, np.clip(30 * WAV, -1, 1)),
    "slow": lambda path: write(path, WAV[::2], 11025),
}


@pytest.fixture(scope="module")
def broken_corpus(tmp_path_factory) -> Path:
    """The good utterances and one of each fault."""
    root = copy_corpus(tmp_path_factory.mktemp("broken"))
    by_id = {id: texts()[id] for id in IDS}
    for name, make in ({id: fault[0] for id, fault in BAD_AUDIO.items()} | GOOD_AUDIO).items():
        make(root / f"wavs/{name}.wav")
        by_id[name] = texts()["LJ001-0002"]
    by_id |= {"emoji": "\U0001f600 \u200f", "control": "\x01\x02"}
    by_id |= {"huge": f"about {10**400} and 1e400", "no_text": ""}
    by_id |= dict.fromkeys(("overlong", "unaligned"), texts()["LJ001-0002"])
    by_id |= {"no_audio": "Nobody recorded this.", "../../outside": "Elsewhere."}
    for name in (*GOOD_AUDIO, "emoji", "control", "huge", "overlong"):
        shutil.copy(root / "TextGrid/LJ001-0002.TextGrid", root / f"TextGrid/{name}.TextGrid")
    for name in ("emoji", "control", "huge", "unaligned"):
        shutil.copy(root / "wavs/LJ001-0002.flac", root / f"wavs/{name}.flac")
    write(root / "wavs/overlong.wav", WAV[:22050])
    write(root / "wavs/unlisted.wav", WAV)
    small_corpus.write_texts(root, by_id)
    with (root / "metadata.csv").open("a", encoding="utf-8") as file:
        file.write("one_column_only\n")
    return root


@pytest.fixture(scope="module")
def survived(broken_corpus, tmp_path_factory) -> Path:
    """What stage 1 makes of it when any number of faults is allowed."""
    processed = tmp_path_factory.mktemp("survived")
    prepare_dataset(config_of(broken_corpus, processed, max_bad_ratio=1.0), "LJSpeech", 1)
    return processed / "LJSpeech"


def test_odd_but_sound_audio_is_used(survived):
    assert {*GOOD_AUDIO, *IDS} <= {*FeatureStore(survived).ids} - reasons(survived).keys()


@pytest.mark.parametrize(
    ("name", "stage", "part"),
    [
        *((id, "audio", part) for id, (_, part) in BAD_AUDIO.items()),
        ("emoji", "text", ""),
        ("control", "corpus", r"holds control characters: \x01\x02; remove them"),
        ("no_text", "corpus", "metadata.csv:"),
        ("no_audio", "corpus", "no audio file"),
        ("../../outside", "corpus", "is not the name of a file"),
        ("one_column_only", "corpus", "metadata.csv:"),
        ("unaligned", "alignment", "unaligned"),
    ],
)
def test_bad_entries_are_rejected_with_stage_and_reason(name, stage, part, survived):
    found, reason = reasons(survived)[name]
    assert (found, part in reason) == (stage, True)


def test_nothing_unexpected_happened_and_nothing_was_lost(survived, broken_corpus):
    found = reasons(survived)
    assert not [reason for _, reason in found.values() if "unexpected" in reason]
    n_lines = len((broken_corpus / "metadata.csv").read_text(encoding="utf-8").splitlines())
    assert len(FeatureStore(survived)) + len(found) == n_lines
    # nor is anything written elsewhere
    assert [path.name for path in survived.parent.iterdir()] == ["LJSpeech"]
    assert not list(survived.parent.parent.rglob("outside*"))


def test_statistics_stay_finite_and_the_report_counts_faults_and_notices(survived):
    f0_frame = read_json(survived / "stats.json")["pooled"]["f0_frame"]
    assert np.isfinite(list(f0_frame.values())).all()
    report = read_json(survived / "report.json")
    assert report["rejected"]["audio"] == len(BAD_AUDIO)
    notices = report["audio_notices"]
    assert notices["2 channels averaged to mono"] == 1
    assert any("resampled from 11025" in notice for notice in notices)
    assert any("clipped" in notice for notice in notices)
    assert any("unlisted" in notice for notice in report["notices"])


def test_more_faults_than_allowed_end_the_stage_with_the_first_reasons(broken_corpus, tmp_path):
    with pytest.raises(InputError, match=r"max_bad_ratio 0\.01 allows.*rejected\.jsonl") as caught:
        prepare_dataset(config_of(broken_corpus, tmp_path), "LJSpeech", 1)
    n_rejected = len(reasons(tmp_path / "LJSpeech"))
    assert n_rejected > 10
    *shown, rest = str(caught.value).splitlines()[1:]
    assert (len(shown), rest) == (5, f"  and {n_rejected - 5} more")
    summary = prepare_dataset(config_of(broken_corpus, tmp_path, max_bad_ratio=0.9), "LJSpeech", 1)
    assert summary.n_extracted == 0  # the work done is kept


@pytest.mark.parametrize(
    ("id", "split", "stages"),
    [("LJ002-0020", "valid", "stage 2"), ("LJ002-0035", "test", "stages 3 and 4")],
)
def test_an_empty_split_is_warned_of_at_the_end(corpus, tmp_path, caplog, id, split, stages):
    root = shutil.copytree(corpus, tmp_path / "corpus")
    (root / f"TextGrid/{id}.TextGrid").unlink()
    config = config_of(root, tmp_path / "data")
    for _ in range(2):  # the second one has nothing to do
        caplog.clear()
        prepare_dataset(config, "LJSpeech", 1)
        last, fault = caplog.messages[-1], "no usable utterance is left in the"
        assert last.startswith(f"LJSpeech: {fault} {split} split for {stages};")
        assert f"raise preprocess.split.{split} or" in last
        assert str(tmp_path / "data/LJSpeech/rejected.jsonl") in last


def test_an_aligner_that_cannot_work_leaves_what_another_made(corpus, tmp_path):
    prepare_dataset(config_of(corpus, tmp_path), "LJSpeech", 1)
    before = contents(tmp_path)
    for change in ({"aligner": "imported"}, {"textgrid_dir": "elsewhere"}):
        with pytest.raises(InputError, match="no folder"):
            prepare_dataset(config_of(corpus, tmp_path, **change), "LJSpeech", 1)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[Path, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path: path.read_bytes() for path in files}


def test_alignments_in_another_phone_set_than_the_text_end_the_stage(corpus, tmp_path):
    root = shutil.copytree(corpus, tmp_path / "corpus")
    for path in (root / "TextGrid").iterdir():
        path.write_text(re.sub(r'"([A-Z]{2})[012]"', r'"\1"', path.read_text()))  # no stress
    with pytest.raises(InputError, match=r"% of the phones .* AH0 \(.*text\.lexicon_path"):
        prepare_dataset(config_of(root, tmp_path / "data"), "LJSpeech", 1)


def test_changes_are_counted_and_unaligned_phones_and_misspelt_keys_named(corpus, tmp_path, caplog):
    config = config_of(corpus, tmp_path, sample_rate=16000)
    folders = {**config.dataset_path, "LJSpeach": "elsewhere", "Kathleen": "data"}
    with caplog.at_level(logging.INFO):
        prepare_dataset(replace(config, dataset_path=folders), "LJSpeech", 1)
    (named,) = (line for line in caplog.messages if "are in no alignment" in line)
    assert "LJSpeech: " in named
    assert "dataset_path.LJSpeach is not used; did you mean LJSpeech?" in caplog.text
    assert "Kathleen" not in caplog.text  # of another experiment
    said = [line for line in caplog.messages if "resampled" in line]
    assert said == [f"LJSpeech: {len(IDS)} of its utterances: resampled from 22050 to 16000 Hz"]


def test_an_unusable_utterance_moves_no_other_to_another_split(broken_corpus, survived, tmp_path):
    # the same corpus, now without the alignment of one training utterance
    before = read_splits(survived)
    root = shutil.copytree(broken_corpus, tmp_path / "corpus")
    (root / f"TextGrid/{before.train[0]}.TextGrid").unlink()
    prepare_dataset(config_of(root, tmp_path / "data", max_bad_ratio=1.0), "LJSpeech", 1)
    assert read_splits(tmp_path / "data/LJSpeech") == before._replace(train=before.train[1:])


def test_two_runs_at_once_in_one_folder_are_refused(corpus, tmp_path):
    with (
        locked(tmp_path / "LJSpeech", ""),
        pytest.raises(InputError, match=r"is using it; wait for its end, or set preprocess\.pro"),
    ):
        prepare_dataset(config_of(corpus, tmp_path), "LJSpeech", 1)


def test_a_run_that_ends_early_leaves_nothing_of_what_the_last_one_said(corpus, tmp_path):
    root = shutil.copytree(corpus, tmp_path / "corpus")
    prepare_dataset(config_of(root, tmp_path / "data"), "LJSpeech", 1)
    folder = tmp_path / "data/LJSpeech"
    (folder / "alignment_scores.jsonl").write_text("{}\n")
    (root / "wavs/LJ001-0011.flac").write_bytes(b"")
    with pytest.raises(InputError, match="1 of 9 utterances cannot be used"):
        prepare_dataset(config_of(root, tmp_path / "data", max_bad_ratio=0.0), "LJSpeech", 1)
    assert not (folder / "alignment_scores.jsonl").exists()
    assert not (folder / "report.json").exists()
    assert list(reasons(folder)) == ["LJ001-0011"]


def _of_two_corpora(tmp_path: Path, **lists: tuple[str, ...]) -> Config:
    roots = {"A": IDS[:5], "B": IDS[5:]}
    paths = {name: str(copy_corpus(tmp_path / name, ids)) for name, ids in roots.items()}
    corpora = {name: CorpusConfig(format="ljspeech") for name in roots}
    config = config_of(tmp_path, tmp_path / "out", split=SplitConfig(**lists))
    preprocess = replace(config.preprocess, corpus=corpora)
    return replace(config, dataset=tuple(roots), dataset_path=paths, preprocess=preprocess)


def test_each_of_several_corpora_holds_out_those_of_the_listed_ids_that_it_has(tmp_path):
    test, valid = ("LJ002-0035", "LJ011-0202"), ("LJ001-0011", "LJ002-0020")
    prepare_datasets(_of_two_corpora(tmp_path, test_ids=test, valid_ids=valid), 1)
    a, b = (read_splits(tmp_path / "out" / name) for name in "AB")
    assert (a.valid, b.valid, b.test) == (["LJ001-0011"], ["LJ002-0020"], list(test))
    assert len(a.test) == 1  # a share: none of its ids is listed
    assert set(b.train) == set(IDS[5:]) - {*test, *valid}


@pytest.mark.parametrize(
    ("test_ids", "message"),
    [(tuple(IDS[5:]), r"^B: preprocess\.split: of 4 utterances, 4 test"),
     (("LJ002-0035", "LJ099-0001"), r"test_ids: 1 ids are not among .*: LJ099-0001;")],
)  # fmt: skip
def test_listed_ids_that_cannot_be_split_off_are_named(tmp_path, test_ids, message):
    with pytest.raises(InputError, match=message):
        prepare_datasets(_of_two_corpora(tmp_path, test_ids=test_ids), 1)
    assert not (tmp_path / "out").exists()
