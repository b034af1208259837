"""Subtitles, read back as players read them."""

import re
from itertools import pairwise

import pytest

from processors.durations.subtitles import (
    LINE,
    LONGEST_S,
    SHORTEST_S,
    WrittenText,
    sentences_of,
    subtitles,
)
from processors.records import TimedSentence, TimedWord

LONG = (
    "When the sunlight strikes raindrops in the air, they act as a prism and form a rainbow, and"
    " the rainbow is a division of white light into many beautiful colours, which take the shape"
    " of a long round arch, with its path high above, and its two ends apparently beyond the sea."
)


def spoken(text, word_s=0.3, start_s=0.0):
    """Words one after another."""
    words = text.split()
    times = [start_s + i * word_s for i in range(len(words) + 1)]
    return [TimedWord(*row) for row in zip(words, times[:-1], times[1:], strict=True)]


def seconds(clock):
    hours, minutes, rest = clock.replace(",", ".").split(":")
    return 3600 * int(hours) + 60 * int(minutes) + float(rest)


def cues(content):
    """Start, end and lines of each cue of a file of either format."""
    content = content.removeprefix("WEBVTT\n\n").strip()
    blocks = [block.split("\n") for block in content.split("\n\n")]
    rows = [block[1:] if block[0].isdigit() else block for block in blocks]
    return [(*map(seconds, row[0].split(" --> ")), row[1:]) for row in rows]


def test_spoken_words_are_found_in_the_text_as_written():
    text = "\n “It costs $5,”  she said; 10:30 a.m. — 😀\n\nIt is {T UW1} °C."
    written = WrittenText(text)
    first = "It costs five dollars she said ten thirty A M"
    found = [
        *written.spans("“It costs $5,” she said; 10:30 a.m. — 😀", spoken(first)),
        *written.spans("It is", spoken("It is")),
        *written.spans("not in the text", spoken("not")),
        *written.spans("{T UW1} °C.", [TimedWord("T UW1", 0, 1), *spoken("degrees")]),
    ]
    assert [text[slice(*span)] for span in found] == [
        *("It", "costs", "$5", "$5", "she", "said", "10:30", "10:30", "a.m", "a.m"),
        *("It", "is", "", "T UW1", "°C"),
    ]


def test_words_next_to_markup_have_their_own_characters():
    text = "`a --b` [the docs](http://x.y/a), **now**.\n\n| Name | Cost |\n|---|---|\n| Bo | $6 |"
    written = WrittenText(text)
    rows = [("a −−b the docs, now.", "a b the docs now"), ("Name, Cost", "Name Cost")]
    rows.append(("Bo, $6", "Bo six dollars"))
    spans = [span for shown, said in rows for span in written.spans(shown, spoken(said))]
    shown = [text[slice(*span)] for span in spans]
    assert shown == ["a", "--b", "the", "docs", "now", "Name", "Cost", "Bo", "$6", "$6"]


def test_a_word_of_a_dictionary_may_be_several_in_the_text():
    text, names = "In New York, $5.", ["In", "New York", "five", "dollars"]
    words = [TimedWord(name, n, n + 1) for n, name in enumerate(names)]
    shown = [text[slice(*span)] for span in WrittenText(text).spans(text, words)]
    assert shown == ["In", "New York", "$5", "$5"]


def test_a_text_is_shown_as_written_at_the_times_of_what_is_spoken():
    text = "Dr. Lee paid $3.50 — twice. Was it 10:30? Yes."
    said = "Doctor Lee paid three dollars and fifty cents twice Was it ten thirty Yes"
    words = spoken(said, word_s=0.5)
    sentences = sentences_of(text, words)
    assert sentences == (
        TimedSentence("Dr. Lee paid $3.50 — twice.", 0.0, 4.5),
        TimedSentence("Was it 10:30?", 4.5, 6.5),
        TimedSentence("Yes.", 6.5, 7.0),
    )
    shown = cues(subtitles(sentences, words, "vtt"))
    first = "Dr. <00:00:00.500>Lee <00:00:01.000>paid <00:00:01.500>$3.50\u00a0—"
    first += " <00:00:04.000>twice."
    assert [(start, end, *lines) for start, end, lines in shown] == [
        (0.0, 4.5, first),
        (4.5, 6.5, "Was <00:00:05.000>it <00:00:05.500>10:30?"),
        (6.5, pytest.approx(6.5 + SHORTEST_S, abs=1e-3), "Yes."),
    ]


@pytest.mark.parametrize("word_s", [0.15, 0.3, 2.5])
def test_cues_keep_to_the_limits_and_lose_no_word(word_s):
    text = f"{LONG} No. {LONG} Yes! And so on, and on."
    words = spoken(text, word_s)
    shown = cues(subtitles(sentences_of(text, words), words, "srt"))
    joined = " ".join(line for *_, lines in shown for line in lines)
    assert joined.replace(" ", "") == text.replace(" ", "")
    for start, end, lines in shown:
        assert len(lines) <= 2
        assert max(map(len, lines)) <= LINE
        assert end - start <= LONGEST_S + 1e-3
    for (start, end, _), (following, _, _) in pairwise(shown):
        assert end <= following
        assert following - start >= SHORTEST_S - 1e-3


def test_lines_are_balanced_and_long_sentences_split_between_clauses():
    words = spoken(LONG, 0.2)
    (_, _, first), *_, (_, _, last) = cues(subtitles(sentences_of(LONG, words), words, "srt"))
    assert first == ["When the sunlight strikes", "raindrops in the air,"]
    assert last == ["and its two ends", "apparently beyond the sea."]


def test_a_word_longer_than_a_line_has_its_own_cue_and_hyphens_do_not_break_one():
    text = f"See {'x' * 60} and so on."
    words = spoken(text, 1.0)
    shown = cues(subtitles(sentences_of(text, words), words, "srt"))
    assert [lines for *_, lines in shown] == [["See"], ["x" * 30, "x" * 30], ["and so on."]]
    text = "It was the gentlemanly forty-nine-year-old-looking man who spoke first."
    rows = cues(subtitles(sentences_of(text, spoken(text)), spoken(text), "srt"))
    assert [word for *_, lines in rows for line in lines for word in line.split()] == text.split()


def test_a_short_sentence_lasts_into_the_pause_or_shares_the_cue_of_the_next():
    hurried = [*spoken("No."), *spoken("Yes. I do.", start_s=0.4)]
    sentences = sentences_of("No. Yes. I do.", hurried)
    assert cues(subtitles(sentences, hurried, "srt")) == [(0.0, 1.3, ["No. Yes. I do."])]
    slow = [*spoken("No."), *spoken("Yes, I do.", start_s=5)]
    sentences = sentences_of("No. Yes, I do.", slow)
    shown = cues(subtitles(sentences, slow, "srt"))
    assert shown == [(0.0, 0.833, ["No."]), (5.0, 5.9, ["Yes, I do."])]


def test_webvtt_escapes_signs_and_times_each_word_unless_it_lasts_no_time():
    words = spoken("a b c", 1.0)
    assert subtitles(sentences_of("a <b> &c", words), words, "vtt") == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:03.000\na <00:00:01.000>&lt;b&gt; <00:00:02.000>&amp;c\n"
    )
    words = [*map(TimedWord, "abc", (3661.5, 3661.5, 3662), (3661.5, 3662, 3663))]
    content = subtitles(sentences_of("a b c", words), words, "vtt")
    assert "01:01:01.500 --> 01:01:03.000\na b <01:01:02.000>c" in content
    assert re.findall(r"<([\d:.]+)>", content) == ["01:01:02.000"]
