"""Frames of other projects: foreign splits, hops and tokens; and what an import says of them."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from config.preprocess import PreprocessConfig
from config.text import TextConfig
from modules.variance.adaptor import average_by_phone
from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError
from processors.alignment.timed import make_grid
from processors.dataset.store import FeatureStore
from processors.durations import sources
from processors.durations.importing import Fitter, import_durations
from processors.durations.sources import FrameRate, Table, Tokens, durations_in, find_pitch
from processors.text.frontend import TextFrontend
from tests.processors.small_corpus import DEMO, IDS, config_of, prepare_dataset, texts
from utils.errors import InputError

NAME = "LJSpeech"
OWN = FrameRate(256, 22050)
PHONES = TextConfig()


@pytest.fixture(scope="module")
def spoken():
    frontend = TextFrontend(config_of(DEMO, DEMO).preprocess.text, "en-us")
    return {id: frontend(texts()[id]) for id in IDS}


def n_frames(id: str, rate: FrameRate) -> int:
    """Frames of a recording with centred windows."""
    seconds = soundfile.info(DEMO / f"wavs/{id}.flac").duration
    return round(seconds * rate.sample_rate) // rate.hop_length + 1


def durations_of(id: str, n_tokens: int, rate: FrameRate = OWN) -> np.ndarray:
    """Tokens of different lengths that fill a recording."""
    edges = np.linspace(0, 1, n_tokens + 1) ** 1.2 * n_frames(id, rate)
    return np.diff(np.round(edges).astype(np.int64))


def write_all(folder: Path, spoken, ids: Iterable[str] = IDS, rate=OWN) -> Path:
    """As TensorFlowTTS lays them out, in a split of its own."""
    for place, id in enumerate(ids):
        part = folder / ("valid" if place % 4 == 0 else "train") / "durations"
        part.mkdir(parents=True, exist_ok=True)
        np.save(part / f"{id}-durations.npy", durations_of(id, len(spoken[id].phones), rate))
    return folder


def run(corpus, tmp_path, source, text=PHONES, keys=None, **options):
    imported = str(tmp_path / "imported")
    keys = {"aligner": "imported", "imported_dir": imported, "text": text, **(keys or {})}
    config = config_of(corpus, tmp_path / "processed", **keys)
    import_durations(config, NAME, durations_in(source), **options)
    return config


def report(tmp_path):
    return json.loads((tmp_path / "imported/import.json").read_text())


def rejected(tmp_path):
    rows = (tmp_path / "imported/rejected.jsonl").read_text().splitlines()
    return {row["id"]: row for row in map(json.loads, rows)}


def features_of(config, tmp_path):
    """Runs stage 1, and reads what it made."""
    prepare_dataset(config, NAME, 1)
    store = FeatureStore(tmp_path / "processed" / NAME)
    return [store.read(id) for id in IDS]


def assert_phones_last(features, names):
    assert features.phones == names
    assert features.durations.tolist() == durations_of(features.id, len(names)).tolist()


def test_frames_of_a_foreign_split_arrive_at_their_utterances(corpus, spoken, tmp_path):
    source = write_all(tmp_path / "source", spoken)
    before = {path: path.read_bytes() for path in source.rglob("*.npy")}
    for features in features_of(run(corpus, tmp_path, source), tmp_path):
        assert_phones_last(features, spoken[features.id].phones)
        assert features.start == 0
    assert {path: path.read_bytes() for path in source.rglob("*.npy")} == before
    counts = {"matched": 9, "rejected": 0, "extra": []}
    assert report(tmp_path) == {"source": str(source), "format": "npy", **counts}


def write_nvidia(folder, symbols):
    """Durations in int32, and pitch normalised by a mean of 200 and a deviation of 50 Hz."""
    hz = {}
    for name in ("durations", "pitch_char"):
        (folder / name).mkdir(parents=True)
    for id, names in symbols.items():
        frames = durations_of(id, len(names))
        torch.save(torch.from_numpy(frames).int(), folder / "durations" / f"{id}.pt")
        hz[id] = np.linspace(120.5, 280.3, len(names)) * (np.arange(len(names)) % 3 > 0)
        normalised = np.where(hz[id] > 0, (hz[id] - 200) / 50, 0.0)
        torch.save(torch.from_numpy(normalised), folder / "pitch_char" / f"{id}.pt")
    (folder / "pitch_char_stats__train.json").write_text('{"mean": 200.0, "std": 50.0}')
    return hz


LETTERS = TextConfig(phone_extractor="nvidia_english", p_arpabet=0.0)


def with_pitch(folder):
    return find_pitch(folder / "pitch_char", folder / "pitch_char_stats__train.json")


def test_durations_and_pitch_of_nvidias_letters_reach_statistics_and_training(corpus, tmp_path):
    frontend = TextFrontend(LETTERS, "en-us")
    symbols = {id: frontend(texts()[id]).phones for id in IDS}
    assert symbols["LJ042-0094"][:5] == ("t", "h", "e", "<space>", "s")
    hz = write_nvidia(tmp_path, symbols)
    source, keys = tmp_path / "durations", {"text": LETTERS, "pitch_extractor": "imported"}
    config = run(corpus, tmp_path, source, keys=keys, pitch=with_pitch(tmp_path))
    assert report(tmp_path)["rejected"] == 0
    voiced = []
    for features in features_of(config, tmp_path):
        id = features.id
        assert_phones_last(features, symbols[id])
        spoken = hz[id] * (features.durations > 0)
        np.testing.assert_allclose(features.f0, np.repeat(hz[id], features.durations), rtol=1e-5)
        f0, durations = torch.from_numpy(features.f0)[None], torch.from_numpy(features.durations)
        means = average_by_phone(f0, durations[None])[0]  # FastPitch's target
        np.testing.assert_allclose(means, spoken, rtol=1e-5)
        if id not in ("LJ002-0020", "LJ002-0035"):  # in the training split
            voiced.append(features.f0[features.f0 > 0])
    stats = json.loads((tmp_path / "processed" / NAME / "stats.json").read_text())
    f0_frame = stats["speakers"][NAME]["f0_frame"]
    assert f0_frame["mean"] == pytest.approx(np.concatenate(voiced).mean(), rel=1e-5)


def test_pitch_that_does_not_fit_is_one_line_for_each_utterance(corpus, tmp_path):
    frontend = TextFrontend(LETTERS, "en-us")
    write_nvidia(tmp_path, {id: frontend(texts()[id]).phones for id in IDS})
    (tmp_path / "pitch_char/LJ001-0002.pt").unlink()
    torch.save(torch.ones(5).double(), tmp_path / "pitch_char/LJ001-0008.pt")
    keys = {"text": LETTERS}
    run(corpus, tmp_path, tmp_path / "durations", keys=keys, pitch=with_pitch(tmp_path))
    reasons = {id: row["reason"] for id, row in rejected(tmp_path).items()}
    assert reasons.keys() == {"LJ001-0002", "LJ001-0008"}
    assert "pitch_char has no pitch of it" in reasons["LJ001-0002"]
    assert "LJ001-0008.pt: pitch of 5 tokens, " in reasons["LJ001-0008"]


def test_alignments_without_pitch_and_pitch_without_frames_are_refused(corpus, spoken, tmp_path):
    source = write_all(tmp_path / "source", spoken)
    config = run(corpus, tmp_path, source, keys={"pitch_extractor": "imported"})
    with pytest.raises(InputError, match=r"imported alignment has no pitch.*import it again with"):
        prepare_dataset(config, NAME, 1)
    write_nvidia(tmp_path, {"LJ001-0002": "abc"})
    with pytest.raises(InputError, match=r"--pitch goes with frames .*\(npy or pt\); .*textgrid"):
        run(corpus, tmp_path, corpus / "TextGrid", pitch=with_pitch(tmp_path))


def test_frames_of_another_hop_become_the_same_seconds(corpus, spoken, tmp_path):
    rate = FrameRate(300, 24000)
    source = write_all(tmp_path / "source", spoken, rate=rate)
    with pytest.raises(InputError, match=r"frames \(256 samples at 22050 Hz\) add.*another hop"):
        run(corpus, tmp_path, source)
    rows = [f"{id}|{' '.join(spoken[id].phones)}" for id in IDS]
    table = tmp_path / "phones.txt"
    table.write_text("\n".join(["# hop_size 300 sample_rate 24000", *rows]))
    run(corpus, tmp_path, source, phones_file=table)
    row = json.loads((tmp_path / "imported/LJ001-0002.json").read_text())
    edges = np.cumsum(durations_of("LJ001-0002", len(spoken["LJ001-0002"].phones), rate)) * 0.0125
    ends = [phone["end_s"] for phone in row["phones"]]
    assert ends[:-1] == pytest.approx(edges[:-1].tolist(), abs=1e-12)


def test_a_few_frames_are_put_right_at_the_end(corpus, spoken, tmp_path):
    source = write_all(tmp_path / "source", spoken)
    written = {}
    for id, off in zip(IDS, (-4, -2, 2), strict=False):
        path = next(source.rglob(f"{id}*"))
        written[id] = np.load(path)
        np.save(path, np.array([*written[id][:-1], written[id][-1] + off]))
    features = features_of(run(corpus, tmp_path, source), tmp_path)
    for (id, frames), lost, found in zip(written.items(), (1, 1, 0), features, strict=False):
        assert (found.id, found.durations[-1]) == (id, frames[-1] - lost)
        assert found.durations[:-1].tolist() == frames[:-1].tolist()


def test_each_fault_is_counted_and_named_and_too_many_fail(corpus, spoken, tmp_path):
    source = write_all(tmp_path / "source", spoken, IDS[1:])
    path = {id: next(source.rglob(f"{id}*")) for id in IDS[1:]}
    np.save(path[IDS[1]], np.load(path[IDS[1]])[:-1])
    np.save(path[IDS[2]], np.load(path[IDS[2]]) * 2)
    path[IDS[3]].write_bytes(path[IDS[3]].read_bytes()[:-8])
    np.save(source / f"{IDS[4]}.npy", np.load(path[IDS[4]]))
    np.save(source / "LJ099-0001-durations.npy", np.array([1]))
    with pytest.raises(InputError, match=r"5 of 9 utterances .*allows 3") as caught:
        run(corpus, tmp_path, source)
    assert f"{path[IDS[1]]}: it has" in str(caught.value)
    assert "see --phones_file" in str(caught.value)
    assert report(tmp_path)["rejected"] == 5
    assert report(tmp_path)["extra"] == ["LJ099-0001-durations"]
    reasons = [rejected(tmp_path)[id]["reason"] for id in IDS[:5]]
    parts = ("does not have it", "tokens", "off by", str(path[IDS[3]]), "several times")
    assert all(part in reason for part, reason in zip(parts, reasons, strict=True))
    assert (tmp_path / f"imported/{IDS[5]}.json").is_file()
    assert not (tmp_path / f"imported/{IDS[1]}.json").exists()


def test_tokens_named_by_a_table_need_not_be_those_of_the_text(corpus, spoken, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    rows = []
    for id in IDS:
        phones = ["sp", *(p for p in spoken[id].phones if p[0] != "<"), "sp", "<eos>"]
        np.save(source / f"{id}.npy", durations_of(id, len(phones)))
        rows.append(f"{id}|{{{' '.join(phones)}}}\n")
    (tmp_path / "train.txt").write_text("".join(rows))
    config = run(corpus, tmp_path, source, phones_file=tmp_path / "train.txt")
    features = features_of(config, tmp_path)[IDS.index("LJ001-0002")]
    assert features.phones == spoken["LJ001-0002"].phones
    expected = durations_of("LJ001-0002", len(features.phones) + 1)[1:-2]
    assert features.durations[1:-1].tolist() == expected.tolist()


def test_textgrids_of_another_sentence_are_rejected(corpus, tmp_path):
    source = tmp_path / "TextGrid"
    shutil.copytree(corpus / "TextGrid", source)
    path = source / "LJ001-0008.TextGrid"
    shutil.copy(source / "LJ001-0002.TextGrid", path)
    run(corpus, tmp_path, source)
    words, text = "in being comparatively modern", "has never been surpassed."
    fault = f"{path}: its words are '{words}', those of the text '{text}'"
    reasons = {id: row["reason"] for id, row in rejected(tmp_path).items()}
    assert reasons == {"LJ001-0008": f"{fault}; does it belong to this text?"}


def test_a_newer_import_replaces_an_older_one_and_nothing_else(corpus, spoken, tmp_path):
    source = write_all(tmp_path / "source", spoken)
    run(corpus, tmp_path, source)
    next(source.rglob("LJ001-0002*")).unlink()
    run(corpus, tmp_path, source)
    assert not (tmp_path / "imported/LJ001-0002.json").exists()
    (tmp_path / "imported/import.json").unlink()
    with pytest.raises(InputError, match=r"imported is not an import"):
        run(corpus, tmp_path, source)
    with pytest.raises(InputError, match=r"holds the source; choose another --output"):
        run(corpus, tmp_path, source, output=tmp_path / "source")


def test_stage_1_refuses_what_was_imported_for_another_text(corpus, spoken, tmp_path):
    config = run(corpus, tmp_path, write_all(tmp_path / "source", spoken))
    path = tmp_path / "imported/LJ001-0002.json"
    path.write_text(path.read_text().replace("modern.", "ancient."))
    (tmp_path / "imported/LJ001-0008.json").unlink()
    config = replace(config, preprocess=replace(config.preprocess, max_bad_ratio=0.3))
    prepare_dataset(config, NAME, 1)
    rows = (tmp_path / "processed" / NAME / "rejected.jsonl").read_text().splitlines()
    reasons = {row["id"]: row["reason"] for row in map(json.loads, rows)}
    assert "is of the text 'in being comparatively ancient.'" in reasons["LJ001-0002"]
    assert "LJ001-0008.json: No such file or directory; import it again" in reasons["LJ001-0008"]
    shutil.rmtree(tmp_path / "imported")
    with pytest.raises(InputError, match=r"no folder .*imported; make it by python -m bins.import"):
        prepare_dataset(config, NAME, 1)


CONFIG = PreprocessConfig(min_seconds=0.0)  # 256 samples at 22050 Hz
TEXT = "Hi, you!"
QUIET = 0.001 * np.sin(np.arange(256 * 20))


@pytest.fixture
def utterance(tmp_path):
    path = tmp_path / "u1.wav"
    soundfile.write(path, QUIET, 22050)
    return Utterance("u1", path, TEXT, "ann", "en-us")


def fit(utterance, found, table=None, config=CONFIG):
    entry = sources.SourceEntry("u1", utterance.audio.with_suffix(".npy"), lambda: found)
    return Fitter(config, table)(entry, utterance)


def test_frames_of_twice_the_hop_become_twice_as_many_frames(utterance):
    phones = TextFrontend(CONFIG.text, "en-us")(TEXT).phones
    frames = np.ones(len(phones), dtype=np.int64)
    frames[1] = 10 - len(phones) + 1
    speech = fit(utterance, frames, Table({"u1": Tokens(phones)}, FrameRate(512, 22050)))
    assert speech.frames.tolist() == (2 * frames).tolist()
    assert [phone.name for phone in speech.phones] == list(phones)
    assert [word.text for word in speech.words] == ["Hi", "you"]
    assert speech.seconds == pytest.approx(256 * 20 / 22050)


def test_signs_among_named_tokens_are_silences(utterance):
    tokens = Tokens(("HH", "AY1", ",", "Y", "UW1", "<eos>"), 0.0)
    speech = fit(utterance, np.array([2, 2, 4, 2, 2, 1]), Table({"u1": tokens}, None))
    assert [phone.name for phone in speech.phones[1:]] == ["HH", "AY1", "<,>", "Y", "UW1", "<!>"]
    assert speech.frames[1:-1].tolist() == [2, 2, 4, 2, 2]


def test_an_error_names_the_file_of_the_entry(utterance):
    with pytest.raises(AlignmentError, match=r"u1\.npy: it has 2 durations for \d+ tokens"):
        fit(utterance, np.array([10, 10]))
    grid = make_grid(None, [], [("HH", 0.2, 0.1)])
    with pytest.raises(AlignmentError, match=r"u1\.npy: HH lasts from 0.200 to 0.100 s"):
        fit(utterance, grid)


IN_LETTERS = replace(CONFIG, aligner="imported", text=TextConfig(phone_extractor="letters"))
SPELT = "it's a cat, so"


def test_durations_of_letters_fit_text_in_letters(utterance):
    names = (*"it's", "_", "a", "_", *"cat", ",", "_", *"so", ".")  # a comma and a space
    frames = np.array([1, 1, 0, 2, 0, 1, 3, 1, 1, 1, 2, 1, 2, 2, 2])
    table = Table({"u1": Tokens(names)}, None)
    speech = fit(replace(utterance, text=SPELT), frames, table, IN_LETTERS)
    found = [(phone.name, n) for phone, n in zip(speech.phones, speech.frames, strict=True)]
    words = [*zip("it's", [1, 1, 0, 2], strict=True), ("<space>", 0), ("a", 1), ("<space>", 3)]
    words += [("c", 1), ("a", 1), ("t", 1), ("<,>", 3), ("s", 2), ("o", 2)]
    assert found[1:-1] == words
    assert [word.text for word in speech.words] == ["it's", "a", "cat", "so"]
