import random
import re
import unicodedata

import pytest

from config.text import TextConfig
from processors.records import WordPhones
from processors.text.frontend import TextFrontend
from processors.text.letters import draw, longest, mix, substitute
from processors.text.symbols import MARKS, PAUSES, WORD_BOUNDARY
from processors.text.voice_phones import nvidia_vocabulary
from utils.errors import InputError

ANY_LANGUAGE = TextConfig(phone_extractor="letters", normalizer="none")
LETTERS = TextFrontend(TextConfig(phone_extractor="letters"), "en-us")
MIXED = TextFrontend(TextConfig(phone_extractor="mixed"), "en-us")


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
def test_words_are_spelt_with_boundaries_where_no_punctuation_is(text, sequence):
    assert plain(LETTERS(text)) == sequence


def test_short_pauses_can_take_the_place_of_punctuation():
    spoken = TextFrontend(TextConfig(phone_extractor="letters", pauses="sp"), "en-us")("So, a b.")
    assert " ".join(spoken.phones) == "s o <sp> a <space> b"


@pytest.mark.parametrize("frontend", [LETTERS, MIXED])
def test_words_and_pauses_cover_the_sequence(frontend):
    spoken = mix(frontend("Well-known Dr. Lee, at 3:30 p.m. -- it's here!"), 1)
    covered = [index for word in spoken.words for index in range(word.start, word.end)]
    pauses = [index for index, phone in enumerate(spoken.phones) if phone in PAUSES]
    assert sorted(covered + pauses) == list(range(len(spoken.phones)))
    assert [word.text for word in spoken.words][:4] == ["Well", "known", "Doctor", "Lee"]


@pytest.mark.parametrize(
    ("language", "text", "sequence"),
    [
        ("de", "Übergröße, so!", "<sil>übergröße<,>so<!>"),
        ("ru", "Добрый День", "<sil>добрый_день<.>"),
        ("hi", "नमस्ते दुनिया।", "<sil>नमस्ते_दुनिया<.>"), ("ar", "مرحبا", "<sil>مرحبا<.>"),
        ("fr-fr", "l'été est-ce", "<sil>l'été_est_ce<.>"),
        ("cmn", "你好，世界。", "<sil>你好<,>世界<.>"),
    ],
)  # fmt: skip
def test_letters_of_any_script_are_kept(language, text, sequence):
    spoken = TextFrontend(ANY_LANGUAGE, language)(text)
    assert plain(spoken) == sequence
    expected = [char for char in text.lower() if unicodedata.category(char)[0] in "LM"]
    assert [phone for phone in spoken.phones if phone not in (*PAUSES, "'")] == expected


def test_braces_hold_phones_in_mixtures_and_signs_without_letters_are_named():
    assert plain(MIXED("the {HH AW1 S}.")) == "<sil>the_HHAW1S<.>"
    spoken = TextFrontend(ANY_LANGUAGE, "sv")("bra ☃ du")
    assert (plain(spoken), spoken.unspoken) == ("<sil>bra_du<.>", ("☃",))


@pytest.mark.parametrize(
    ("word", "phones"),
    [
        ("house", "HH AW1 S"),
        ("dog's", "D AO1 G Z"),  # not in CMUdict: stem and Z
        ("aardvarks", "AA1 R D V AA2 R K S"),  # in CMUdict
        ("wombat's", "W AA1 M B AE2 T Z"),
        ("read", "r e a d"),  # heteronyms and words of several pronunciations stay letters
        ("live", "l i v e"), ("the", "t h e"), ("with", "w i t h"),
        ("reads", "R IY1 D Z"),  # CMUdict has one pronunciation
        ("a's", "EY1 Z"),
        ("blorks", "b l o r k s"),  # unknown, as its stem
        ("houseses", "h o u s e s e s"),
        ("with's", "w i t h ' s"),  # a stem of several pronunciations
        ("s", "EH1 S"),
    ],
)  # fmt: skip
def test_words_of_one_known_pronunciation_have_phones(word, phones):
    assert " ".join(mix(MIXED(word), 1.0).phones) == f"<sil> {phones} <.>"


