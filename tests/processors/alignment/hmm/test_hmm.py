"""The aligner that learns from the corpus, on real recordings, against the Montreal Forced Aligner.

How well it does on more speech is measured elsewhere; these are 78 seconds of it.
"""

import shutil
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from config.preprocess import PreprocessConfig
from config.text import TextConfig
from preprocessors.manifest import Utterance
from processors.alignment import hmm
from processors.alignment.aligner import AlignmentError, make_aligner
from processors.alignment.hmm import MODEL_FILE, choose, plan_training
from processors.alignment.hmm.model import load_model, read_origin, save_model
from processors.alignment.textgrid import read_textgrid
from processors.audio.files import Audio, read_audio
from processors.dataset.store import FeatureStore
from processors.records import Alignment
from processors.text.frontend import TextFrontend
from processors.text.symbols import PAUSES, SHORT_PAUSE, SILENCE
from tests.processors import small_corpus
from tests.processors.small_corpus import DEMO, config_of, copy_corpus, prepare_dataset, texts
from utils.errors import InputError
from utils.files import read_jsonl

CONFIG = PreprocessConfig(aligner="hmm", backend="sequential")
WAVS = sorted((DEMO / "wavs").iterdir(), key=lambda path: path.stat().st_size)
SHORTEST = [path.stem for path in WAVS[:20]]


