import random
import re
import textwrap
from itertools import pairwise

import pytest

from config.text import TextConfig
from processors.text import reading
from processors.text.reading import SentenceStream, TextReader, split_long, split_sentences
from processors.text.voice_phones import VoicePhones, model_vocabulary
from utils.errors import InputError

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    "sentences",
    [
        ["It rained.", "We left!", "Why?", "Because."],
        ["Mr. Smith met Dr. Jones on St. James St. in the U.S. Army.", "He left."],
        ["We use e.g. this, i.e. that, etc. and more.", "Yes."],
        ["He paid $3.50 at 5 p.m. sharp.", "Fine."], ["He came at 5 p.m.", "She left."],
        ["See No. 5 and vol. 2 of it.", "No.", "I won't."],
        ["J. F. Kennedy and Lee H. Oswald met.", "So did I.", "Then we went."],
        ['"Go away!" he said.', '"No."', "(Really.)", "Ok."], ["Wait... what?", "Nothing."],
        ["Visit example.com now.", "Or 3.14."], ["Pi is 3.", "The end."],
        ["A book by A. Nonymous and C. S. Lewis.", "Take vitamin A.", "Then B."],
        ['It was signed by "Dr. A. J. Hideel", not by "O. H. Lee".', "He left."],
        ["It was built c. 1985.", "Then we left."], ["Say {A. B} now.", "Yes."], [],
    ],
)  # fmt: skip
def test_sentences_end_where_a_reader_ends_them(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


def test_blank_lines_end_sentences_and_single_line_breaks_do_not_and_scripts_need_no_spaces():
    assert split_sentences(" \n\n ") == []
    assert split_sentences("A title\n\nOne line\nand more") == ["A title", "One line\nand more"]
    assert split_sentences("你好。世界！再见") == ["你好。", "世界！", "再见"]
    assert split_sentences("كيف حالك؟ بخير.") == ["كيف حالك؟", "بخير."]


@pytest.mark.parametrize(
    "lines",
    [
        ["apples", "pears", "bread"],
        ["Shopping list", "apples", "pears", "milk"],
        ["Buy:", "- ripe apples", "- pears", "* bread"],
        ["First open the door and go in", "1) then sit down", "2) sing"],
        ["Dear Mr Smith", "Thank you for your letter of the fifth of May.", "Yours", "Anna Lee"],
        ["12 Baker Street", "London"],
    ],
)
def test_items_of_a_list_are_sentences(lines):
    assert split_sentences("\n".join(lines)) == lines
    assert split_sentences("\r\n".join(lines)) == lines


@pytest.mark.parametrize("width", [30, 50, 72])
def test_wrapped_prose_is_not_broken_within_a_sentence(width):
    text = (
        "In May 1999 Mr. Smith went to London, Paris and Rome, and 12 people of the Ministry went"
        " with him to 3 of the meetings, which (as John F. Kennedy said of others) were too long"
    )
    for end in (".", ""):
        assert len(split_sentences(textwrap.fill(text + end, width))) == 1
    by_clause = "We went to the market\nand bought apples\nwhen it rained."
    assert split_sentences(by_clause) == [by_clause]


@pytest.mark.parametrize(
    "text",
    [
        "Mr. Smith paid $3.50 for No. 5 at 5 p.m. in the U.S. Army. He left. ... Then J. F. came!",
        'A title\n\n"Go away!" he said. “No.” Wait... what? {AH0. B} now. Yes.\n\n- one\n- two\n',
        "你好。世界！再见",
        "In May he went to London, Paris, Oslo and Rome,\n"
        "which were all too far for the week or two in\n"
        "his opinion. And so on.",
    ],
)
def test_a_text_that_comes_in_parts_has_the_sentences_of_the_whole(text):
    expected = reading.merge_wordless(split_sentences(text))
    for parts in (text, re.findall(r"\s*\S+", text), [text[:50], text[50:]], [text]):
        assert [*SentenceStream().of(parts)] == expected


def test_a_sentence_is_complete_when_the_next_begins_or_its_line_ends():
    stream = SentenceStream()
    parts = ("It was", " so.", " ", "I", " said\n", "Mr.\n", "Bo.\n", "...\n", "a" * 40, "\n", "\n")
    found = [stream.add(part) for part in parts]
    said = [["It was so."], ["I said"], ["Mr.\nBo."], ["...\n" + "a" * 40]]
    assert found == [[], [], [], said[0], said[1], [], said[2], [], [], [], said[3]]
    assert stream.add("And") == []
    assert stream.rest() == ["And"]
    assert SentenceStream().rest() == []
    assert [*SentenceStream().of(["... ", "It. ", "..."])] == ["... It. ..."]
    assert [*SentenceStream().of(["It.\n", "..."])] == ["It."]
    with pytest.raises(InputError, match="the text is 5; expected a string"):
        stream.add(5)


def test_nothing_is_lost_by_splitting():
    generator = random.Random(0)
    pieces = ["word", "Mr.", "U.S.", "no.", "...", "5.", "I.", "\n\n", *'.!?。")']
    for _ in range(500):
        text = "".join(generator.choice(pieces) + generator.choice(["", " "]) for _ in range(12))
        assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("sentence", "max_phones", "chunks"),
    [
        ("Just  a few words.", 50, ["Just a few words."]),
        (
            "When the sun had gone down, we walked back to the old house; nobody was there.",
            50,
            ["When the sun had gone down,", "we walked back to the old house; nobody was there."],
        ),
        ("x" * 500, 100, ["x" * n for n in (62, 63) * 4]),
        ("Oh, " + "x" * 9 + "!", 5, ["Oh,", "x" * 5, "x" * 4 + "!"]),
        ("12", 3, ["1", "2"]),
        ("aaaa {HH AH0 L OW1} bbbb", 5, ["aaaa", "{HH AH0 L OW1}", "bbbb"]),
    ],
)
def test_long_sentences_are_cut_at_clauses_and_long_words_anywhere(sentence, max_phones, chunks):
    assert split_long(sentence, max_phones) == chunks


