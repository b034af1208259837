"""Texts are divided among voices in balanced order."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from config.text import TextConfig
from models.programs.distil.texts import PoolText, divide, read_pool
from processors.text.frontend import TextFrontend

EGS = Path(__file__).parents[4] / "egs"


@pytest.fixture(scope="module")
def everyday():
    frontend = TextFrontend(TextConfig(), "en-us")
    return read_pool(EGS / "_texts" / "everyday.txt", frontend)


@pytest.fixture(scope="module")
def pool(everyday):
    demo = EGS / "_demo" / "LJSpeech-mini" / "metadata.csv"
    return everyday + read_pool(demo, TextFrontend(TextConfig(), "en-us"))


def text(id, diphones, kind="length 0", length=10):
    return PoolText(id, id, id, kind, length, Counter(diphones), "")


def n_diphones(texts):
    return len({pair for text in texts for pair in text.diphones})


def length_of(texts):
    return sum(text.length for text in texts)


def shuffled_to(pool, length, seed):
    texts = Random(seed).sample(pool, len(pool))
    return next(texts[:n] for n in range(len(texts)) if length_of(texts[:n]) >= length)


@pytest.mark.parametrize("length", [1000, 3000])
def test_chosen_texts_have_a_tenth_more_diphones_than_random_ones_of_the_same_length(pool, length):
    chosen = divide(pool, ["anna"], 0, length=length)["anna"]
    assert length <= length_of(chosen) < length + max(text.length for text in pool)
    random = [n_diphones(shuffled_to(pool, length, seed)) for seed in range(20)]
    assert n_diphones(chosen) > 1.1 * max(random)


def test_every_kind_has_its_share_as_far_as_there_are_texts(pool):
    chosen = divide(pool, ["anna"], 0, length=3000)["anna"]
    shares = Counter()
    for chosen_text in chosen:
        shares[chosen_text.kind] += chosen_text.length / length_of(chosen)
    assert shares["question"] == pytest.approx(0.12, abs=0.03)
    assert shares["exclamation"] == pytest.approx(0.06, abs=0.03)
    available = Counter(text.kind for text in pool)
    few = [kind for kind in ("single word", "number") if kind in available]
    for kind in few:
        used_up = sum(text.kind == kind for text in chosen) == available[kind]
        assert used_up or shares[kind] > 0.03
    lengths = [share for kind, share in shares.items() if kind.startswith("length")]
    assert max(lengths) - min(lengths) < 0.15


def test_voices_get_different_texts_of_the_same_length_and_together_all(pool):
    taken = divide(pool, ["anna", "bert", "carl"], 0)
    ids = [text.id for texts in taken.values() for text in texts]
    assert sorted(ids) == sorted(text.id for text in pool)
    lengths = [length_of(texts) for texts in taken.values()]
    assert max(lengths) - min(lengths) <= max(text.length for text in pool)


def test_more_speech_continues_what_less_began(pool):
    less = divide(pool, ["anna", "bert"], 0, length=500)
    more = divide(pool, ["anna", "bert"], 0, length=1500)
    for voice, texts in less.items():
        assert more[voice][: len(texts)] == texts
        assert len(more[voice]) > len(texts)


def test_more_texts_continue_what_fewer_began(pool):
    less, more = (divide(pool, ["anna", "bert", "carl"], 0, n_texts=n) for n in (10, 20))
    for voice, texts in less.items():
        assert len(texts) == 10
        assert more[voice][:10] == texts
        assert len(more[voice]) == 20


def test_each_voice_gets_the_number_of_texts_that_is_asked_for(pool):
    taken = divide(pool, ["anna", "bert"], 0, n_texts=7)
    assert [len(texts) for texts in taken.values()] == [7, 7]


def test_the_seed_decides(pool):
    first, again, other = (divide(pool, ["anna"], seed, length=500) for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize(("spoken", "first"), [("K", "B"), ("B", "K")])
def test_diphones_of_texts_that_all_voices_speak_count_as_spoken(spoken, first):
    texts = [text(f"{phone}{n}", {(phone, "IY1"): 1}) for phone in "KB" for n in range(20)]
    chosen = divide(texts, ["anna"], 0, [text("x", {(spoken, "IY1"): 1})], n_texts=1)["anna"]
    assert chosen[0].id.startswith(first)


def test_a_pool_smaller_than_the_number_of_voices_leaves_some_without_texts():
    taken = divide([text("a", {})], ["anna", "bert"], 0, length=100)
    assert [len(texts) for texts in taken.values()] == [1, 0]
