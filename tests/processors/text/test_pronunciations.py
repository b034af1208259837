import pytest

from config.text import TextConfig
from processors.text.pronunciations import Dictionary, Transcriber, dictionary_of, read_dictionary
from processors.text.reading import TextReader
from processors.text.symbols import ARPABET
from processors.text.voice_phones import VoicePhones
from utils.errors import InputError

IPA = ["ə", "ˈæ", "n", "v", "d", "k", "ɑː", "ˈoʊ", "z", "b"]
VOICES = {
    "lexicon": Transcriber("arpabet", True, frozenset(ARPABET)),
    "espeak": Transcriber("ipa", True, frozenset(IPA)),
    "german": Transcriber("ipa", False, frozenset(IPA)),
    "letters": Transcriber("letters", True, frozenset("abcdefghijklmnopqrstuvwxyz'")),
}
NEVADA = "N AH0 V AE1 D AH0"


def said(entries, text, voice="lexicon"):
    return dictionary_of(entries).spoken(text, VOICES[voice])


@pytest.mark.parametrize(
    ("respelling", "phones"),
    [
        ("nuh-VAD-uh", NEVADA), ("puh-TAY-toh", "P AH0 T EY1 T OW0"), ("WUUS-ter", "W UH1 S T ER0"),
        ("kee-NWAH", "K IY0 N W AA1"), ("hur-MY-oh-nee", "HH ER0 M AY1 OW0 N IY0"),
        ("oh-HY-oh", "OW0 HH AY1 OW0"), ("gow-DEE", "G AW0 D IY1"), ("zhee-RAHF", "ZH IY0 R AA1 F"),
        ("byoo-TEEK", "B Y UW0 T IY1 K"), ("RYE-uhn", "R AY1 AH0 N"),
        ("KATE-lin", "K EY1 T L IH0 N"),  # by CMUdict: the letters follow no rule
    ],
)  # fmt: skip
def test_a_respelling_has_sounds_by_its_letters_and_stress_by_its_capitals(respelling, phones):
    assert said({"x": respelling}, "x") == f"{{{phones}|x}}"


def test_each_kind_of_voice_reads_respellings():
    words = {"nevada": "nuh-VAD-uh"}
    assert said(words, "Nevada", "espeak") == "{n ə v ˈæ d ə|Nevada}"
    assert said(words, "Nevada", "german") == "nuhvaduh"
    assert said(words, "Nevada", "letters") == "{n u h v a d u h|Nevada}"


@pytest.mark.parametrize("given", [NEVADA, f"{{{NEVADA}}}", "{nəˈvædə}", "{n ə v ˈæ d ə}"])
def test_phones_of_both_alphabets_are_those_of_the_voice(given):
    assert said({"nevada": given}, "nevada") == f"{{{NEVADA}|nevada}}"
    assert said({"nevada": given}, "nevada", "espeak") == "{n ə v ˈæ d ə|nevada}"


WORDS = {
    "york": "YORK-uh", "New York": "city", "US": "you ess", "Polish": "POH-lish", "POLISH": "shine",
    "C++": "see plus plus", ".NET": "dot net", "Zoë": "zoh-EE", "clock": "cloak",
    "o'hara": "oh hair a", "@": "at sign",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("New\n York, Yorkers", "city, Yorkers"),
        ("tell us: the US", "tell us: the you ess"),
        ("polish POLISH", "{P OW1 L IH0 SH|polish} shine"),
        ("Zoe\u0308", "{Z OW0 IY1|Zoë}"),
        ("C++ on .NET", "see plus plus on dot net"),
        ("bob@x, @ C++11", "bob at sign x, at sign see plus plus 11"),
        ("o'clock, 'clock' clocks clock-work", "o'clock, 'cloak' clocks cloak-work"),
        ("O’Hara’s york's", "oh hair a’s {Y AO1 R K AH0 Z|york's}"),
        ("{K L AA1 K} clock", "{K L AA1 K} cloak"),
    ],
)
def test_the_longest_whole_words_are_found_in_their_case(text, spoken):
    assert said(WORDS, text) == spoken


