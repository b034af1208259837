import pytest

from config.text import TextConfig
from processors.text.frontend import TextFrontend
from processors.text.letters.mixing import mix
from processors.text.letters.nvidia import nvidia_vocabulary
from processors.text.symbols import PAUSES
from utils.errors import InputError

BASIC, LOWERCASE = "nvidia_english", "nvidia_english_lowercase"
# ids of english_basic as its definition lists them: pad, hyphen, punctuation, capitals, letters
CHARACTERS = "_-!'(),.:;? ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def frontend():
    return TextFrontend(TextConfig(phone_extractor=BASIC), "en-us")


def ids_of(text):
    """The ids of a text of letters and punctuation, independently of the front end."""
    return [CHARACTERS.index(char) for char in text]


@pytest.mark.parametrize(
    ("symbol", "id"),
    [
        *[("<pad>", 0), ("<->", 1), ("<!>", 2), ("'", 3), ("<(>", 4), ("<?>", 10), ("<space>", 11)],
        *[("A", 12), ("Z", 37), ("a", 38), ("z", 63), ("@AA", 64), ("@AA0", 65), ("@B", 88)],
        *[("@HH", 106), ("@ZH", 147)],
    ],
)
def test_ids_of_english_basic(symbol, id):
    vocabulary = nvidia_vocabulary(BASIC)
    assert len(vocabulary) == 148
    assert vocabulary.ids([symbol]) == [id]


def test_tensorflowtts_has_the_symbols_of_english_basic_and_an_end():
    text = TextConfig(phone_extractor="tensorflowtts_english", p_arpabet=0.0)
    spoken = TextFrontend(text, "en-us")("Hello.")
    vocabulary = nvidia_vocabulary(text.phone_extractor)
    assert vocabulary.symbols == (*nvidia_vocabulary(BASIC).symbols, "<eos>")
    assert vocabulary.ids(spoken.phones) == [45, 42, 49, 49, 52, 7, 148]


@pytest.mark.parametrize(
    ("symbol", "id"),
    [("<pad>", 0), ("'", 3), ('<">', 4), ("<space>", 12), ("a", 13), ("z", 38), ("@AA", 39)],
)
def test_ids_of_english_basic_lowercase(symbol, id):
    vocabulary = nvidia_vocabulary(LOWERCASE)
    assert len(vocabulary) == 123
    assert vocabulary.ids([symbol, "@ZH"]) == [id, 122]


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
def test_text_becomes_words_in_lower_case_with_its_punctuation(frontend, text, normalized):
    spoken = frontend(text)
    assert spoken.normalized == normalized
    assert nvidia_vocabulary(BASIC).ids(spoken.phones) == ids_of(normalized)


def test_words_have_spans_and_marks_are_pauses(frontend):
    spoken = frontend("Well-known, (isn't it)?")
    said = [(word.text, "".join(spoken.phones[word.start : word.end])) for word in spoken.words]
    assert said == [("well", "well"), ("known", "known"), ("isn't", "isn't"), ("it", "it")]
    covered = {index for word in spoken.words for index in range(word.start, word.end)}
    others = [phone for index, phone in enumerate(spoken.phones) if index not in covered]
    assert others == ["<->", "<,>", "<space>", "<(>", "<space>", "<)>", "<?>"]
    assert set(others) <= set(PAUSES)


def test_characters_without_a_symbol_are_named_once(frontend):
    spoken = frontend('A "spy" ☃ or a "mole" ☃.')
    assert spoken.normalized == "a spy or a mole."
    assert spoken.unspoken == ('"', "☃")
    assert frontend('("rock☃roll")').normalized == "(rock roll)"
    lowercase = TextFrontend(TextConfig(phone_extractor=LOWERCASE), "en-us")('A "spy".')
    assert lowercase.unspoken == ()
    assert nvidia_vocabulary(LOWERCASE).ids(lowercase.phones)[:4] == [13, 12, 4, 31]  # a, " "", s


def test_phones_in_braces_stay_phones(frontend):
    spoken = frontend("The {HH AW1 S}, ({HH AW1 S})!")
    house = ["@HH", "@AW1", "@S"]
    tail = ["<,>", "<space>", "<(>", *house, "<)>", "<!>"]
    assert list(spoken.phones) == ["t", "h", "e", "<space>", *house, *tail]
    with pytest.raises(InputError, match=r"'QQ' in \{QQ\} is not a phone of ARPAbet"):
        frontend("{QQ}")


def test_words_of_one_pronunciation_are_mixed_in_and_all_else_stays(frontend):
    spoken = frontend("The dog's 'house' read, blorks!")
    assert spoken.phones[:4] == ("t", "h", "e", "<space>")
    mixed = mix(spoken, 1.0)
    said = [" ".join(mixed.phones[word.start : word.end]) for word in mixed.words]
    # the, read: several pronunciations; blorks: unknown; dog's: the stem and Z
    assert said == ["t h e", "@D @AO1 @G @Z", "' @HH @AW1 @S '", "r e a d", "b l o r k s"]
    marks = [phone for phone in mixed.phones if phone in PAUSES]
    assert marks == ["<space>"] * 3 + ["<,>", "<space>", "<!>"]
    assert nvidia_vocabulary(BASIC).ids(mixed.phones)


def test_text_of_other_languages_and_without_words_is_refused(frontend):
    with pytest.raises(InputError, match="not a letter of English"):
        frontend("дом")
    with pytest.raises(InputError, match="no word to say"):
        frontend("...!")
    with pytest.raises(InputError, match=r"set preprocess\.text\.phone_extractor to letters"):
        TextFrontend(TextConfig(phone_extractor=BASIC), "de")
