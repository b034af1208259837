import os
import pickle
import random
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from config.preprocess import PreprocessConfig
from config.text import TextConfig
from processors.text.frontend import TextFrontend
from processors.text.symbols import PAUSES, mark_name
from processors.text.voice_phones import espeak_characters_vocabulary
from utils.errors import InputError

ROOT = Path(__file__).parents[3]
ENGLISH = TextFrontend(TextConfig(), "en-us")
SHORT_PAUSES = TextFrontend(TextConfig(pauses="sp"), "en-us")


@pytest.fixture(scope="module")
def ipa():
    return TextFrontend(TextConfig(phone_extractor="espeak"), "en-us")


def test_a_sentence_has_words_between_silence_and_its_class_its_text_and_its_unknown_words():
    spoken = ENGLISH("Hello, world?")
    assert " ".join(spoken.phones) == "<sil> HH AH0 L OW1 <,> W ER1 L D <?>"
    assert spoken.words == (("Hello", 1, 5), ("world", 6, 10))
    assert spoken.out_of_vocabulary == ()
    assert ENGLISH("The flibberty blorked a cat.").out_of_vocabulary == ("flibberty", "blorked")
    spoken = ENGLISH("It cost $5 (about)")
    assert spoken.text == "It cost $5 (about)"
    assert spoken.normalized == "It cost five dollars, about,"
    assert spoken.phones[-1] == "<,>"


@pytest.mark.parametrize(
    ("text", "pauses"),
    [
        ("one", ["<sil>", "<.>"]), ("one.", ["<sil>", "<.>"]),
        ("one; two: three!", ["<sil>", "<,>", "<,>", "<!>"]),
        ("one -- two (three) 'four'?!", ["<sil>", "<,>", "<,>", "<,>", "<?>"]),
        ("... one", ["<sil>", "<.>"]), ("one... two...", ["<sil>", "<,>", "<.>"]),
        ("one. two,", ["<sil>", "<.>", "<,>"]),
    ],
)  # fmt: skip
def test_punctuation_becomes_pause_classes(text, pauses):
    assert [phone for phone in ENGLISH(text).phones if phone in PAUSES] == pauses


@pytest.mark.parametrize(
    "text",
    ["Hello, world?", "... Hello. world", "Hello -- (world)!", "{HH AH0 L OW1}, {W ER1 L D}."],
)
def test_short_pauses_stand_between_words_only(text):
    spoken = SHORT_PAUSES(text)
    assert " ".join(spoken.phones) == "HH AH0 L OW1 <sp> W ER1 L D"
    first, second = spoken.words
    assert (first.start, second.end) == (0, len(spoken.phones))
    assert spoken.phones[first.end : second.start] == ("<sp>",)


@pytest.mark.parametrize(
    ("text", "phones"),
    [
        ("{HH AY1}, {W ER1}.", "HH AY1 <,> W ER1 <.>"),
        ("say {HH AY1}? $5!", "S EY1 HH AY1 <?> F AY1 V D AA1 L ER0 Z <!>"),
        ("say {HH AY1} -- you", "S EY1 HH AY1 <,> Y UW1 <.>"),
        ("{HH AY1} (you)", "HH AY1 <,> Y UW1 <,>"),
        ("{HH AY1}”, you", "HH AY1 <,> Y UW1 <.>"),
        ("({HH AY1}) you", "HH AY1 <,> Y UW1 <.>"),
        ("{HH AY1}you .5", "HH AY1 Y UW1 P OY1 N T F AY1 V <.>"),
        ("{HH AY1}5", "HH AY1 F AY1 V <.>"),
        ("{HH AY1} word", "HH AY1 W ER1 D <.>"),
    ],
)
def test_punctuation_after_inline_phones_is_a_pause_and_stays_in_the_normalised_text(text, phones):
    assert " ".join(ENGLISH(text).phones) == f"<sil> {phones}"
    assert ENGLISH("say {HH AY1}? $5!").normalized == "say {HH AY1}? five dollars!"


def test_words_and_pauses_cover_the_phones_exactly(ipa):
    for frontend in (ENGLISH, ipa, SHORT_PAUSES):
        spoken = frontend('In the 1990s, "Dr. Lee" paid $5.50 of the bill -- at 3:30 p.m.!')
        covered = [index for word in spoken.words for index in range(word.start, word.end)]
        pauses = [index for index, phone in enumerate(spoken.phones) if phone in PAUSES]
        assert sorted(covered + pauses) == list(range(len(spoken.phones)))
        assert all(word.start < word.end for word in spoken.words)
        assert not any({first, second} <= {*PAUSES} for first, second in pairwise(spoken.phones))


