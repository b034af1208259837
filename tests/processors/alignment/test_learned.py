"""Stage 1 where the model is to find the durations."""

import dataclasses

import numpy as np
import pytest

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError, make_aligner
from processors.dataset.store import FeatureStore
from processors.extraction.fingerprint import read_fingerprint
from processors.records import SpokenText, Word, WordPhones
from tests.processors.small_corpus import DEMO, config_of, copy_corpus, prepare_dataset, texts
from tests.processors.utterances import RATE, sing
from utils.files import read_json, read_jsonl

IDS = ["LJ001-0002", "LJ001-0008", "LJ002-0020", "LJ002-0035", "LJ011-0202"]
SPOKEN = SpokenText("Ah.", "ah.", ("<sil>", "AA1", "<.>"), (Word("ah", 1, 2),))


def align(wav, spoken=SPOKEN, **keys):
    utterance = Utterance("a", DEMO / "none.wav", "Ah.", "ann", "en-us")
    aligner = make_aligner(PreprocessConfig(aligner="learned", sample_rate=RATE, **keys), DEMO)
    return aligner(utterance, wav.astype(np.float32), spoken)


def test_the_phones_of_the_text_get_the_span_of_the_speech_and_no_times():
    found = align(np.concatenate([np.zeros(RATE), sing(), np.zeros(2 * RATE)]), edge_silence_s=0.1)
    end_s = 1 + len(sing()) / RATE
    assert found.phones == SPOKEN.phones
    assert found.words == SPOKEN.words
    assert not found.has_times
    assert found.boundaries_s == pytest.approx([1 - 0.22, end_s + 0.22], abs=0.03)
    assert align(sing()).boundaries_s.tolist() == [0, len(sing()) / RATE]  # it stays whole
    with pytest.raises(AlignmentError, match="the recording has no speech"):
        align(np.zeros(RATE))


@pytest.mark.parametrize("hop_length", [256, 1024])
def test_more_than_40_phones_a_second_or_one_a_frame_are_refused_as_the_longest(hop_length):
    n_frames = round(2 * RATE / hop_length)
    wav = np.tile(sing(), 9)[: 2 * RATE]
    allowed = min(80, n_frames)  # 40 a second
    align(wav, with_phones(allowed), hop_length=hop_length)
    message = rf"{allowed + 1} phones and pauses in 2.00 s of speech \({n_frames} frames\)"
    with pytest.raises(AlignmentError, match=message):
        align(wav, with_phones(allowed + 1), hop_length=hop_length)
    words = (WordPhones(0, 1, 2, ("D", "AH1", "B")),)  # two phones more than letters
    align(wav, dataclasses.replace(with_phones(78), word_phones=words))
    with pytest.raises(AlignmentError, match=r"81 phones and pauses in 2\.00 s"):
        align(wav, dataclasses.replace(with_phones(79), word_phones=words))


def with_phones(n):
    return dataclasses.replace(SPOKEN, phones=("<sil>", *["AA1"] * (n - 2), "<.>"))


def test_stage_1_stores_utterances_without_durations_and_statistics_of_frames(tmp_path):
    corpus = copy_corpus(tmp_path / "corpus", IDS)
    prepare_dataset(config_of(corpus, tmp_path / "data", aligner="learned"), "LJSpeech", 1)
    folder = tmp_path / "data" / "LJSpeech"
    store = FeatureStore(folder)
    assert list(store.ids) == sorted(IDS)
    assert not store.timed
    for id in IDS:
        features = store.read(id)
        assert features.durations is None
        assert features.phones[0] == "<sil>"
        assert features.phones[-1] in {"<.>", "<,>", "<?>", "<!>"}
        assert features.f0.shape == features.energy.shape == features.mel.shape[1:]
        assert len(features.phones) == store.phones_count[store.index_of(id)]
    pooled = read_json(folder / "stats.json")["pooled"]
    assert pooled["f0_phone"] == pooled["f0_frame"]
    assert pooled["energy_phone"] == pooled["energy_frame"]
    assert "<sp>" not in read_json(folder / "phones.json")
    # another aligner makes the features again
    before = read_fingerprint(folder)
    done = prepare_dataset(config_of(corpus, tmp_path / "data"), "LJSpeech", 1)
    assert done.n_extracted == len(IDS)
    assert FeatureStore(folder).timed
    assert before.shards != read_fingerprint(folder).shards


def test_an_utterance_with_too_many_phones_is_rejected_by_name(tmp_path):
    corpus = copy_corpus(tmp_path / "corpus", IDS)
    table = corpus / "metadata.csv"
    said = texts()["LJ011-0202"]
    table.write_text(table.read_text().replace(said, said * 12))
    prepare_dataset(config_of(corpus, tmp_path / "data", aligner="learned"), "LJSpeech", 1)
    (row,) = read_jsonl(tmp_path / "data" / "LJSpeech" / "rejected.jsonl")
    assert (row["id"], row["stage"]) == ("LJ011-0202", "alignment")
    assert "does the recording match its text" in row["reason"]
