import unicodedata

import pytest

from config.text import TextConfig
from processors.text.frontend import TextFrontend
from processors.text.letters.mixing import mix
from processors.text.symbols import MARKS, PAUSES, WORD_BOUNDARY
from utils.errors import InputError


@pytest.fixture(scope="module")
def letters():
    return TextFrontend(TextConfig(phone_extractor="letters"), "en-us")


@pytest.fixture(scope="module")
def mixed():
    return TextFrontend(TextConfig(phone_extractor="mixed"), "en-us")


def plain(spoken):
    """A sequence with "_" for boundaries, without spaces."""
    return "".join("_" if phone == WORD_BOUNDARY else phone for phone in spoken.phones)


@pytest.mark.parametrize(
    ("text", "sequence"),
    [
        ("Hello, big World?", "<sil>hello<,>big_world<?>"),
        ("It cost $5 (about)", "<sil>it_cost_five_dollars<,>about<,>"),
        ("It's Dr. Lee's dogs' 'café'!", "<sil>it's_doctor_lee's_dogs_cafe<!>"),
        ("Well-known, 'semi-open'", "<sil>well_known<,>semi_open<.>"),
        ("one -- two", "<sil>one<,>two<.>"),
        ("say {h a u s} now", "<sil>say_haus_now<.>"),
    ],
)  # fmt: skip
def test_words_are_spelt_with_boundaries_where_no_punctuation_is(letters, text, sequence):
    assert plain(letters(text)) == sequence


def test_short_pauses_can_take_the_place_of_punctuation():
    spoken = TextFrontend(TextConfig(phone_extractor="letters", pauses="sp"), "en-us")("So, a b.")
    assert " ".join(spoken.phones) == "s o <sp> a <space> b"


@pytest.mark.parametrize("kind", ["letters", "mixed"])
def test_words_and_pauses_cover_the_sequence(request, kind):
    spoken = mix(request.getfixturevalue(kind)("Well-known Dr. Lee, at 3:30 p.m. -- it's here!"), 1)
    covered = [index for word in spoken.words for index in range(word.start, word.end)]
    pauses = [index for index, phone in enumerate(spoken.phones) if phone in PAUSES]
    assert sorted(covered + pauses) == list(range(len(spoken.phones)))
    assert [word.text for word in spoken.words][:4] == ["Well", "known", "Doctor", "Lee"]


@pytest.mark.parametrize(
    ("language", "text", "sequence"),
    [
        ("de", "Übergröße, so!", "<sil>übergröße<,>so<!>"),
        ("ru", "Добрый День", "<sil>добрый_день<.>"),
        ("hi", "नमस्ते दुनिया।", "<sil>नमस्ते_दुनिया<.>"),
        ("ar", "مرحبا", "<sil>مرحبا<.>"),
        ("fr-fr", "l'été est-ce", "<sil>l'été_est_ce<.>"),
        ("cmn", "你好，世界。", "<sil>你好<,>世界<.>"),
    ],
)
def test_letters_of_any_script_are_kept(language, text, sequence):
    config = TextConfig(phone_extractor="letters", normalizer="none")
    spoken = TextFrontend(config, language)(text)
    assert plain(spoken) == sequence
    expected = [char for char in text.lower() if unicodedata.category(char)[0] in "LM"]
    assert [phone for phone in spoken.phones if phone not in (*PAUSES, "'")] == expected


def test_numbers_that_no_normaliser_reads_are_named():
    config = TextConfig(phone_extractor="letters", normalizer="none")
    with pytest.raises(InputError, match="'2' in '25' is not a letter; write it in words"):
        TextFrontend(config, "de")("Zimmer 25")


def test_signs_without_letters_are_left_out_and_named():
    config = TextConfig(phone_extractor="letters", normalizer="none")
    spoken = TextFrontend(config, "sv")("bra ☃ du")
    assert (plain(spoken), spoken.unspoken) == ("<sil>bra_du<.>", ("☃",))


def test_braces_hold_letters_or_phones(letters, mixed):
    with pytest.raises(InputError, match=r"'HH' in \{HH AW1 S\} is not a letter"):
        letters("{HH AW1 S}")
    with pytest.raises(InputError, match=r"'h' in \{h\} is not a phone of ARPAbet"):
        mixed("{h}")
    assert plain(mixed("the {HH AW1 S}.")) == "<sil>the_HHAW1S<.>"


@pytest.mark.parametrize(
    ("word", "phones"),
    [
        ("house", "HH AW1 S"),
        ("dog's", "D AO1 G Z"),  # not in CMUdict: stem and Z
        ("aardvarks", "AA1 R D V AA2 R K S"),  # in CMUdict
        ("wombat's", "W AA1 M B AE2 T Z"),
        ("read", "r e a d"),  # heteronyms and words of several pronunciations stay letters
        ("live", "l i v e"),
        ("the", "t h e"),
        ("with", "w i t h"),
        ("reads", "R IY1 D Z"),  # CMUdict has one pronunciation
        ("a's", "EY1 Z"),
        ("blorks", "b l o r k s"),  # unknown, as its stem
        ("s", "EH1 S"),
    ],
)
def test_words_of_one_known_pronunciation_have_phones(mixed, word, phones):
    assert " ".join(mix(mixed(word), 1.0).phones) == f"<sil> {phones} <.>"


def test_a_stem_of_several_pronunciations_gives_no_phones(mixed):
    assert plain(mix(mixed("houseses with's"), 1.0)) == "<sil>houseses_with's<.>"


def test_the_lexicon_of_the_user_decides(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("read  R EH1 D\nSQL  S IY1 K W AH0 L\n")
    config = TextConfig(phone_extractor="mixed", lexicon_path=str(path))
    spoken = mix(TextFrontend(config, "en-us")("Read SQL"), 1.0)
    assert " ".join(spoken.phones) == "<sil> R EH1 D <space> S IY1 K W AH0 L <.>"


def test_letters_cannot_collide_with_phones_or_marks(mixed):
    spoken = mixed("B b, d k f.")
    assert set(spoken.phones) - set(PAUSES) == {"b", "d", "k", "f"}
    assert WORD_BOUNDARY not in MARKS
