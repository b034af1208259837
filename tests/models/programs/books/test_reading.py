"""Plain text and Markdown become chapters of paragraphs."""

import random
import zipfile
from contextlib import suppress

import pytest

from models.programs.books.reading import Chapter, read_book
from utils.errors import InputError

GUTENBERG = """\
The Project Gutenberg eBook of A Tale

Title: A Tale

*** START OF THE PROJECT GUTENBERG EBOOK A TALE ***

[Illustration: The
cover]

CONTENTS

 CHAPTER I.     The Start
 CHAPTER II.    The End

CHAPTER I.
The Start

It was _very_ dark
and cold. Part one of it was so.

* * *

Chapter 7 of the memoirs that she wrote had been lost in the fire, which was a pity for
all of us.

CHAPTER II.
The End

So it was.

*** END OF THE PROJECT GUTENBERG EBOOK A TALE ***

The licence.
"""

CONTAINER = """<?xml version="1.0"?>
<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>"""
PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<opf:package xmlns:opf="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">
<opf:metadata><dc:title>A &amp; B</dc:title></opf:metadata>
<opf:manifest>
<opf:item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<opf:item id="x" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<opf:item id="one" href="text/one%20.xhtml" media-type="application/xhtml+xml"/>
<opf:item id="two" href="text/two.xhtml" media-type="application/xhtml+xml"/>
<opf:item id="ad" href="ad.xhtml" media-type="application/xhtml+xml"/>
<opf:item id="pic" href="pic.svg" media-type="image/svg+xml"/>
</opf:manifest>
<opf:spine toc="x"><opf:itemref idref="n"/><opf:itemref idref="pic"/><opf:itemref idref="one"/>
<opf:itemref idref="two"/><opf:itemref idref="ad" linear="no"/></opf:spine></opf:package>"""
NAV = """<html xmlns:epub="http://www.idpf.org/2007/ops"><body>
<nav epub:type="landmarks"><ol><li><a href="text/two.xhtml">Landmark</a></li></ol></nav>
<nav epub:type="toc"><ol><li><a href="text/one%20.xhtml">First <i>part</i></a>
<ol><li><a href="text/two.xhtml#b">Second</a>
<ol><li><a href="text/two.xhtml#c">A section</a></li></ol></li></ol></li></ol></nav>
</body></html>"""
NCX = """<?xml version="1.0"?><!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "">
<ncx><docTitle><text>A</text></docTitle><navMap>
<navPoint><navLabel><text>Old first</text></navLabel><content src="text/one%20.xhtml"/></navPoint>
<navPoint><navLabel><text>Old second</text></navLabel><content src="text/two.xhtml#b"/></navPoint>
</navMap></ncx>"""
ONE = """<?xml version="1.0"?><html><head><title>no</title><style>p {}</style></head><body>
<h1>First<br/>part</h1><p>Caf&eacute;\1 {a}<a epub:type="noteref" href="#n">1</a>.<span
epub:type="pagebreak" title="3">3</span></p>
<aside epub:type="footnote" id="n"><p>A note.</p></aside></body></html>"""
TWO = """<html><body><p>Still the first.</p><div><a id="b"/><h2>Second</h2></div>
<p id="c">Its text.</p></body></html>"""
FILES = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "OPS/book.opf": PACKAGE,
    "OPS/nav.xhtml": NAV,
    "OPS/toc.ncx": NCX,
    "OPS/text/one .xhtml": ONE,
    "OPS/text/two.xhtml": TWO,
    "OPS/ad.xhtml": "<p>An advertisement.</p>",
}
FIRST = ("First part", "Café (a).", "Still the first.")
SECOND = ("Second", "Its text.")


def book_of(folder, text, name="tale.txt"):
    (folder / name).write_text(text, encoding="utf-8")
    return read_book(folder / name)


def test_a_text_of_project_gutenberg_has_its_chapters_and_no_licence(tmp_path):
    book = book_of(tmp_path, GUTENBERG)
    assert book.title == "A Tale"
    assert book.chapters == (
        Chapter(
            "CHAPTER I. The Start",
            (
                "CHAPTER I. The Start",
                "It was very dark and cold. Part one of it was so.",
                "Chapter 7 of the memoirs that she wrote had been lost in the fire, which was a"
                " pity for all of us.",
            ),
        ),
        Chapter("CHAPTER II. The End", ("CHAPTER II. The End", "So it was.")),
    )


@pytest.mark.parametrize(
    "heading",
    [
        *("Chapter 12", "CHAPTER ONE", "Chapter IV: The Sea", "Chapter 3 The Sea", "Kapitel 3"),
        *("Chapter Twenty-One. At Sea", "Part the Second", "BOOK II — THE SEA", "Prologue"),
        "EPILOGUE.",
    ],
)
def test_a_heading_starts_a_chapter_and_prose_none(tmp_path, heading):
    book = book_of(tmp_path, f"Before.\n\n{heading}\n\nIt was so.\n")
    before = Chapter("tale", ("Before.",))
    assert book.chapters == (before, Chapter(heading, (heading, "It was so.")))
    for line in ("Part one of it was so.", "Chapters 3", "Chapter and verse", "The chapter 3"):
        (chapter,) = book_of(tmp_path, f"Before.\n\n{line}\n").chapters
        assert chapter == Chapter("tale", ("Before.", line))


def test_without_empty_lines_or_with_long_ones_each_line_is_a_paragraph(tmp_path):
    long = "It was so. " * 30
    for text in ("Chapter 1\nOne.\nTwo.\n", f"Chapter 1\nOne.\n{long}\n\nTwo.\n"):
        (chapter,) = book_of(tmp_path, text).chapters
        assert chapter.paragraphs[:2] == ("Chapter 1", "One.")
        assert chapter.paragraphs[-1] == "Two."


def test_the_title_of_a_part_goes_with_its_first_chapter_and_a_list_of_titles_is_left_out(tmp_path):
    titles = "PART ONE\n\nChapter 1\n\nChapter 2\n\n"
    book = book_of(tmp_path, f"{titles}PART ONE\n\nChapter 1\n\nA.\n\nChapter 2\n\nB.\n")
    assert book.chapters == (
        Chapter("Chapter 1", ("PART ONE", "Chapter 1", "A.")),
        Chapter("Chapter 2", ("Chapter 2", "B.")),
    )


@pytest.mark.parametrize(
    "headings",
    ["PART ONE\nCHAPTER I", "Book I\nPart I\nChapter 1", "Part One\nThe Sea\nChapter I\nThe Wind"],
)
def test_adjacent_headings_of_different_kinds_are_no_table_of_contents(tmp_path, headings):
    book = book_of(tmp_path, f"Before.\n\n{headings}\n\nIt was so.\n")
    _, chapter = book.chapters
    assert " ".join(chapter.paragraphs) == " ".join([*headings.split("\n"), "It was so."])
    assert chapter.title.startswith(("CHAPTER", "Chapter"))


MARKDOWN = """\
---
draft: yes
---
# The *Book*