def utterance(id, root=DEMO, speaker="LJSpeech"):
    return Utterance(id, root / f"wavs/{id}.flac", texts()[id], speaker)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder of a model trained on the shortest recordings."""
    place = tmp_path_factory.mktemp("processed")
    plan_training(CONFIG, [utterance(id) for id in SHORTEST], place).carry_out(1)
    return place


OTHER_TEXT = "The moon is made of cheese."


def align(folder, id, text=None, wav=None, config=CONFIG) -> Alignment:
    one = utterance(id)
    wav = read_audio(one.audio, CONFIG).wav if wav is None else wav
    spoken = TextFrontend(CONFIG.text, "en-us")(text or one.text)
    return make_aligner(config, DEMO, folder)(one, wav, spoken)


def starts_of(alignment):
    pairs = zip(alignment.phones, alignment.boundaries_s, strict=False)
    return [(phone.rstrip("012"), start) for phone, start in pairs if phone not in PAUSES]


def test_little_more_than_a_minute_of_speech_is_enough_to_find_phones(folder):
    errors, n_compared = [], 0
    for id in set(SHORTEST) - {"LJ001-0013"}:  # whose TextGrid is bad
        found = starts_of(align(folder, id))
        grid = read_textgrid(DEMO / f"TextGrid/{id}.TextGrid").phones
        said = [(phone.name.rstrip("012"), phone.start_s) for phone in grid]
        if [phone for phone, _ in found] == [phone for phone, _ in said]:
            n_compared += 1
            errors += [ours[1] - theirs[1] for ours, theirs in zip(found, said, strict=True)]
    assert n_compared >= 5
    assert np.median(np.abs(errors)) < 0.025
    assert np.mean(np.abs(errors) <= 0.05) > 0.7
    assert abs(np.median(errors)) < 0.015


def test_an_alignment_has_the_phones_of_the_text_and_lies_in_the_recording(folder):
    alignment = align(folder, "LJ001-0008")
    spoken = TextFrontend(CONFIG.text, "en-us")(texts()["LJ001-0008"])
    assert [p for p in alignment.phones if p != SHORT_PAUSE] == list(spoken.phones)
    assert alignment.phones[0] == SILENCE
    assert (np.diff(alignment.boundaries_s) >= 0).all()
    duration_s = len(read_audio(utterance("LJ001-0008").audio, CONFIG).wav) / 22050
    assert 0 <= alignment.boundaries_s[0] < alignment.boundaries_s[-1] <= duration_s


def test_silence_that_is_put_between_two_words_is_found(folder):
    wav = read_audio(utterance("LJ001-0008").audio, CONFIG).wav
    before = align(folder, "LJ001-0008")
    second = before.boundaries_s[before.words[2].start]  # "has never been surpassed"
    cut = int(second * 22050)
    noise = np.random.default_rng(0).normal(0, 1e-4, 22050 // 2).astype(np.float32)
    after = align(folder, "LJ001-0008", wav=np.concatenate([wav[:cut], noise, wav[cut:]]))
    place = after.words[2].start - 1
    assert after.phones[place] == SHORT_PAUSE
    assert np.diff(after.boundaries_s)[place] == pytest.approx(0.5, abs=0.15)


def test_a_text_of_another_recording_fits_badly_and_a_word_that_is_not_said_is_named(folder):
    said = align(folder, "LJ001-0008")  # "has never been surpassed"
    assert align(folder, "LJ001-0008", OTHER_TEXT).score.misfit > 100 > said.score.misfit
    score = align(folder, "LJ001-0008", "has scarcely been surpassed.").score
    assert score.misfit > 50
    assert "scarcely" in score.words
    never = said.words[1]
    start_s, end_s = said.boundaries_s[never.start], said.boundaries_s[never.end]
    assert score.start_s == pytest.approx(start_s, abs=0.15)
    assert score.end_s == pytest.approx(end_s, abs=0.15)


def test_too_short_a_recording_and_a_folder_without_a_model_are_refused(folder, tmp_path):
    with pytest.raises(AlignmentError, match=r"0\.50 s of audio are too short for \d+ phones"):
        align(folder, "LJ001-0008", wav=np.zeros(11025, np.float32))
    with pytest.raises(InputError, match="no model of the aligner hmm can be read"):
        make_aligner(CONFIG, DEMO, tmp_path)


def is_trained(plan):
    """Whether the file contains this model already."""
    _, path, _, origin = plan.carry_out.args
    return read_origin(path) == origin


def test_a_model_is_kept_for_the_same_corpus_and_a_tenth_more(folder):
    known = [utterance(id) for id in SHORTEST]
    assert is_trained(plan_training(CONFIG, known, folder))
    more = [replace(known[0], id=f"new{n}") for n in range(3)]
    kept = plan_training(CONFIG, [*known, *more[:2]], folder)
    assert is_trained(kept)
    assert kept.identity == plan_training(CONFIG, known, folder).identity
    assert not is_trained(plan_training(CONFIG, [*known, *more], folder))


def test_a_model_that_another_run_put_there_meanwhile_is_replaced(folder, tmp_path, monkeypatch):
    trained = load_model(folder / MODEL_FILE)
    shutil.copy2(folder / MODEL_FILE, tmp_path)
    plan = plan_training(CONFIG, [utterance(id) for id in SHORTEST], tmp_path)
    origin = plan.carry_out.args[-1]
    save_model(tmp_path / MODEL_FILE, trained, origin | {"config": "another"})
    monkeypatch.setattr(hmm, "_examples", lambda *args: [])
    monkeypatch.setattr(hmm, "train", lambda examples, n_threads: trained)
    plan.carry_out(1)
    assert read_origin(tmp_path / MODEL_FILE) == origin


@pytest.mark.parametrize(
    "changed", [replace(CONFIG, min_seconds=0.5), replace(CONFIG, sample_rate=24000)]
)
def test_another_configuration_needs_another_model(folder, changed):
    known = [utterance(id) for id in SHORTEST]
    plan = plan_training(changed, known, folder)
    assert not is_trained(plan)
    assert plan.identity != plan_training(CONFIG, known, folder).identity


def test_learning_takes_as_much_of_each_speaker_as_there_is():
    rich = [Utterance(f"r{n}", Path("r.wav"), "a", "rich") for n in range(100)]
    poor = [Utterance(f"p{n}", Path("p.wav"), "a", "poor") for n in range(5)]
    chosen = choose([*rich, *poor], most=30)
    assert len(chosen) == 30
    assert {one.id for one in chosen} >= {one.id for one in poor}
    assert choose([*poor, *reversed(rich)], most=30) == chosen
    assert set(choose(rich[1:], most=30)) - set(choose(rich, most=30)) <= {rich[0], *rich[1:]}


def test_each_of_25_speakers_is_heard_however_long_recordings_are(tmp_path, monkeypatch):
    heard = []
    monkeypatch.setattr(hmm, "read_audio", lambda *args: Audio(np.zeros(1), ()))
    monkeypatch.setattr(hmm.model, "mfcc", lambda *args: np.zeros((1400, 1), np.float32))
    monkeypatch.setattr(hmm, "train", lambda examples, n_threads: heard.extend(examples))
    monkeypatch.setattr(hmm.model, "save_model", lambda *args: None)
    pairs = product(range(25), range(100))
    many = [Utterance(f"{s}_{n}", Path("a.wav"), "a", f"spk{s:02d}") for s, n in pairs]
    plan_training(CONFIG, many, tmp_path).carry_out(1)
    counts = Counter(example.speaker for example in heard)
    assert len(counts) == 25
    assert max(counts.values()) - min(counts.values()) <= 5
    assert 0.9 * hmm.MAX_FRAMES < 1400 * len(heard) <= hmm.MAX_FRAMES


def test_learning_from_recordings_that_cannot_be_read_is_an_error(tmp_path):
    lost = Utterance("u1", tmp_path / "missing.wav", "Hello.", "ann")
    with pytest.raises(InputError, match="no recording is long enough"):
        plan_training(CONFIG, [lost], tmp_path).carry_out(1)
    assert not (tmp_path / MODEL_FILE).exists()


def test_stage_1_learns_once_and_aligns_everything(folder, tmp_path, monkeypatch):
    corpora, model = [], load_model(folder / MODEL_FILE)
    monkeypatch.setattr(hmm, "train", lambda examples, _: corpora.append(examples) or model)
    ids = SHORTEST[:13]
    root = copy_corpus(tmp_path / "corpus", ids)
    small_corpus.write_texts(root, {id: texts()[id] for id in ids[:-1]})
    config = config_of(root, tmp_path / "data", aligner="hmm")
    summary = prepare_dataset(config, "LJSpeech", 1)
    assert (summary.n_usable, summary.n_rejected) == (12, 0)
    assert set(FeatureStore(tmp_path / "data/LJSpeech", config.preprocess.mel).ids) == set(ids[:-1])
    scores = read_jsonl(tmp_path / "data/LJSpeech/alignment_scores.jsonl")
    assert {row["id"] for row in scores} == set(ids[:-1])
    assert scores[0]["misfit"] == max(row["misfit"] for row in scores)
    assert prepare_dataset(config, "LJSpeech", 1) is None
    path = tmp_path / "data/LJSpeech" / MODEL_FILE
    trained = path.read_bytes()
    small_corpus.write_texts(root, {id: texts()[id] for id in ids})
    assert prepare_dataset(config, "LJSpeech", 1).n_extracted < 13
    assert path.read_bytes() == trained
    assert [len(examples) for examples in corpora] == [12]


def test_stage_1_refuses_a_wrong_transcript_lists_it_and_warns(folder, tmp_path, caplog):
    root, place = copy_corpus(tmp_path / "corpus", SHORTEST), tmp_path / "data/LJSpeech"
    by_id = {id: texts()[id] for id in SHORTEST} | {"LJ001-0008": OTHER_TEXT}
    small_corpus.write_texts(root, by_id)
    place.mkdir(parents=True)
    shutil.copy2(folder / MODEL_FILE, place)  # one text of twenty is another: it is good still
    config = config_of(root, tmp_path / "data", aligner="hmm", max_misfit=100.0)
    prepare_dataset(config, "LJSpeech", 1)
    rejected = {row["id"]: row for row in read_jsonl(place / "rejected.jsonl")}
    assert rejected["LJ001-0008"]["stage"] == "alignment"
    assert "do not fit: misfit" in rejected["LJ001-0008"]["reason"]
    scores = read_jsonl(place / "alignment_scores.jsonl")
    assert len(scores) == len(SHORTEST)
    assert (scores[0]["id"], scores[0]["text"]) == ("LJ001-0008", OTHER_TEXT)
    assert "may differ from their texts" in caplog.text


def test_letters_are_aligned_within_their_words(tmp_path):
    """Word onsets by letters, on a few clips, against those of MFA."""
    config = replace(CONFIG, text=TextConfig(phone_extractor="letters"))
    plan_training(config, [utterance(id) for id in SHORTEST[:6]], tmp_path).carry_out(1)
    errors = []
    for id in SHORTEST[:6]:
        one = utterance(id)
        wav = read_audio(one.audio, config).wav
        spoken = TextFrontend(config.text, "en-us")(one.text)
        found = make_aligner(config, DEMO, tmp_path)(one, wav, spoken)
        assert found.phones == spoken.phones
        words = read_textgrid(DEMO / f"TextGrid/{id}.TextGrid").words
        if len(words) == len(found.words):
            onsets = [found.boundaries_s[word.start] for word in found.words]
            errors += [ours - word.start_s for ours, word in zip(onsets, words, strict=True)]
    assert len(errors) > 15
    assert np.median(np.abs(errors)) < 0.1
