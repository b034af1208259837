import random
import string

import numpy as np
import pytest
import torch
from torch import nn

from processors.text.g2p import (
    CMUDICT_PATH,
    LexiconPhonemizer,
    Pronunciation,
    is_arpabet,
    lookup,
    pronounce,
    read_lexicon,
)
from processors.text.letter_network import PATH, unpacked
from utils.errors import InputError


def say(*words, **lexicon):
    return [" ".join(one.phones) for one in LexiconPhonemizer(lexicon)(words)]


@pytest.mark.parametrize(
    ("clause", "word", "phones"),
    [
        ("it is no use", "use", "Y UW1 S"),
        ("they use it", "use", "Y UW1 Z"),
        ("Its uses are many", "uses", "Y UW1 S IH0 Z"),
        ("she uses it", "uses", "Y UW1 Z IH0 Z"),
        ("Close the door", "Close", "K L OW1 Z"),
        ("a close friend", "close", "K L OW1 S"),
        ("I live here", "live", "L IH1 V"),
        ("live music tonight", "live", "L AY1 V"),
        ("their lives", "lives", "L AY1 V Z"),
        ("he lives there", "lives", "L IH1 V Z"),
        ("he will read it", "read", "R IY1 D"),
        ("Read the text", "Read", "R IY1 D"),
        ("I have read it", "read", "R EH1 D"),
        ("world records", "records", "R EH1 K ER0 D Z"),
        ("she didn't record it", "record", "R AH0 K AO1 R D"),
        ("strong wind", "wind", "W IH1 N D"),
        ("to wind it up", "wind", "W AY1 N D"),
        ("separate rooms", "separate", "S EH1 P R AH0 T"),
        ("we separate them", "separate", "S EH1 P ER0 EY2 T"),
        ("closes early", "closes", "K L OW1 Z IH0 Z"),  # one pronunciation
    ],
)
def test_words_around_a_homograph_choose_its_pronunciation(clause, word, phones):
    words = clause.split()
    said = LexiconPhonemizer()(words)[words.index(word)]
    assert said == Pronunciation(tuple(phones.split()), in_lexicon=True)


def test_a_homograph_of_the_users_lexicon_is_said_as_it_says():
    said = LexiconPhonemizer({"use": ("Y", "UH1", "Z")})(["no", "use"])
    assert said[1].phones == ("Y", "UH1", "Z")


@pytest.mark.parametrize(
    ("word", "stem", "ending"),
    [
        ("zoltan's", "zoltan", "Z"), ("aardvark's", "aardvark", "S"), ("aalseth's", "aalseth", "S"),
        ("abscess's", "abscess", "IH0 Z"), ("aardvarked", "aardvark", "T"),
        ("bananaed", "banana", "D"), ("wombated", "wombat", "IH0 D"),
        ("wombating", "wombat", "IH0 NG"), ("xylophoned", "xylophone", "D"),
        ("xylophoning", "xylophone", "IH0 NG"),
    ],
)  # fmt: skip
def test_endings_follow_the_voicing_of_the_stem(word, stem, ending):
    assert lookup(word) is None
    expected = f"{' '.join(lookup(stem))} {ending}"
    assert LexiconPhonemizer()([word])[0][:2] == (tuple(expected.split()), False)


def test_the_users_lexicon_comes_before_cmudict():
    assert LexiconPhonemizer()(["Hello"])[0][:2] == (("HH", "AH0", "L", "OW1"), True)
    assert say("Hello", hello=("B", "AY1")) == ["B AY1"]


def test_a_doubled_consonant_and_a_y_find_their_stems():
    lexicon = {"zug": ("Z", "AH1", "G"), "zorry": ("Z", "AO1", "R", "IY0")}
    said = say("zugged", "zugging", "zorries", "zorried", **lexicon)
    assert said == ["Z AH1 G D", "Z AH1 G IH0 NG", "Z AO1 R IY0 Z", "Z AO1 R IY0 D"]


@pytest.mark.parametrize(
    ("words", "phones"),
    [
        ("well-known A-bomb", "W EH1 L N OW1 N|EY1 B AA1 M"),  # part by part
        ("'hello' dogs' 'tis", "HH AH0 L OW1|D AO1 G Z|T IH1 Z"),  # with quotes around them
        # a capital A is the letter among letters and inside a clause
        ("A", "EY1"), ("A man", "AH0|M AE1 N"), ("U S A", "Y UW1|EH1 S|EY1"), ("A B", "EY1|B IY1"),
        ("plan A", "P L AE1 N|EY1"), ("plan a", "P L AE1 N|AH0"),
    ],
)  # fmt: skip
def test_compounds_quoted_words_and_letters_are_said(words, phones):
    assert say(*words.split()) == phones.split("|")


