from pathlib import Path

import pytest
import torch

from models.checkpoint.importers.fastspeech2_ming024 import (
    by_id,
    stat_of,
    translated,
    vocabulary_of,
)
from modules.layers.transformer import sinusoids
from processors.dataset.statistics import Stat
from processors.text.symbols import ARPABET, PAUSES
from utils.errors import InputError

FILE = Path("stats.json")
SAMPLES = {
    **{"AA": 64, "AA0": 65, "AE1": 70, "AH0": 73, "B": 88, "CH": 89, "ER2": 99, "IY1": 113},
    **{"NG": 120, "S": 131, "T": 133, "UW": 139, "ZH": 147},
    **{"<sp>": 148, "<spn>": 149, "<sil>": 150},
}


def test_phones_have_the_ids_of_amphion_and_pinyin_moves_the_silences_alone():
    with_pinyin, without = vocabulary_of(361, FILE), vocabulary_of(152, FILE)
    assert without.ids([*SAMPLES]) == [*SAMPLES.values()]
    sentence = ["HH", "AH0", "L", "OW1", "<sp>", "W", "ER1", "L", "D"]
    assert without.ids(sentence) == [106, 73, 117, 123, 148, 144, 98, 117, 90]
    assert with_pinyin.ids(["<sp>", "<spn>", "<sil>"]) == [357, 358, 359]
    assert with_pinyin.symbols[:148] == without.symbols[:148]


@pytest.mark.parametrize("n_rows", [152, 361])
def test_no_character_or_syllable_can_be_taken_for_a_phone(n_rows):
    symbols = vocabulary_of(n_rows, FILE).symbols
    assert len(symbols) == n_rows
    others = set(symbols) - set(ARPABET)
    assert set(ARPABET) < set(symbols)
    assert all(name.startswith("<") and name.endswith(">") for name in others)
    assert others & set(PAUSES) == {"<pad>", "<sp>", "<sil>"}  # no row is a class of punctuation


@pytest.mark.parametrize("n_rows", [0, 151, 153, 360])
def test_other_tables_are_not_guessed_at(n_rows):
    with pytest.raises(InputError, match=rf"^stats.json: .* has {n_rows} rows, .* of 152 .* 361"):
        vocabulary_of(n_rows, FILE)


def test_queries_keys_and_values_are_joined_in_this_order_or_left_for_the_strict_check():
    name = "encoder.layer_stack.3.slf_attn.w_{}s.bias"
    parts = {name.format(part): torch.full((2,), i) for i, part in enumerate("vqk")}
    joined = translated(parts)[0]
    assert list(joined) == ["encoder.layers.3.attention.qkv.bias"]
    assert joined["encoder.layers.3.attention.qkv.bias"].tolist() == [1, 1, 2, 2, 0, 0]

    del parts[name.format("v")]
    left = {f"encoder.layers.3.attention.{part}.bias" for part in "qk"}
    assert translated(parts)[0].keys() == left
    parts[name.format("v")] = torch.zeros(3)
    assert len(translated(parts)[0]) == 3


def test_sinusoids_are_left_out_and_learnt_positions_left_for_the_strict_check():
    names = ["encoder.position_enc", "decoder.position_enc"]
    sines = {name: sinusoids(6, 4)[None] for name in names}
    tensors, unused = translated(sines | {names[0]: torch.ones(1, 6, 4)})
    assert list(tensors) == ["encoder.positions"]
    assert unused == ("decoder.positions: sinusoids, which are computed",)


def test_the_vector_of_a_single_speaker_is_added_to_the_last_layer_of_the_encoder():
    bias = "{}.layer_stack.{}.pos_ffn.layer_norm.bias"
    layers = [("encoder", 9), ("encoder", 10), ("decoder", 11)]
    tensors = {bias.format(*layer): torch.zeros(2) for layer in layers}
    found, _ = translated(tensors | {"speaker_emb.weight": torch.tensor([[1.0, 2.0]])})

    assert found["encoder.layers.10.conv_norm.bias"].tolist() == [1, 2]
    assert not found["encoder.layers.9.conv_norm.bias"].any()
    assert "speaker_embedding.weight" not in found


@pytest.mark.parametrize(
    "ids",
    [{"a": 0, "b": 2}, {"a": 0, "b": "1"}, {"a": 0}, {"a": 0, "b": 1, "c": 1}, {"a": [0]}, ["a"]],
)
def test_names_are_in_the_order_of_ids_and_those_with_gaps_or_of_other_types_are_refused(ids):
    assert by_id({"b": 1, "c": 2, "a": 0}, 3, FILE) == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"^stats.json: expected names with the ids 0 to 1, found"):
        by_id(ids, 2, FILE)


def test_statistics_must_be_finite_and_vary():
    assert stat_of([200, 30.0, 80, 400], FILE, "pitch") == Stat(200.0, 30.0, 80.0, 400.0)
    for numbers in ([200, 0, 80, 400], [200, 30, 80, float("inf")], [200, None, 80, 400], [1], 3):
        with pytest.raises(InputError, match=r"^stats.json: pitch: .* expected finite numbers and"):
            stat_of(numbers, FILE, "pitch")