def test_inline_phones_are_said_as_written(ipa):
    assert ENGLISH("say {T AH0 M EY1} now").phones[3:7] == ("T", "AH0", "M", "EY1")
    assert ipa("say {t ə m ˈeɪ} now").phones[3:7] == ("t", "ə", "m", "ˈeɪ")
    spoken = ENGLISH("{HH AH0 L OW1}")  # all there is
    assert spoken.phones == ("<sil>", "HH", "AH0", "L", "OW1", "<.>")
    assert spoken.words == (("HH AH0 L OW1", 1, 5),)
    with pytest.raises(InputError, match=r"'QQ' in \{HH QQ\} is not a phone of ARPAbet"):
        ENGLISH("{HH QQ}")
    with pytest.raises(InputError, match=r"'AH0' in \{AH0\} is not a phone of IPA"):
        ipa("{AH0}")


@pytest.mark.parametrize("extractor", ["lexicon", "letters", "nvidia_english", "espeak_characters"])
def test_braces_without_phones_are_no_word(extractor):
    frontend = TextFrontend(TextConfig(phone_extractor=extractor), "en-us")
    spoken = frontend("say {|hello} ", "again")
    assert [word.text for word in spoken.words] == ["say", "again"]
    assert all(word.start < word.end for word in spoken.words)
    assert spoken.word_ends == (1, 2)
    if extractor == "letters":
        assert spoken.phones == frontend("say again").phones
    with pytest.raises(InputError, match="no word to say"):
        frontend("{|hello}")


@pytest.mark.parametrize(
    "text", ["", " \n", "😀👍", "\x00\x07", "...?!", "\u200f\u202e", "''", "-"]
)
def test_text_without_words_is_refused(ipa, text):
    for frontend in (ENGLISH, ipa):
        with pytest.raises(InputError, match="no word to say"):
            frontend(text)


def test_words_and_languages_that_cannot_be_said_are_named():
    with pytest.raises(InputError, match="'25' has no English pronunciation"):
        TextFrontend(TextConfig(normalizer="none"), "en-us")("room 25")
    with pytest.raises(InputError, match=r"text is 'de'; set preprocess\.text\.phone_extractor to"):
        TextFrontend(TextConfig(), "de")


def test_other_languages_are_read_by_espeak_with_their_own_numbers():
    spoken = TextFrontend(TextConfig(phone_extractor="espeak"), "de")("Das kostet 3,50 €!")
    assert [word.text for word in spoken.words] == ["Das", "kostet", "3,50", "€"]
    assert spoken.phones[:4] == ("<sil>", "d", "a", "s")
    assert spoken.phones[-1] == "<!>"


@pytest.mark.parametrize(
    "language", ["de", "en-us", "nl", "fr-fr", "cmn", "ru", "ja", "ar", "hi", "es", "tr"]
)
@pytest.mark.parametrize("text", ["-5 7", "\u22125 7", "10^-3 7", "10⁻³ 7", "-0,5 7", "(-5) 7"])
def test_a_minus_is_spoken_in_every_language(language, text):
    frontend = TextFrontend(TextConfig(phone_extractor="espeak"), language)
    without = text.replace("-", "").replace("\u2212", "").replace("⁻", "")
    assert len(frontend(text).phones) > len(frontend(without).phones)


SIGNS = "%&@#§°+=<>±×÷^$€£¥√∞≤≥≠≈‰Ω©®™→∑₹₽¢¬😀👍❤🇩"


@pytest.mark.parametrize(
    "language", ["", "en-us", "de", "nl", "fr-fr", "cmn", "ru", "ja", "ar", "hi", "pl"]
)
def test_every_sign_of_any_text_is_spoken_or_named(language):
    espeak = TextConfig(phone_extractor="espeak")
    frontend = TextFrontend(espeak, language) if language else ENGLISH
    generator = random.Random(7)
    for _ in range(20):
        pieces = [*generator.choices(["da", "no", "5", "12", "3,5", "x"], k=3), "me"]
        signs = generator.sample(SIGNS, k=3)
        gaps = [generator.choice([f"{sign} ", f" {sign} ", f" {sign}", sign]) for sign in signs]
        text = "".join(piece + gap for piece, gap in zip(pieces, [*gaps, ""], strict=True))
        spoken = frontend(text)
        for sign in signs:
            plain = frontend(text.replace(sign, " "))
            assert sign in spoken.unspoken or spoken.phones != plain.phones, (text, sign)


def test_signs_without_a_word_are_left_out_and_named(ipa):
    for frontend in (ENGLISH, ipa):
        spoken = frontend("Well 😀 done ✓ now.")
        assert spoken.unspoken == ("😀", "✓")
        assert not set("😀✓") & set(" ".join(word.text for word in spoken.words))


