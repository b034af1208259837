"""Recognised words in a text: which clips are chosen, with which words, and what is left out."""

import numpy as np
import pytest

from config.text import TextConfig
from models.programs.corpus.matching import Matched, choose_clips, match
from models.programs.corpus.recognition import HeardWord, Piece, find_pieces
from models.programs.corpus.texts import read_source, source_of
from models.programs.corpus.writing import join_pieces
from processors.text.frontend import TextFrontend
from utils.errors import InputError

TEXT = (
    "The old man walked slowly down to the harbour.",
    "His boat was gone, and so were both of his nets.",
    "A grey cat sat on the wall and looked at him.",
    "Nothing else moved between the empty houses.",
)


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
            words.append(HeardWord(name, time_s, time_s + 0.4))
            time_s += 0.4
        time_s += 0.5
    return words


def texts_of(words, source):
    clips, others = choose_clips(Matched(words, source))
    texts = [source.between(clip.text_first, clip.text_last) for clip in clips]
    return texts, [" ".join(w.name for w in words[o.first : o.past]) for o in others]


@pytest.mark.parametrize(
    ("spoken", "clips", "left_out"),
    [
        pytest.param(TEXT[:3], list(TEXT[:3]), [], id="as written"),
        pytest.param(TEXT[::2], [TEXT[0], TEXT[2]], [], id="a paragraph is skipped"),
        pytest.param(
            (TEXT[0], TEXT[0], TEXT[1]),
            [TEXT[0], TEXT[0], TEXT[1]],
            [],
            id="a sentence is repeated",
        ),
        pytest.param((TEXT[3], TEXT[0]), [TEXT[3], TEXT[0]], [], id="in another order"),
        pytest.param(
            (TEXT[0], "chapter twelve of this story read by nobody", TEXT[1]),
            [TEXT[0], TEXT[1]],
            ["chapter twelve of this story read by nobody"],
            id="something is announced",
        ),
        pytest.param(
            ("The old man walked slowly|The old man walked slowly down to the harbour", TEXT[1]),
            [TEXT[0], TEXT[1]],
            ["the old man walked slowly"],
            id="a slip, and its repetition",
        ),
        pytest.param(
            ("The old man talked slowly down to the harbour", TEXT[1]),
            [TEXT[0], TEXT[1]],
            [],
            id="a word is misheard",
        ),
        pytest.param(
            ("His boat was|on so were both of his nets", TEXT[2]),
            [TEXT[1], TEXT[2]],
            [],
            id="no cut where a word next to a pause is missing",
        ),
        pytest.param(
            ("old man walked slowly down to the harbour", TEXT[1]),
            [TEXT[0], TEXT[1]],
            [],
            id="the first word of a sentence is not recognised",
        ),
    ],
)
def test_clips_have_the_words_that_are_spoken(source, spoken, clips, left_out):
    assert texts_of(heard(*spoken), source) == (clips, left_out)


def test_words_that_last_too_long_are_noise(source):
    words = heard(*TEXT[:2])
    end_s, start_s = words[8].end_s, words[8].end_s + 0.02
    words[9:] = [w._replace(start_s=w.start_s + 3, end_s=w.end_s + 3) for w in words[9:]]
    words.insert(9, HeardWord("gone", start_s, words[9].start_s))
    assert end_s < start_s
    assert texts_of(words, source) == (list(TEXT[:2]), ["gone"])


def test_clips_have_parts_at_the_pauses_inside(frontend):
    text = ("The old man slept.", "His boat was gone.", "A cat sat there.")
    source = source_of(text, frontend, "text")
    ((clip,), others) = choose_clips(Matched(heard(*text), source))

    def texts(claim):
        whole = source.between(claim.text_first, claim.text_last)
        return [texts(part) for part in claim.parts] or whole

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


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "a.srt",
            "1\n00:00:01,000 --> 00:00:02,500\n<i>The old</i>\nman\n\n"
            "2\n0:03:04,000 --> 0:03:05,000\nwalks.\n",
        ),
        (
            "a.vtt",
            "WEBVTT\n\nNOTE none\n\n00:01.000 --> 00:02.500 align:start\nThe old man\n\n"
            "00:03.000 --> 00:04.000\n<v Anna>walks.</v>\n",
        ),
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
