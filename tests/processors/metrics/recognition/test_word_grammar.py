import numpy as np
import pytest
import soxr

from processors.metrics.recognition.word_grammar import recognised_words, word_indices
from tests.processors.spliced import WORDS, Recording


@pytest.fixture(scope="module")
def recording():
    return Recording()


def said(wav, rate, words=WORDS):
    return [place for place, _ in recognised_words(words, wav, rate)]


@pytest.mark.parametrize(
    ("text", "spoken", "expected"),
    [
        ("a b c", "a b c", [0, 1, 2]),
        ("a b c", "a c", [0, 2]),
        ("a b c", "b", [1]),
        ("a b c", "a b a b c", [0, 1, 0, 1, 2]),
        ("the cat the dog", "the dog", [2, 3]),  # as near to the end as to the beginning
        ("the cat the dog", "the cat the the dog", [0, 1, 2, 2, 3]),
        ("the cat the dog ran", "the cat ran", [0, 1, 4]),
        ("a a a", "a a", [0, 1]),
    ],
)
def test_words_are_placed_with_the_fewest_skipped_or_repeated(text, spoken, expected):
    words = text.split()
    found = word_indices(words, spoken.split())
    assert [words[place] for place in found] == spoken.split()
    assert cost(found, len(words)) == cost(expected, len(words))


def cost(found: list[int], n_words: int) -> int:
    """Words skipped and repeated, in all."""
    steps = np.diff([-1, *found, n_words])
    return int(np.abs(steps - 1).sum())


def test_a_recording_says_its_words_in_order_where_they_start(recording):
    found = recognised_words(WORDS, recording.wav, recording.rate)
    assert [place for place, _ in found] == list(range(len(WORDS)))
    late = np.array([start_s for _, start_s in found]) - recording.starts_s
    assert np.abs(late[1:]).max() < 0.1  # the first includes the silence before it


def test_words_that_are_cut_out_are_skipped(recording):
    everything = list(range(len(WORDS)))
    for start, end in ((2, 4), (7, 9), (0, 2), (12, 14)):
        wav = recording.without(start, end)
        assert said(wav, recording.rate) == everything[:start] + everything[end:]


def test_words_that_are_spoken_twice_are_repeated(recording):
    everything = list(range(len(WORDS)))
    for start, end in ((7, 8), (6, 9), (11, 14)):
        wav = recording.twice(start, end)
        assert said(wav, recording.rate) == everything[:end] + everything[start:]


def test_found_words_do_not_depend_on_earlier_signals(recording):
    first = recognised_words(WORDS, recording.wav, recording.rate)
    noise = np.random.default_rng(0).normal(scale=0.3, size=30000).astype(np.float32)
    recognised_words(["other", "words"], noise, 16000)
    assert recognised_words(WORDS, recording.wav, recording.rate) == first


def test_rate_and_level_do_not_matter(recording):
    for rate in (16000, 48000):
        wav = soxr.resample(recording.wav, recording.rate, rate)
        assert said(0.02 * wav, rate) == list(range(len(WORDS)))


def test_a_word_that_no_dictionary_holds_is_pronounced(recording):
    words = ["prodooced", *WORDS[1:]]
    assert said(recording.wav, recording.rate, words) == list(range(len(WORDS)))


def test_silence_and_what_is_too_short_say_nothing(recording):
    assert recognised_words(WORDS, np.zeros(16000, dtype=np.float32), 16000) is None
    assert recognised_words(WORDS, recording.wav[:0], recording.rate) is None
    assert recognised_words(["predecessors"], recording.wav[9000:9100], recording.rate) is None
