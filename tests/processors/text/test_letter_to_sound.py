"""Pronunciations from letters."""

import numpy as np
import pytest
import torch
from torch import nn

from processors.text.letter_network import PATH, unpacked
from processors.text.letter_to_sound import pronounce
from processors.text.lexicon import lookup

# Names and words that CMUdict does not have.
NEW = {
    "blorked": "B L AO1 R K T",
    "flibberty": "F L IH1 B ER0 T IY0",
    "Pannartz": "P AE1 N AA0 R T S",
    "missals": "M IH1 S AH0 L Z",
    "spectrogram": "S P EH1 K T R AH0 G R AE2 M",
    "gamification": "G AE2 M AH0 F AH0 K EY1 SH AH0 N",
    "vocoder": "V OW1 K AH0 D ER0",
}


@pytest.mark.parametrize("word", NEW)
def test_new_words_are_said_as_their_letters_sound(word):
    assert lookup(word) is None
    assert " ".join(pronounce(word)) == NEW[word]


def test_words_without_a_vowel_or_with_other_signs_have_no_sound():
    assert [pronounce(word) for word in ("nbc", "x2a", "привет", "", "'")] == [None] * 5


def test_accents_and_case_do_not_matter():
    assert pronounce("Flíbbërty") == pronounce("flibberty")


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
