"""Plain text and Markdown become chapters of paragraphs."""

import pytest

from models.books.book import Chapter
from models.books.reading import read_book
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
        *("Chapter 12", "CHAPTER ONE", "Chapter IV: The Sea", "Chapter 3 The Sea"),
        *("Chapter Twenty-One. At Sea", "Part the Second", "BOOK II — THE SEA"),
        *("Kapitel 3", "Prologue", "EPILOGUE."),
    ],
)
def test_a_heading_starts_a_chapter(tmp_path, heading):
    book = book_of(tmp_path, f"Before.\n\n{heading}\n\nIt was so.\n")
    assert book.chapters == (
        Chapter("tale", ("Before.",)),
        Chapter(heading, (heading, "It was so.")),
    )


@pytest.mark.parametrize(
    "line", ["Part one of it was so.", "Chapters 3", "Chapter and verse", "The chapter 3"]
)
def test_prose_starts_none(tmp_path, line):
    assert book_of(tmp_path, f"Before.\n\n{line}\n").chapters == (
        Chapter("tale", ("Before.", line)),
    )


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
        Chapter("Two", ("Two", "a", "b", "c", "d", "Inner", "Text.")),
    )


def test_nesting_without_end_is_refused(tmp_path):
    lists = "".join(f"{'    ' * n}- a\n" for n in range(400))
    for text in (lists, "<div>" * 600 + "a"):
        with pytest.raises(InputError, match=r"deep\.md: .*(nested too deeply|500 elements)"):
            book_of(tmp_path, text, "deep.md")


@pytest.mark.parametrize("name", ["empty.txt", "empty.md"])
def test_a_book_without_a_word_is_refused(tmp_path, name):
    with pytest.raises(InputError, match=rf"{name}: there is no word in it"):
        book_of(tmp_path, "* * *\n\n---\n", name)
