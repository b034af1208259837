"""Recognised words in a text: which clips are chosen, with which words, and what is left out."""

import numpy as np
import pytest

from config.text import TextConfig
from models.programs.corpus.matching import Matcher, match
from models.programs.corpus.recognition import Piece, find_pieces, join_pieces
from models.programs.corpus.texts import read_source, source_of
from processors.records import TimedWord
from processors.text.frontend import TextFrontend
from utils.errors import InputError

TEXT = MAN, BOAT, CAT, HOUSES = (
    "The old man walked slowly down to the harbour.",
    "His boat was gone, and so were both of his nets.",
    "A grey cat sat on the wall and looked at him.",
    "Nothing else moved between the empty houses.",
)
ANNOUNCED = "chapter twelve of this story read by nobody"
SLIP = "The old man walked slowly|The old man walked slowly down to the harbour"


@pytest.fixture(scope="module")
def frontend():
    return TextFrontend(TextConfig(), "en-us", "skip")


@pytest.fixture(scope="module")
def source(frontend):
    return source_of(TEXT, frontend, "text")


def heard(*sentences):
    """Words of 0.4 s each, with a pause of 0.5 s after each sentence, and after a bar."""
    words, time_s = [], 0.0
    for piece in (piece for sentence in sentences for piece in sentence.split("|")):
        for name in piece.lower().replace(".", "").replace(",", "").split():
            words.append(TimedWord(name, time_s, time_s + 0.4))
            time_s += 0.4
        time_s += 0.5
    return words


def chosen(words, source):
    """Clips and what is left out, in order."""
    clips = [*Matcher("a", 100.0, words, source).choose_clips()][::-1]
    return [c for c in clips if not c.reason], [c for c in clips if c.reason]


def texts_of(words, source):
    good, bad = chosen(words, source)
    for clip in good:
        assert clip.text == source.between(clip.text_first, clip.text_last)
    return [clip.text for clip in good], [clip.text for clip in bad]


@pytest.mark.parametrize(
    ("spoken", "clips", "left_out"),
    [
        ([MAN, BOAT, CAT], [MAN, BOAT, CAT], []),  # as written
        ([MAN, CAT], [MAN, CAT], []),  # a paragraph is skipped
        ([MAN, MAN, BOAT], [MAN, MAN, BOAT], []),  # a sentence is repeated
        ([HOUSES, MAN], [HOUSES, MAN], []),  # in another order
        ([MAN, ANNOUNCED, BOAT], [MAN, BOAT], [f"({ANNOUNCED})"]),
        ([SLIP, BOAT], [MAN, BOAT], ["The old man walked slowly"]),  # and its repetition
        (["The old man talked slowly down to the harbour", BOAT], [MAN, BOAT], []),  # misheard
        # no cut where a word next to a pause is missing
        (["His boat was|on so were both of his nets", CAT], [BOAT, CAT], []),
        # the first word of a sentence is not recognised
        (["old man walked slowly down to the harbour", BOAT], [MAN, BOAT], []),
    ],
)
def test_clips_have_the_words_that_are_spoken(source, spoken, clips, left_out):
    assert texts_of(heard(*spoken), source) == (clips, left_out)


def test_words_that_last_too_long_are_noise(source):
    words = heard(*TEXT[:2])
    end_s, start_s = words[8].end_s, words[8].end_s + 0.02
    words[9:] = [w._replace(start_s=w.start_s + 3, end_s=w.end_s + 3) for w in words[9:]]
    words.insert(9, TimedWord("gone", start_s, words[9].start_s))
    assert end_s < start_s
    assert texts_of(words, source) == (list(TEXT[:2]), ["(gone)"])


def test_clips_have_parts_at_the_pauses_inside(frontend):
    text = ("The old man slept.", "His boat was gone.", "A cat sat there.")
    source = source_of(text, frontend, "text")
    ((clip,), others) = chosen(heard(*text), source)

    def texts(clip):
        return [texts(part) for part in clip.parts] or clip.text

    assert not others
    assert texts(clip) == [text[0], [text[1], text[2]]]


