import random
import string

import pytest

from processors.text.g2p import LexiconPhonemizer, is_arpabet
from processors.text.lexicon import lookup
from utils.errors import InputError


def say(*words, **lexicon):
    return [" ".join(one.phones) for one in LexiconPhonemizer(lexicon)(words)]


def test_lexicon_words_are_known():
    (hello,) = LexiconPhonemizer()(["Hello"])
    assert hello[:2] == (("HH", "AH0", "L", "OW1"), True)


def test_the_users_lexicon_comes_first():
    assert say("Hello", hello=("B", "AY1")) == ["B AY1"]


@pytest.mark.parametrize(
    ("word", "stem", "ending"),
    [
        ("zoltan's", "zoltan", "Z"),
        ("aardvark's", "aardvark", "S"),
        ("aalseth's", "aalseth", "S"),
        ("abscess's", "abscess", "IH0 Z"),
        ("aardvarked", "aardvark", "T"),
        ("bananaed", "banana", "D"),
        ("wombated", "wombat", "IH0 D"),
        ("wombating", "wombat", "IH0 NG"),
        ("xylophoned", "xylophone", "D"),
        ("xylophoning", "xylophone", "IH0 NG"),
    ],
)
def test_endings_follow_the_voicing_of_the_stem(word, stem, ending):
    assert lookup(word) is None
    expected = f"{' '.join(lookup(stem))} {ending}"
    assert LexiconPhonemizer()([word])[0][:2] == (tuple(expected.split()), False)


def test_a_doubled_consonant_and_a_y_find_their_stems():
    lexicon = {"zug": ("Z", "AH1", "G"), "zorry": ("Z", "AO1", "R", "IY0")}
    assert say("zugged", "zugging", "zorries", "zorried", **lexicon) == [
        "Z AH1 G D",
        "Z AH1 G IH0 NG",
        "Z AO1 R IY0 Z",
        "Z AO1 R IY0 D",
    ]


def test_compounds_are_said_part_by_part():
    assert say("well-known", "A-bomb") == ["W EH1 L N OW1 N", "EY1 B AA1 M"]


def test_quotes_around_a_word_do_not_matter():
    assert say("'hello'", "dogs'", "'tis") == ["HH AH0 L OW1", "D AO1 G Z", "T IH1 Z"]


def test_a_capital_a_is_the_letter_among_letters_and_inside_a_clause():
    assert say("A", "man") == ["AH0", "M AE1 N"]
    assert say("U", "S", "A")[2] == "EY1"
    assert say("A", "B")[0] == "EY1"
    assert say("plan", "A")[1] == "EY1"
    assert say("plan", "a")[1] == "AH0"


def test_new_words_are_said_as_their_letters_sound_and_reported():
    (said,) = LexiconPhonemizer()(["flibberty"])
    assert said[:2] == (("F", "L", "IH1", "B", "ER0", "T", "IY0"), False)


def test_words_without_a_vowel_are_spelt():
    (said,) = LexiconPhonemizer()(["xqd"])
    assert said[:2] == (("EH1", "K", "S", "K", "Y", "UW1", "D", "IY1"), False)


@pytest.mark.parametrize("word", ["25", "%", "naïve2", "привет"])
def test_what_cannot_be_said_is_named(word):
    with pytest.raises(InputError, match=f"'{word}' has no English pronunciation"):
        LexiconPhonemizer()([word])


def test_every_word_of_letters_has_phones_of_the_inventory():
    generator = random.Random(3)
    alphabet = string.ascii_letters + "'"
    phonemizer = LexiconPhonemizer()
    for _ in range(500):
        word = generator.choice(string.ascii_letters) + "".join(
            generator.choices(alphabet, k=generator.randint(0, 11))
        )
        (said,) = phonemizer([word])
        assert said.phones, word
        assert all(map(is_arpabet, said.phones)), word