def test_letters_cannot_collide_with_phones_or_marks():
    assert {*MIXED("B b, d k f.").phones} - {*PAUSES} == {"b", "d", "k", "f"}
    assert WORD_BOUNDARY not in MARKS


def test_the_lexicon_of_the_user_decides(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("read  R EH1 D\nSQL  S IY1 K W AH0 L\n")
    config = TextConfig(phone_extractor="mixed", lexicon_path=str(path))
    spoken = mix(TextFrontend(config, "en-us")("Read SQL"), 1.0)
    assert " ".join(spoken.phones) == "<sil> R EH1 D <space> S IY1 K W AH0 L <.>"


BASIC, LOWERCASE = "nvidia_english", "nvidia_english_lowercase"
NVIDIA = TextFrontend(TextConfig(phone_extractor=BASIC), "en-us")
# ids of english_basic as its definition lists them: pad, hyphen, punctuation, capitals, letters
CHARACTERS = "_-!'(),.:;? ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    ("extractor", "n_symbols", "ids"),
    [
        (BASIC, 148, {
            "<pad>": 0, "<->": 1, "<!>": 2, "'": 3, "<(>": 4, "<?>": 10, "<space>": 11, "A": 12,
            "Z": 37, "a": 38, "z": 63, "@AA": 64, "@AA0": 65, "@B": 88, "@HH": 106, "@ZH": 147,
        }),
        (LOWERCASE, 123, {
            "<pad>": 0, "'": 3, '<">': 4, "<space>": 12, "a": 13, "z": 38, "@AA": 39, "@ZH": 122,
        }),
    ],
)  # fmt: skip
def test_ids_are_those_of_nvidia(extractor, n_symbols, ids):
    vocabulary = nvidia_vocabulary(extractor)
    assert len(vocabulary) == n_symbols
    assert vocabulary.ids([*ids]) == [*ids.values()]


def test_tensorflowtts_has_the_symbols_of_english_basic_and_an_end():
    text = TextConfig(phone_extractor="tensorflowtts_english", p_arpabet=0.0)
    spoken = TextFrontend(text, "en-us")("Hello.")
    vocabulary = nvidia_vocabulary(text.phone_extractor)
    assert vocabulary.symbols == (*nvidia_vocabulary(BASIC).symbols, "<eos>")
    assert vocabulary.ids(spoken.phones) == [45, 42, 49, 49, 52, 7, 148]


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("Printing, then (in 1455)!", "printing, then (in fourteen fifty-five)!"),
        ("Dr. Smith & Mrs. Jones paid $5.50.", "doctor smith and missus jones paid five dollars and"
         " fifty cents."),
        ("The café -- it's 'well-known'; isn't it?", "the cafe -- it's 'well-known'; isn't it?"),
        ("An em dash—here", "an em dash--here"),
        ("  two \n spaces  ", "two spaces"),
        ("95 % sure.", "ninety-five percent sure."),
    ],
)  # fmt: skip
def test_text_becomes_words_in_lower_case_with_its_punctuation(text, normalized):
    spoken = NVIDIA(text)
    assert spoken.normalized == normalized
    assert nvidia_vocabulary(BASIC).ids(spoken.phones) == [*map(CHARACTERS.index, normalized)]


def test_words_have_spans_and_marks_are_pauses():
    spoken = NVIDIA("Well-known, (isn't it)?")
    said = [(word.text, "".join(spoken.phones[word.start : word.end])) for word in spoken.words]
    assert said == [("well", "well"), ("known", "known"), ("isn't", "isn't"), ("it", "it")]
    covered = {index for word in spoken.words for index in range(word.start, word.end)}
    others = [phone for index, phone in enumerate(spoken.phones) if index not in covered]
    assert others == ["<->", "<,>", "<space>", "<(>", "<space>", "<)>", "<?>"]
    assert set(others) <= set(PAUSES)