def test_words_have_the_place_of_the_best_path_with_jumps():
    text, jumps = [*"abcdefghijklmn"], np.full(14, 4.5)

    def places(words):
        return match(words.split(), text, jumps).tolist()

    assert places("a b x c d e") == [0, 1, -1, 2, 3, 4]
    assert places("a b c d e f a b c d e f") == [*range(6)] * 2
    assert places("i j k l m n a b c d e f") == [*range(8, 14), *range(6)]
    assert places("a b d e f") == [0, 1, 3, 4, 5]
    assert places("") == []


def test_text_that_is_written_twice_is_not_divided_between_its_places(frontend):
    source = source_of((TEXT[0], TEXT[1], TEXT[1], TEXT[2]), frontend, "text")
    assert texts_of(heard(*TEXT[:3]), source) == (list(TEXT[:3]), [])


def test_text_of_a_clip_is_as_written(frontend):
    written = ("“It cost $5,” said Mr. Smith—sadly.", "* * *", "Yes | no.")
    source = source_of(written, frontend, "text")
    names = [word.name for word in source.words]
    assert names[:4] == ["it", "cost", "five", "dollars"]
    assert source.between(0, 3) == "“It cost $5,”"
    assert source.between(4, 7) == "said Mr. Smith—sadly."
    assert source.between(len(names) - 2, len(names) - 1) == "Yes no."
    costs = dict(zip(names, (word.cut_cost for word in source.words), strict=True))
    assert costs["five"] == costs["smith"] == float("inf")  # inside what is written as one
    assert costs["sadly"] == costs["no"] == 0


SRT = "1\n00:00:01,000 --> 00:00:02,500\n<i>The old</i>\nman\n\n"
SRT += "2\n0:03:04,000 --> 0:03:05,000\nwalks.\n"
VTT = "WEBVTT\n\nNOTE none\n\n00:01.000 --> 00:02.500 align:start\nThe old man\n\n"
VTT += "00:03.000 --> 00:04.000\n<v Anna>walks.</v>\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.srt", SRT),
        ("a.vtt", VTT),
        ("a.txt", "The old man\nwalks.\n"),
        ("a.md", "The *old* man walks."),
    ],
)
def test_books_and_subtitles_are_read_as_words(tmp_path, frontend, name, content):
    (tmp_path / name).write_text(content)
    source = read_source(tmp_path / name, frontend)
    assert [word.name for word in source.words] == ["the", "old", "man", "walks"]
    assert source.between(0, 3) == "The old man walks."


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.srt", "The old man.", r"a\.srt: no subtitles; expected lines such as 00:00:01,000 -->"),
        ("a.pdf", "The old man.", r"a\.pdf: not a text; expected one of \.txt, \.md, \.epub"),
        ("a.txt", "{ZZ9}", r"a\.txt: there is no word in it that can be spoken"),
    ],
)
def test_texts_without_words_are_refused(tmp_path, frontend, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_source(tmp_path / name, frontend)


def test_pieces_lie_between_pauses_of_a_fifth_of_a_second():
    pcm = np.zeros(16000 * 10, np.int16)
    tone = (3000 * np.sin(np.arange(16000 * 10) / 10)).astype(np.int16)
    for start, end in ((1.0, 2.0), (2.1, 3.0), (4.0, 5.0), (6.0, 6.02)):
        span = slice(round(16000 * start), round(16000 * end))
        pcm[span] = tone[span]
    found = [(round(p.start_s, 1), round(p.end_s, 1)) for p in find_pieces(pcm)]
    assert found == [(1.0, 3.0), (4.0, 5.0)]


def test_pieces_without_a_text_are_joined_to_the_usual_length():
    pieces = [Piece(0.0, 2.0), Piece(2.3, 6.0), Piece(6.3, 8.0), Piece(20.0, 20.5)]
    assert join_pieces(pieces) == [Piece(0.0, 6.0), Piece(6.3, 8.0)]
