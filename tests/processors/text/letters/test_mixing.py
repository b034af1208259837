import random

import pytest

from config.text import TextConfig
from processors.records import WordPhones
from processors.text.frontend import TextFrontend
from processors.text.letters.mixing import draw, longest, mix, substitute

WORDS = [WordPhones(index, 2 * index, 2 * index + 1, ("X",)) for index in range(5000)]
DRAWN = [0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 16, 17]


@pytest.fixture(scope="module")
def spoken():
    return TextFrontend(TextConfig(phone_extractor="mixed"), "en-us")("The big cat, a house now.")


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_the_share_of_phones_is_the_probability(p):
    share = len(draw(WORDS, p, 1, 0, "utt")) / len(WORDS)
    assert share == pytest.approx(p, abs=4 * (p * (1 - p) / len(WORDS)) ** 0.5)


def test_each_word_is_drawn_anew_in_each_epoch_and_utterance():
    one, other = draw(WORDS, 0.5, 1, 0, "utt"), draw(WORDS, 0.5, 1, 1, "utt")
    both = len(set(one) & set(other)) / len(WORDS)
    assert both == pytest.approx(0.25, abs=0.03)  # independent
    assert draw(WORDS, 0.5, 1, 0, "other") != one
    assert draw(WORDS, 0.5, 2, 0, "utt") != one


def test_a_draw_depends_on_its_names_alone():
    shuffled = random.Random(0).sample(WORDS, len(WORDS))
    assert set(draw(shuffled, 0.3, 1, 2, "utt")) == set(draw(WORDS, 0.3, 1, 2, "utt"))
    # the same on every machine and in every process
    assert [one.word for one in draw(WORDS[:20], 0.5, 1, 0, "utt")] == DRAWN


def test_chosen_words_take_the_place_of_their_letters():
    words = [WordPhones(0, 1, 3, ("A1", "B", "C")), WordPhones(1, 4, 6, ("D",))]
    letters = ("<sil>", "a", "b", "<space>", "c", "d", "<.>")
    assert substitute(letters, words) == ("<sil>", "A1", "B", "C", "<space>", "D", "<.>")
    assert substitute(letters, words[1:]) == ("<sil>", "a", "b", "<space>", "D", "<.>")
    assert substitute(letters, []) == letters
    assert longest(letters, words) == 8


def test_spans_of_words_follow_the_mixture(spoken):
    whole = mix(spoken, 1.0)
    said = {word.text: " ".join(whole.phones[word.start : word.end]) for word in whole.words}
    assert said == {
        "The": "t h e", "big": "B IH1 G", "cat": "K AE1 T", "a": "a", "house": "HH AW1 S",
        "now": "N AW1",
    }  # fmt: skip
    assert mix(spoken, 0.0).phones == spoken.phones
    assert mix(spoken, 0.0).words == spoken.words


def test_a_mixture_is_the_same_at_every_call(spoken):
    assert mix(spoken, 0.5) == mix(spoken, 0.5)
    assert mix(spoken, 0.5).phones not in (mix(spoken, 0.0).phones, mix(spoken, 1.0).phones)