def test_chunks_fit_are_even_and_lose_nothing():
    generator = random.Random(1)
    for _ in range(100):
        lengths = [generator.randint(1, 9) for _ in range(120)]
        words = ["x" * n + generator.choice(["", "", "", ","]) for n in lengths]
        chunks = split_long(" ".join(words), 80)
        assert " ".join(chunks) == " ".join(words)
        n_letters = [sum(map(str.isalpha, chunk)) for chunk in chunks]
        assert 10 <= min(n_letters) <= max(n_letters) <= 80


LONG = "I came, I saw, and I went away again without a word of thanks, which was unkind. Bye."


def reader(max_phones=300, p_arpabet=0.0, unknown="refuse", **text: str) -> TextReader:
    """A reader for a voice that says all phones."""
    config = TextConfig(**text)
    phones = VoicePhones(model_vocabulary(config, LETTERS).symbols, "replace", unknown)
    return TextReader(config, max_phones, phones, p_arpabet, unknown)


@pytest.mark.parametrize(
    ("text", "inner", "final"),
    [
        ({"pauses": "classes"}, "<,>", "<.>"),
        ({"pauses": "sp"}, "<sp>", "D"),
        ({"phone_extractor": "letters"}, "<,>", "<.>"),
        ({"phone_extractor": "nvidia_english"}, "<,>", "<.>"),
    ],
)
def test_clauses_of_a_long_sentence_end_as_if_it_went_on(text, inner, final):
    clauses, _ = reader(30, **text)(LONG, "en-us")
    assert [clause.words[-1].text for clause in clauses] == ["went", "without", "unkind"]
    assert [clause.phones[-1] for clause in clauses] == [inner, inner, final]