def test_a_file_has_phones_respellings_and_words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(
        "\ufeff# names\n;;; more\n\nNEVADA  N AH0 V AE1 D AH0  # as arion pronounce prints it\n"
        "NEVADA(2)  N EH1\nNew York\tN UW1 Y AO1 R K\nGIF = JIF-uh\ncat K AE1 T\n"
        "W3C = World = Web\nOh, no  OW1 N OW1\n"
    )
    words = read_dictionary(path)
    spoken = words.spoken("nevada, new york gif GIF cat w3c W3C oh, no", VOICES["lexicon"])
    assert spoken == (
        f"{{{NEVADA}|nevada}}, {{N UW1 Y AO1 R K|new york}} gif {{JH IH1 F AH0|GIF}}"
        " {K AE1 T|cat} w3c World = Web {OW1 N OW1|oh, no}"
    )


@pytest.mark.parametrize(
    ("line", "voice", "message"),
    [
        ("nevada", "lexicon", r"words\.txt:2: 'nevada' has no pronunciation"),
        ("foo,F UW1", "lexicon", r"words\.txt:2: 'foo,F' has no pronunciation, or is no word"),
        ("foo: F UW1", "lexicon", r"words\.txt:2: 'foo:' has no pronunciation"),
        ('"foo" F UW1', "lexicon", r"words\.txt:2: '\"foo\"' has no pronunciation"),
        ("hi = --", "lexicon", r"words\.txt:2: 'hi' has no pronunciation, or is no word"),
        ("= x", "lexicon", r"words\.txt:2: '' has no pronunciation, or is no word"),
        ("a|b = x", "lexicon", r"words\.txt:2: 'a\|b' has no pronunciation, or is no word"),
        ("a = {N", "lexicon", r"words\.txt:2: 'a': braces hold phones"),
        ("a  QQ1", "lexicon", r"words\.txt:2: 'a' = '\{QQ1\}': no phone of ARPAbet: QQ1"),
        ("New York N UW1", "lexicon", r"'New' = '\{York N UW1\}': no sound of English"),
        ("a = {ʘ}", "lexicon", "no sound of English: ʘ"),
        ("a = 习-AH", "lexicon", "'习' has no sound of English"),
        (f"a = {'sh' * 500}-AH", "lexicon", "'shshshshshshshshshsh' has no sound"),  # in no time
        ("a  N AH0", "letters", "'N' is no letter, and this voice reads letters"),
        ("a  ! n", "espeak", "'!' is no phone of IPA"),
    ],
)
def test_wrong_lines_are_named(tmp_path, line, voice, message):
    path = tmp_path / "words.txt"
    path.write_text(f"# words\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_dictionary(path).check(VOICES[voice])


def test_entries_of_a_request_come_before_those_of_the_server():
    merged = dictionary_of({"a": "one"}).merged(dictionary_of({"a": "two", "b": "three"}))
    assert merged.spoken("a b", VOICES["lexicon"]) == "one three"
    assert dictionary_of(None) is None
    assert Dictionary([]).merged(None).facts == []


def reader(extractor="lexicon", known=ARPABET):
    return TextReader(TextConfig(phone_extractor=extractor), 400, VoicePhones(known, "replace"))


def test_words_keep_their_names_and_the_text_is_as_written():
    words = dictionary_of({"nevada": "nuh-VAD-uh", "W3C": "World Web", "→": "to"})
    ((clause,),) = reader().using(words, "en-us")("A Nevada → W3C.", "en-us")
    assert clause.text == "A Nevada → W3C."
    assert [word.text for word in clause.words] == ["A", "Nevada", "to", "World", "Web"]
    assert clause.phones[1:8] == ("AH0", *NEVADA.split())
    assert clause.unspoken == ()
    assert clause.normalized == "A Nevada to World Web."
    # symbols of NVIDIA name such words too
    known = [f"@{phone}" for phone in ARPABET] + [*"abcdefghijklmnopqrstuvwxyz", "<space>", "<.>"]
    read = reader("nvidia_english", known).using(words, "en-us")
    ((clause,),) = read("In Nevada.", "en-us")
    assert [word.text for word in clause.words] == ["in", "Nevada"]
    assert clause.phones[-7:] == (*(f"@{phone}" for phone in NEVADA.split()), "<.>")