def test_characters_without_a_symbol_are_named_once():
    spoken = NVIDIA('A "spy" ☃ or a "mole" ☃.')
    assert spoken.normalized == "a spy or a mole."
    assert spoken.unspoken == ('"', "☃")
    assert NVIDIA('("rock☃roll")').normalized == "(rock roll)"
    lowercase = TextFrontend(TextConfig(phone_extractor=LOWERCASE), "en-us")('A "spy".')
    assert lowercase.unspoken == ()
    assert nvidia_vocabulary(LOWERCASE).ids(lowercase.phones)[:4] == [13, 12, 4, 31]  # a, " "", s


def test_phones_in_braces_stay_phones():
    spoken = NVIDIA("The {HH AW1 S}, ({HH AW1 S})!")
    house = ["@HH", "@AW1", "@S"]
    tail = ["<,>", "<space>", "<(>", *house, "<)>", "<!>"]
    assert list(spoken.phones) == ["t", "h", "e", "<space>", *house, *tail]


def test_words_of_one_pronunciation_are_mixed_in_and_all_else_stays():
    spoken = NVIDIA("The dog's 'house' read, blorks!")
    assert spoken.phones[:4] == ("t", "h", "e", "<space>")
    mixed = mix(spoken, 1.0)
    said = [" ".join(mixed.phones[word.start : word.end]) for word in mixed.words]
    # the, read: several pronunciations; blorks: unknown; dog's: the stem and Z
    assert said == ["t h e", "@D @AO1 @G @Z", "' @HH @AW1 @S '", "r e a d", "b l o r k s"]
    marks = [phone for phone in mixed.phones if phone in PAUSES]
    assert marks == ["<space>"] * 3 + ["<,>", "<space>", "<!>"]
    assert nvidia_vocabulary(BASIC).ids(mixed.phones)


@pytest.mark.parametrize(
    ("extractor", "language", "text", "message"),
    [
        ("letters", "de", "Zimmer 25", "'2' in '25' is not a letter; write it in words"),
        ("letters", "en-us", "{HH AW1 S}", "'HH' in {HH AW1 S} is not a letter"),
        ("mixed", "en-us", "{h}", "'h' in {h} is not a phone of ARPAbet"),
        (BASIC, "en-us", "{QQ}", "'QQ' in {QQ} is not a phone of ARPAbet"),
        (BASIC, "en-us", "дом", "not a letter of English"),
        (BASIC, "en-us", "...!", "no word to say"),
        (BASIC, "de", "Haus", "set preprocess.text.phone_extractor to letters"),
    ],
)
def test_what_has_no_letters_phones_or_words_is_refused(extractor, language, text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        TextFrontend(TextConfig(phone_extractor=extractor), language)(text)


WORDS = [WordPhones(index, 2 * index, 2 * index + 1, ("X",)) for index in range(5000)]
DRAWN = [0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 16, 17]


def test_the_share_of_phones_is_the_probability_in_each_epoch_and_utterance():
    for p in (0.0, 0.1, 0.5, 0.9, 1.0):
        share = len(draw(WORDS, p, 1, 0, "utt")) / len(WORDS)
        assert share == pytest.approx(p, abs=4 * (p * (1 - p) / len(WORDS)) ** 0.5)
    one, other = draw(WORDS, 0.5, 1, 0, "utt"), draw(WORDS, 0.5, 1, 1, "utt")
    both = len(set(one) & set(other)) / len(WORDS)
    assert both == pytest.approx(0.25, abs=0.03)  # independent
    assert one not in (draw(WORDS, 0.5, 1, 0, "other"), draw(WORDS, 0.5, 2, 0, "utt"))


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


def test_spans_of_words_follow_the_mixture():
    spoken = MIXED("The big cat, a house now.")
    whole = mix(spoken, 1.0)
    said = {word.text: " ".join(whole.phones[word.start : word.end]) for word in whole.words}
    assert said == {
        "The": "t h e", "big": "B IH1 G", "cat": "K AE1 T", "a": "a", "house": "HH AW1 S",
        "now": "N AW1",
    }  # fmt: skip
    assert (mix(spoken, 0.0).phones, mix(spoken, 0.0).words) == (spoken.phones, spoken.words)
    assert mix(spoken, 0.5) == mix(spoken, 0.5)  # the same at every call
    assert mix(spoken, 0.5).phones not in (spoken.phones, whole.phones)