@pytest.mark.parametrize("pauses", ["classes", "sp"])
def test_no_word_is_lost_and_every_phone_is_in_a_word_or_a_pause(pauses):
    sentences = reader(20, pauses=pauses)(LONG, "en-us")
    assert " ".join(words_in(sentences)) == LONG.replace(",", "").replace(".", "")
    for clause in (clause for clauses in sentences for clause in clauses):
        gaps = [(a.end, b.start) for a, b in pairwise(clause.words)]
        assert all(stop - start in (0, 1) for start, stop in gaps)
        assert all(clause.phones[start].startswith("<") for start, stop in gaps if start < stop)


def test_clauses_of_characters_start_and_end_with_a_blank():
    read = reader(20, phone_extractor="espeak_characters")
    (clauses,) = read("One two three, four five six seven.", "en-us")
    assert len(clauses) > 1
    assert all(clause.phones[0] == clause.phones[-1] == "<pad>" for clause in clauses)


def test_a_word_of_thousands_of_letters_is_several_passages():
    ((*inner, last),) = reader(300)("a" * 1500, "en-us")
    assert len(inner) == 7
    assert "".join(clause.text for clause in [*inner, last]) == "a" * 1500
    assert max(len(clause.phones) for clause in inner) < 300


def test_words_that_can_be_mixed_are_in_letters_or_phones():
    for p_arpabet, cat in ((0.0, "c a t"), (1.0, "K AE1 T")):
        ((clause,),) = reader(60, p_arpabet, phone_extractor="mixed")("The cat.", "en-us")
        assert " ".join(clause.phones) == f"<sil> t h e <space> {cat} <.>"


def words_in(sentences) -> list[str]:
    return [word.text for clauses in sentences for c in clauses for word in c.words]


def test_letters_of_other_scripts_are_spoken_and_those_without_latin_ones_named_once(caplog):
    read = reader(unknown="speak")
    assert words_in(read("The π. 习 π!", "en-us")) == ["The", "pi", "Xi", "pi"]
    assert caplog.text == ""
    assert len(read("مرحبا بالعالم. مرحبا.", "en-us")) == 2
    assert caplog.messages == ["signs that are not spoken: ا ع in 'مرحبا بالعالم.'"]


def test_letters_that_are_skipped_are_named_once_with_their_place(caplog):
    read = reader(unknown="skip")
    assert words_in(read("He said λόγος. 习近平。 Yes: π!", "en-us")) == ["He", "said", "Yes"]
    assert caplog.messages == [
        "signs that are not spoken: λ ό γ ο ς in 'He said λόγος.'",
        "signs that are not spoken: 习 近 平 in '习近平。'",
        "signs that are not spoken: π in 'Yes: π!'",
    ]
    read("He said λόγος.", "en-us")
    assert len(caplog.records) == 3
    assert read("习近平", "en-us") == []


@pytest.mark.parametrize(("unknown", "letters"), [("speak", "jae"), ("skip", "e")])
def test_a_voice_of_letters_says_those_of_other_scripts_by_latin_ones(unknown, letters):
    read = reader(unknown=unknown, phone_extractor="letters", normalizer="none")
    ((clause,),) = read("ჯაe", "de")
    assert "".join(clause.phones[1:-1]) == letters


def test_a_script_that_espeak_cannot_read_is_transliterated():
    read = reader(unknown="speak", phone_extractor="espeak", normalizer="none")
    ((clause,),) = read("das ꦗꦮ", "de")
    assert [word.text for word in clause.words] == ["das", "ꦗꦮ"]
    assert clause.words[1].end > clause.words[1].start


def test_braces_that_hold_no_phones_are_round_brackets():
    read = reader(unknown="speak")
    texts = (
        "Dear {name}, hi.",
        "Use ${HOME} {}.",
        "It is {A, B} or {{x.y}}.",
        "An open { is it.",
    )
    for text in texts:
        plain = text.replace("{", "(").replace("}", ")")
        ((spoken,),), ((expected,),) = (read(source, "en-us") for source in (text, plain))
        assert (spoken.text, spoken.phones) == (text, expected.phones)
    assert words_in(read("Say {T UW1}.", "en-us"))[1] == "T UW1"
    with pytest.raises(InputError, match=r"'QQ' in \{HH QQ\} is not a phone"):
        read("Say {HH QQ}.", "en-us")