def test_words_outside_the_lexicons_are_said_by_rule_and_reported():
    by_network, by_names = LexiconPhonemizer()(["flibberty", "xqd"])
    assert by_network[:2] == (("F", "L", "IH1", "B", "ER0", "T", "IY0"), False)
    assert by_names[:2] == (("EH1", "K", "S", "K", "Y", "UW1", "D", "IY1"), False)


@pytest.mark.parametrize("word", ["25", "%", "naïve2", "привет"])
def test_what_cannot_be_said_is_named(word):
    with pytest.raises(InputError, match=f"'{word}' has no English pronunciation"):
        LexiconPhonemizer()([word])


def test_every_word_of_letters_has_phones_of_the_inventory():
    generator = random.Random(3)
    alphabet = string.ascii_letters + "'"
    phonemizer = LexiconPhonemizer()
    for _ in range(150):
        rest = generator.choices(alphabet, k=generator.randint(0, 11))
        word = "".join([generator.choice(string.ascii_letters), *rest])
        (said,) = phonemizer([word])
        assert said.phones, word
        assert all(map(is_arpabet, said.phones)), word


def test_cmudict_is_sorted_and_lookup_finds_what_a_full_parse_finds_in_any_case():
    lines = CMUDICT_PATH.read_bytes().splitlines()
    assert (lines, len(lines)) == (sorted(lines), 135166)
    assert "Carnegie Mellon" in CMUDICT_PATH.with_name("cmudict.LICENSE").read_text()
    parsed = {}
    for line in lines:
        word, *phones = line.decode().split()
        parsed.setdefault(word, tuple(phones))
        assert all(map(is_arpabet, phones))
    for word in [*random.Random(0).sample(sorted(parsed), 2000), min(parsed), max(parsed)]:
        assert lookup(word) == parsed[word]
    words = ["", "zzzzzz", "!", "hell ", "helloo", "héllo", "'"]
    assert [word for word in words if lookup(word)] == []
    assert lookup("Hello") == ("HH", "AH0", "L", "OW1")


def test_user_lexicon_is_read_with_comments_and_variants(tmp_path):
    path = tmp_path / "lexicon.txt"
    path.write_text("\ufeff# mine\n;;; old\n\nArion  AH0 R AY1 AH0 N\nARION(2) EH1 R\n", "utf-8")
    assert read_lexicon(path, is_arpabet) == {"arion": ("AH0", "R", "AY1", "AH0", "N")}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("word", r"lexicon.txt:2: 'word' has no phones"),
        ("word W QQ D", r"txt:2: .* phone 'QQ'"),
        ("foo,F UW1", "txt:2: 'foo,F' has a mark where a space follows"),
    ],
)
def test_faults_name_file_and_line_and_a_missing_file_its_key(tmp_path, line, message):
    path = tmp_path / "lexicon.txt"
    path.write_text(f"a AH0\n{line}\n")
    with pytest.raises(InputError, match=message):
        read_lexicon(path, is_arpabet)
    with pytest.raises(InputError, match="check lexicon_path"):
        read_lexicon(tmp_path / "none.txt", is_arpabet)


# Names and words that CMUdict does not have.
NEW = {
    "blorked": "B L AO1 R K T", "flibberty": "F L IH1 B ER0 T IY0", "Pannartz": "P AE1 N AA0 R T S",
    "missals": "M IH1 S AH0 L Z", "spectrogram": "S P EH1 K T R AH0 G R AE2 M",
    "gamification": "G AE2 M AH0 F AH0 K EY1 SH AH0 N", "vocoder": "V OW1 K AH0 D ER0",
}  # fmt: skip


def test_new_words_are_said_as_their_letters_sound():
    assert [word for word in NEW if lookup(word)] == []
    assert {word: " ".join(pronounce(word)) for word in NEW} == NEW
    assert pronounce("Flíbbërty") == pronounce("flibberty")
    assert [pronounce(word) for word in ("nbc", "x2a", "привет", "", "'")] == [None] * 5


def test_the_network_computes_what_pytorch_does():
    with np.load(PATH) as file:
        weights, choices = unpacked(dict(file))
    hidden = weights["weight_hh_l0"].shape[1]
    recurrent = nn.GRU(weights["embedding"].shape[1], hidden, 2, bidirectional=True)
    names = [name for name, _ in recurrent.named_parameters()]
    recurrent.load_state_dict({name: torch.from_numpy(weights[name]) for name in names})
    letters = ["'abcdefghijklmnopqrstuvwxyz".index(letter) for letter in "shibboleth"]
    states, _ = recurrent(torch.from_numpy(weights["embedding"][letters]))
    scores = states.detach().numpy() @ weights["output"].T + weights["output_bias"]
    expected = [phone for choice in scores.argmax(1) for phone in choices[choice]]
    assert [*pronounce("shibboleth")] == expected
    assert PATH.stat().st_size < 1_000_000