Read [this](https://example.org) `aloud`[^1] &amp; **loud**. ![cover](a.png)

## One

- first
- second

```python
print("left out")
```

> quoted

## Two

| a | b |
|---|---|
| c | d |

<script>left("out")</script>

### Inner

Text.

[^1]: Left out.
"""


def test_markdown_is_read_as_it_is_rendered(tmp_path):
    book = book_of(tmp_path, MARKDOWN, "book.md")
    assert book.title == "The Book"
    assert book.chapters == (
        Chapter("The Book", ("The Book", "Read this aloud & loud.")),
        Chapter("One", ("One", "first", "second", "quoted")),
        Chapter("Two", ("Two", "a, b", "c, d", "Inner", "Text.")),
    )


def test_links_to_notes_are_left_out_of_an_epub_and_other_raised_text_is_not(tmp_path):
    text = """<html><body><p>It is true.<a href="notes.xhtml#n12">12</a> Then so<sup><a
    href="#fn3">3</a></sup>, so <a href="#n4">[4]</a>, [<a href="#n5">5</a>] or (<a href="#n">*</a>)
    here†<a href="#n6">†</a> there.<sup><a href="#a">1</a>,<a href="#b">2</a></sup> The
    XX<sup>e</sup> has m<sup>2</sup>, <a href="#x">so</a><sup><a href="#n7">b</a></sup>.</p>
    <p>See <a href="http://x.y/#n1">7</a>, chapter <a href="two.xhtml">8</a> and f(9).</p>
    <h2><a href="#contents">10</a></h2><p hidden="">a</p><p style="display:none">b</p>
    <p><span aria-hidden="true">c</span><a href="#n11"><sup>11</sup></a>So.</p>
    <ol start="2"><li>One</li><li>Two</li></ol></body></html>"""
    book = read_book(epub(tmp_path, {"OPS/text/two.xhtml": text}))
    said = [text for chapter in book.chapters for text in chapter.paragraphs]
    assert said[2:] == [
        "It is true. Then so, so, or here† there. The XXe has m2, so.",
        "See 7, chapter 8 and f(9).",
        *("10", "So.", "2. One", "3. Two"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("empty.txt", "* * *\n\n---\n", "there is no word in it"),
        ("empty.md", "* * *\n\n---\n", "there is no word in it"),
        ("deep.md", "".join(f"{'    ' * n}- a\n" for n in range(250)), ".*nested too deeply"),
        ("deep.md", "<div>" * 600 + "a", ".*500 elements"),
    ],
)
def test_a_book_without_a_word_or_nested_without_end_is_refused(tmp_path, name, text, message):
    with pytest.raises(InputError, match=rf"{name}: {message}"):
        book_of(tmp_path, text, name)


def epub(folder, changes=None):
    """Writes a book of these files with some of them changed, or left out if None."""
    with zipfile.ZipFile(folder / "book.epub", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (FILES | (changes or {})).items():
            if data is not None:
                archive.writestr(name, data)
    return folder / "book.epub"


@pytest.mark.parametrize(
    ("changes", "chapters"),
    [
        ({}, {"First part": FIRST, "Second": SECOND}),  # those of the contents, in reading order
        ({"OPS/text/one .xhtml": ONE.encode("utf-16")}, {"First part": FIRST, "Second": SECOND}),
        (  # of EPUB 2: an NCX
            {"OPS/book.opf": PACKAGE.replace('properties="nav"', 'properties=""')},
            {"Old first": FIRST, "Old second": SECOND},
        ),
        ({"OPS/nav.xhtml": "<nav/>"}, {"First part": (*FIRST, *SECOND)}),  # those of headings
        # the title of a document without text goes with the next block
        (
            {"OPS/text/one .xhtml": "<p id='a'><img/></p>"},
            {"First part": FIRST[2:], "Second": SECOND},
        ),
    ],
)
def test_chapters_are_those_of_the_contents_or_of_headings(tmp_path, changes, chapters):
    book = read_book(epub(tmp_path, changes))
    assert book.title == "A & B"
    assert book.chapters == tuple(Chapter(*row) for row in chapters.items())


@pytest.mark.parametrize("place", ["#b", "", "#c"])
def test_titles_of_one_place_are_joined_in_their_order(tmp_path, place):
    nav = NAV.replace("one%20.xhtml", f"two.xhtml{place}")
    two = '<h2 id="c"><a id="b"/>Second</h2><p>Its text.</p>'
    path = epub(tmp_path, {"OPS/nav.xhtml": nav, "OPS/text/two.xhtml": two})
    assert read_book(path).chapters[-1] == Chapter("First part. Second", SECOND)


def with_two_at(place):
    return {"OPS/book.opf": PACKAGE.replace("text/two", place)}


def encryption(algorithm):
    return f"<encryption><EncryptionMethod Algorithm='{algorithm}'/></encryption>"


def test_encrypted_books_are_refused_and_encrypted_fonts_are_not(tmp_path):
    name, aes = "META-INF/encryption.xml", "http://www.w3.org/2001/04/xmlenc#aes128-cbc"
    assert read_book(epub(tmp_path, {name: encryption("http://www.idpf.org/2008/embedding")}))
    with pytest.raises(InputError, match=r"book\.epub: it is encrypted \(http://www.w3.* DRM"):
        read_book(epub(tmp_path, {name: encryption(aes)}))


def test_entities_are_not_expanded_and_no_file_is_read(tmp_path):
    file = '<!ENTITY c SYSTEM "file:///etc/passwd">'
    bomb = f'<!DOCTYPE p [<!ENTITY a "haha"><!ENTITY b "&a;&a;">{file}]>'
    path = epub(tmp_path, {"OPS/text/two.xhtml": f"{bomb}<p id='b'>&b; &c; end</p>"})
    assert read_book(path).chapters[1].paragraphs == ("&b; &c; end",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"META-INF/container.xml": None}, "(?<=epub: )there is no 'META-INF/container.xml'"),
        ({"META-INF/container.xml": "<a/>"}, "container.xml names no book"),
        ({"OPS/text/two.xhtml": None}, "there is no 'OPS/text/two.xhtml'"),
        (with_two_at("../../../etc/passwd"), r"there is no '\.\./\.\./etc/passwd.xhtml'"),
        (with_two_at("http://["), r"there is no 'OPS/http:/\["),
        ({"OPS/text/two.xhtml": "<b>" * 1000}, "500 elements inside each other"),
        ({"OPS/book.opf": "<b>" * 1000}, "'OPS/book.opf' is not well-formed XML: no element found"),
        ({"OPS/nav.xhtml": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'}, "nav.xhtml' is not well-f"),
        ({"OPS/book.opf": "<a>.</a>" * 300_000}, "'OPS/book.opf' has more than 500000 tags"),
        ({"OPS/text/two.xhtml": "<p>.</p>" * 300_000}, "two.xhtml' has more than 500000 tags"),
        ({"OPS/text/two.xhtml": b"\xe9t\xe9"}, "neither UTF-8 nor UTF-16"),
        ({"OPS/text/two.xhtml": b" " * (33 << 20)}, "longer than 32 MB"),
    ],
)
def test_a_damaged_or_hostile_book_is_one_clear_error(tmp_path, changes, message):
    with pytest.raises(InputError, match=f"book.epub: .*{message}"):
        read_book(epub(tmp_path, changes))


def test_changed_bytes_give_a_book_or_an_error_of_the_input(tmp_path):
    whole = epub(tmp_path).read_bytes()
    generator = random.Random(0)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(3):
            data[generator.randrange(len(data))] = generator.randrange(256)
        (tmp_path / "book.epub").write_bytes(data[: generator.choice([len(data), 900])])
        with suppress(InputError):  # any other exception is a bug
            assert read_book(tmp_path / "book.epub").chapters