def test_a_user_lexicon_comes_before_acronyms_and_cmudict(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("SQL  S IY1 K W AH0 L\nhello  Y OW1\n")
    frontend = TextFrontend(TextConfig(lexicon_path=str(path)), "en-us")
    assert " ".join(frontend("Hello, SQL!").phones) == "<sil> Y OW1 <,> S IY1 K W AH0 L <!>"


def test_frontends_travel_to_other_processes(ipa):
    for frontend in (ENGLISH, ipa):
        frontend("used before")
        assert pickle.loads(pickle.dumps(frontend))("Hello.") == frontend("Hello.")


PROGRAM = """
import sys
from config.text import TextConfig
from processors.text.espeak import EspeakPhonemizer
from processors.text.reading import TextReader
from processors.text.symbols import ARPABET, MARKS
from processors.text.voice_phones import VoicePhones
phones = VoicePhones((*MARKS, *ARPABET), 'replace')
TextReader(TextConfig(), 300, phones)('Plain words. 21 of them.', 'en-us')
print([n for n in ('phonemizer', 'espeakng_loader', 'torch') if n in sys.modules])
print(ascii(EspeakPhonemizer('en-us')(['see'])[0].phones))
"""


def test_plain_words_need_no_optional_package_and_espeak_no_variable():
    clean = {name: os.environ[name] for name in os.environ if not re.search("ESPEAK|^COV", name)}
    python = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(python, cwd=ROOT, env=clean, capture_output=True, text=True)
    assert result.stdout.splitlines() == ["[]", ascii(("s", "ˈiː"))], result.stderr


@pytest.mark.parametrize(
    "extractor",
    ["lexicon", "espeak", "letters", "mixed", "nvidia_english", "tensorflowtts_english"],
)
def test_the_words_of_each_part_of_a_text_are_known(extractor):
    frontend = TextFrontend(TextConfig(phone_extractor=extractor), "en-us")
    parts = ("It cost ", "$3.50", "", " (well-known", ")", ", in 1813", "; no", ".")
    spoken = frontend(*parts)
    starts = (0, *spoken.word_ends)
    expected = "it cost|three dollars and fifty cents||well known||in eighteen thirteen|no|"
    words = [
        " ".join(word.text for word in spoken.words[start:end]).lower().replace("-", " ")
        for start, end in zip(starts, spoken.word_ends, strict=False)
    ]
    assert "|".join(words) == expected
    assert spoken.phones == frontend("".join(parts)).phones
    whole = frontend("It is ($5), or -5").phones
    assert frontend("It is (", "$5", "), or ", " ", "-5").phones == whole
    assert frontend("One.").word_ends == ()


CHARACTERS = TextConfig(phone_extractor="espeak_characters")


@pytest.mark.parametrize(
    ("text", "spoken", "words"),  # by phonemizer on the whole text, punctuation preserved
    [
        ("Hello, world.", "həlˈoʊ, wˈɜːld.", ["həlˈoʊ", "wˈɜːld"]),
        ("The end of the road", "ðɪ ˈɛnd ʌvðə ɹˈoʊd", ["ðɪ", "ˈɛnd", "ʌv", "ðə", "ɹˈoʊd"]),
        ('"Yes"; no!', '"jˈɛs"; nˈoʊ!', ["jˈɛs", "nˈoʊ"]),
        ("It's a well-known house?", "ɪts ɐ wˈɛlnˈoʊn hˈaʊs?", ["ɪts", "ɐ", "wˈɛlnˈoʊn", "hˈaʊs"]),
        ("House {h ə l ˈoʊ}", "hˈaʊs həlˈoʊ", ["hˈaʊs", "həlˈoʊ"]),
    ],
)
def test_a_text_is_its_characters_with_blanks_between_them(text, spoken, words):
    read = TextFrontend(CHARACTERS, "en-us")(text)
    assert list(read.phones[1::2]) == [mark_name(char) for char in spoken]
    assert set(read.phones[::2]) == {"<pad>"}
    assert len(espeak_characters_vocabulary().ids(read.phones)) == 2 * len(spoken) + 1
    assert ["".join(read.phones[word.start : word.end : 2]) for word in read.words] == words
    assert all(read.phones[w.start - 1] == read.phones[w.end] == "<pad>" for w in read.words)


@pytest.mark.parametrize(
    ("aligner", "message"),
    [("hmm", "marks are not the pauses"), ("pocketsphinx", "gives the times of phones")],
)
def test_aligners_of_phones_are_refused(aligner, message):
    with pytest.raises(ValueError, match=message):
        PreprocessConfig(aligner=aligner, text=CHARACTERS)
