"""Texts with markup: what is recognised, and what is read of it."""

import logging
import re
import time

import pytest

from processors.text.markup.formats import Markup, read_runs, recognised
from processors.text.markup.ssml import Ssml
from processors.text.passages import TextRun
from tests.processors.text.markup.test_ssml import VOICE
from utils.errors import InputError

# of each pair, the first is Markdown, HTML or SSML, the second a plain text that looks like it
PAIRS = [
    ("# Plan", "# 1 in the charts"), ("# Plan\nWe go.", "# of people: 5"), ("## 5 steps", "##5"),
    ("### Why?", "#love and #peace"), ("# 🎉 Launch", "# $5 a head"),
    ("# plan\n\nWe go.", "We got # plan B"), ("Plan\n====", "1 + 1\n= 2"),
    ("It is **so**.", "2**3**4"), ("**Note:** go", "f(**options, **more)"),
    ("I *really* mean it", "a*b*c"), ("*So it was.*", "5 * 3 * 2"),
    ("She said *no more*.", "Price* is net. *Without tax"), ("*one two* three", "*.py and *.txt"),
    ("(*very* good)", "What the f***, you s***"), ("Use `ls -l` here", "`quoted' and `so'"),
    ("`a` and `b`", "It is 5` long and 6` wide"), ("```\nx = 1\n```", "``` is a fence"),
    ("~~~sh\nls\n~~~\nDone.", "~~~ hello ~~~"),
    ("1. Do:\n   ```sh\n   ls\n   ```", "1. Do it.\n2. Rest."), ("> So it was.", "5 < 6 and 7 > 2"),
    ("> q", "> 5 is too much"), (">> *So*", ">:( how sad"),
    ("He wrote:\n> Come.", "a -> b, c => d"), ("[docs](http://x.y)", "[docs] (see there)"),
    ("See [it](#more).", "f[i](x)"), ("[a b](docs/a.md)", "[sic](!)"),
    ("![A cat](cat.png)", "Hi![1]"), ("- [ ] Buy milk\n- [x] Go", "[x] marks the spot"),
    ("a | b\n--|--\n1 | 2", "a | b\nc | d"), ("| a |\n|---|\n| 1 |", "|x| = 5\n---"),
    ("So.[^1]\n\n[^1]: Why.", "x[^1] is x"), (r"It is \$5.", r"C:\$5 and \x"),
    ("<b>x</b>", "if a<b and c>d"), ("<p>One.</p><p>Two.</p>", "use the <p> element"),
    ("<!DOCTYPE html><title>x</title>x", "The doctype html is short"),
    ("<html><body>x</body></html>", "html > body > p"), ("one<br>two", "the <br> breaks a line"),
    ('<a href="x">y</a>', "x <a href> y"), ("<ul><li>x</li></ul>", "List<String> of <T>"),
    ("<speak>Hi</speak>", "<speaker> says </speaker>"),
    ('<?xml version="1.0"?>\n<speak version="1.1">Hi</speak>', "the element <speak> is the root"),
    ('Wait <break time="1s"/> here', "<break> in case of fire"),
    ("<span style='color: red'>x</span>", "x <y> z </w>"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "plain"), PAIRS)
def test_a_format_is_recognised_and_what_looks_like_one_is_plain(marked, plain):
    is_ssml, is_html = "<speak" in marked or "<break" in marked, marked.startswith(("<", "one<"))
    expected = "ssml" if is_ssml else "html" if is_html else "markdown"
    assert (recognised(marked), recognised(plain)) == (expected, "text")
    windows = marked.replace("\n", "\r\n")
    assert recognised(f"\ufeff{windows}") == expected


