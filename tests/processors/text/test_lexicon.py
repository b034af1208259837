import random

import pytest

from processors.text.g2p import is_arpabet
from processors.text.lexicon import CMUDICT_PATH, lookup, read_lexicon
from utils.errors import InputError


@pytest.fixture(scope="module")
def cmudict_lines():
    return CMUDICT_PATH.read_bytes().splitlines()


def test_cmudict_is_sorted_and_speaks_arpabet(cmudict_lines):
    assert cmudict_lines == sorted(cmudict_lines)
    assert len(cmudict_lines) == 135166
    phones = {phone for line in cmudict_lines for phone in line.decode().split()[1:]}
    assert all(map(is_arpabet, phones))


def test_licence_stands_beside_the_data():
    assert "Carnegie Mellon" in CMUDICT_PATH.with_name("cmudict.LICENSE").read_text()


def test_lookup_finds_what_a_full_parse_finds(cmudict_lines):
    parsed = {}
    for line in cmudict_lines:
        word, *phones = line.decode().split()
        parsed.setdefault(word, tuple(phones))
    sample = random.Random(0).sample(sorted(parsed), 2000)
    edges = [cmudict_lines[0].split()[0].decode(), cmudict_lines[-1].split()[0].decode()]
    for word in [*sample, *edges]:
        assert lookup(word) == parsed[word]


@pytest.mark.parametrize("word", ["", "zzzzzz", "!", "hell ", "helloo", "héllo", "'"])
def test_unknown_words_are_none(word):
    assert lookup(word) is None


def test_case_does_not_matter():
    assert lookup("Hello") == ("HH", "AH0", "L", "OW1")


def test_user_lexicon_is_read_with_comments_and_variants(tmp_path):
    path = tmp_path / "lexicon.txt"
    path.write_text("\ufeff# mine\n;;; old\n\nArion  AH0 R AY1 AH0 N\nARION(2) EH1 R\n", "utf-8")
    assert read_lexicon(path, is_arpabet) == {"arion": ("AH0", "R", "AY1", "AH0", "N")}


@pytest.mark.parametrize(
    ("line", "message"),
    [("word", r"lexicon.txt:2: 'word' has no phones"), ("word W QQ D", r"txt:2: .* phone 'QQ'")],
)
def test_faults_name_file_and_line(tmp_path, line, message):
    path = tmp_path / "lexicon.txt"
    path.write_text(f"a AH0\n{line}\n")
    with pytest.raises(InputError, match=message):
        read_lexicon(path, is_arpabet)


def test_a_missing_lexicon_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="check lexicon_path"):
        read_lexicon(tmp_path / "none.txt", is_arpabet)