def texts(source, format="markdown"):
    rows = read_runs(Markup(source, format), VOICE)
    return ["|".join(run.text or f"{run.break_s:g} s" for run in row) for row in rows]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# Plan\nWe go.\n\nThen rest.", ["Plan", "0.75 s|We go.", "Then rest."]),
        ("[docs](http://x.y), <http://x.y>, ![a cat](c.png)", ["docs, http://x.y, a cat"]),
        ("> q\n> r\n\nThen\n> s", ["q\nr", "Then", "s"]),
        ("**a** *b* __c__ _d_ ~~e~~ f_g_h `x{1}`", ["a b c d f_g_h x(1)"]),
        ("1. a\n2. b\n\n   more\n3. c", ["1. a", "2. b", "more", "3. c"]),
        ("- a\n  - b\n- [x] c\n- [ ] d", ["a", "b", "c", "d"]),
        ("| A | B |\n|---|---|\n| 1. | **2** |\n|  | 3 |", ["A, B", "1, 2", "3"]),
        ("Here:\nA | B\n--|--\n1 | 2", ["Here:", "A, B", "1, 2"]),
        ("Here:\n- a\n- b\n\nOr\n1. c", ["Here:", "a", "b", "Or", "1. c"]),
        ("So.[^1] It[^b] is.\n\n[^1]: Why.\n[^b]: What.", ["So. It is."]),
        ("a\n\n---\n\nb\n\n# C\n***\nd", ["a", "1 s|b", "C", "1 s|d"]),
        ("Wait [pause:1.5] here", ["Wait |1.5 s| here"]),
        ("one\ntwo  \nthree", ["one\ntwo\nthree"]), ("a {HH AH0} b", ["a {HH AH0} b"]),
        ("a <b>b</b><br>c &amp; d &lt; e 5 < 6", ["a b\nc & d < e 5 < 6"]),
        ("a <!-- not this --> b", ["a b"]), ("---\ntitle: x\n---\n# A", ["A"]),
        ("[a [b", ["(a (b"]),
        ("==a b== if c == d, H~2~O, x^2^ on the 19^th^", ["a b if c == d, H2O, x^2 on the 19th"]),
        (r"\$5, \*a\*, 5\%, \~b, \& \<c\> `\$`", ["$5, *a*, 5%, ~b, & <c> \\$"]),
        ("`npm i --save -v x-y` -- so", ["npm i −−save −v x-y -- so"]),
    ],
)  # fmt: skip
def test_markdown_is_read_as_a_careful_reader_would(source, expected):
    assert texts(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<h1>A</h1><p>b<br>c</p><hr><p>d</p>", ["A", "0.75 s|b\nc", "1 s|d"]),
        ("<p>a <span hidden>b</span> c", ["a c"]),
        ("a<i style='color:red; Display : None'>b</i>c", ["ac"]),
        ("a<i aria-hidden='true'>b</i><i aria-hidden='false'>c</i>", ["ac"]),
        ("<p>It is so.<a href='#n1'>[1]</a>", ["It is so."]),
        ("<ol start='3'><li><p>a</p><li>b</ol><ul><li>c</ul>", ["3. a", "4. b", "c"]),
        ("<img alt='A cat' src=x> <s>5</s> 4 {x}", ["A cat 4 (x)"]),
        ("<title>x</title><nav>y</nav><script>a<b</script>z", ["z"]),
        ("<table><tr><th>A<th>B</tr><tr><td>1<td>2</table>", ["A, B", "1, 2"]),
    ],
)
def test_html_is_read_as_a_browser_shows_it(source, expected):
    assert texts(source, "html") == expected


def test_code_blocks_are_left_out_with_a_warning(caplog):
    source = "Run:\n```sh\n# ls\n```\n1. a\n   ~~~\n   x\n   ~~~\n2. b\n\n```\nno end"
    with caplog.at_level(logging.WARNING):
        assert texts(source) == ["Run:", "1. a", "2. b"]
        assert texts("<p>a</p><pre>b</pre>", "html") == ["a"]
    assert caplog.messages == [f"code blocks that are not read: {n}" for n in (3, 1)]


def test_pauses_are_read_in_plain_text_and_the_longest_is_cut(caplog):
    source = (
        "a [pause:1.5] b [break 300ms] c [pause] d [Break: 2 seconds][pause 700] e [pause:20s]"
        " f [pause:12] g [pause:99]"
    )
    with caplog.at_level(logging.WARNING):
        ((*runs,),) = read_runs(source, VOICE)
    breaks = [run.break_s for run in runs if run.break_s is not None]
    assert breaks == [1.5, 0.3, 0.5, 2, 0.7, 10, 10, 10]
    assert "".join(run.text for run in runs).split() == [*"abcdefg"]
    cut = ("[pause:20s]", "[pause:12]", "[pause:99]")
    assert caplog.messages == [f"{pause}: cut to 10 s, the longest" for pause in cut]
    for plain in ("press [Pause]", "[pause for effect]", "[break]", "a[pause:x]"):
        assert read_runs(plain, VOICE) is None


def test_a_given_format_is_taken_and_auto_decides_otherwise():
    assert read_runs(Markup("# Plan", "text"), VOICE) is None
    assert read_runs(Markup("5 < 6"), VOICE) is None
    assert read_runs(Markup("# Plan"), VOICE) == [[TextRun("Plan")]]
    assert read_runs(Markup("<speak>a & b</speak>"), VOICE) == [[TextRun("a & b")]]
    assert read_runs(Ssml("<speak>a</speak>"), VOICE) == [[TextRun("a")]]
    fenced = ["```xml\n<speak>Hi</speak>", "So:\n~~~\n<break/>\n~~~"]  # SSML shown as code
    assert [*map(recognised, [*fenced, "``<break/>``", "Or ` <break/> `"])] == ["markdown"] * 4
    with pytest.raises(InputError, match="line 1, column 11: not well-formed"):
        read_runs(Markup("<speak>a & b</speak>", strict=True), VOICE)


@pytest.mark.parametrize(
    "part",
    [
        *("[", "![", "[a](", "[a][", "[\n", "[[a]", "[ [a] ", "<a", "<a ", '<a b="', "<!--"),
        *("<?", "<![CDATA[", "*", "**a ", "`", "_a ", "|", "~~", "(", "[a](b", "[a]((", "# "),
        *("<br>", "> a\n", "*a* ", "> ", "<b>", "- ", "-", "```\n", "~~~\n", "[a](b)", "&"),
    ],
)
def test_no_sign_that_is_repeated_takes_quadratic_time(part):
    source = (part * 15_000)[:15_000]
    start = time.process_time()
    recognised(source)
    for format in ("markdown", "html"):
        try:
            texts(source, format)
        except InputError as error:
            assert re.search("nested|inside each other|20000 signs", str(error))  # noqa: PT017
    assert time.process_time() - start < 2  # quadratic time is over 2.5 s


def test_brackets_in_brackets_take_no_quadratic_time():
    start = time.process_time()
    assert len(texts("[" * 30_000 + "a" + "]" * 30_000)) == 1
    assert len(texts("[a](" + "(" * 60_000)) == 1
    assert time.process_time() - start < 5
