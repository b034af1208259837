"""EPUB 2 and 3 become chapters; hostile ones an error."""

import random
import zipfile
from contextlib import suppress

import pytest

from models.books.book import Chapter
from models.books.reading import read_book
from utils.errors import InputError

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
<ol><li><a href="text/two.xhtml#c">A section</a></li></ol></li></ol></li></ol></nav></body>"""
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


def epub(folder, changes=None):
    """Writes a book of these files with some of them changed, or left out if None."""
    with zipfile.ZipFile(folder / "book.epub", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (FILES | (changes or {})).items():
            if data is not None:
                archive.writestr(name, data)
    return folder / "book.epub"


def test_chapters_are_those_of_the_table_of_contents_in_reading_order(tmp_path):
    book = read_book(epub(tmp_path))
    assert book.title == "A & B"
    assert book.chapters == (Chapter("First part", FIRST), Chapter("Second", SECOND))


def test_the_contents_of_epub_2_are_an_ncx(tmp_path):
    path = epub(tmp_path, {"OPS/book.opf": PACKAGE.replace('properties="nav"', 'properties=""')})
    chapters = read_book(path).chapters
    assert [chapter.title for chapter in chapters] == ["Old first", "Old second"]
    assert [chapter.paragraphs for chapter in chapters] == [FIRST, SECOND]


def test_without_contents_chapters_start_at_headings(tmp_path):
    chapters = read_book(epub(tmp_path, {"OPS/nav.xhtml": "<nav/>"})).chapters
    assert chapters == (Chapter("First part", (*FIRST, *SECOND)),)


def test_the_title_of_a_document_without_text_goes_with_the_next_block(tmp_path):
    path = epub(tmp_path, {"OPS/text/one .xhtml": "<p id='a'><img/></p>"})
    assert [chapter.title for chapter in read_book(path).chapters] == ["First part", "Second"]


@pytest.mark.parametrize("place", ["#b", "", "#c"])
def test_titles_of_one_place_are_joined_in_their_order(tmp_path, place):
    nav = NAV.replace("one%20.xhtml", f"two.xhtml{place}")
    two = '<h2 id="c"><a id="b"/>Second</h2><p>Its text.</p>'
    path = epub(tmp_path, {"OPS/nav.xhtml": nav, "OPS/text/two.xhtml": two})
    assert read_book(path).chapters[-1] == Chapter("First part. Second", SECOND)


def test_utf_16_is_read(tmp_path):
    path = epub(tmp_path, {"OPS/text/one .xhtml": ONE.encode("utf-16")})
    assert read_book(path).chapters[0].paragraphs == FIRST


def encryption(algorithm):
    return f"<encryption><EncryptedData><EncryptionMethod Algorithm='{algorithm}'/></EncryptedData>"


def test_encrypted_books_are_refused_by_name_and_encrypted_fonts_are_not(tmp_path):
    name, aes = "META-INF/encryption.xml", "http://www.w3.org/2001/04/xmlenc#aes128-cbc"
    assert read_book(epub(tmp_path, {name: encryption("http://www.idpf.org/2008/embedding")}))
    with pytest.raises(InputError, match=r"book\.epub: it is encrypted \(Adobe ADEPT\).* DRM"):
        read_book(epub(tmp_path, {name: encryption(aes), "META-INF/rights.xml": ""}))
    with pytest.raises(InputError, match=r"encrypted \(http://www.w3"):
        read_book(epub(tmp_path, {name: encryption(aes)}))


BOMB = (
    '<!DOCTYPE p [<!ENTITY a "haha"><!ENTITY b "&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>'
)


def test_entities_are_not_expanded_and_no_file_is_read(tmp_path):
    path = epub(tmp_path, {"OPS/text/two.xhtml": f"{BOMB}<p id='b'>&b; &c; end</p>"})
    assert read_book(path).chapters[1].paragraphs == ("&b; &c; end",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"META-INF/container.xml": None}, "there is no 'META-INF/container.xml'"),
        ({"META-INF/container.xml": "<a/>"}, "container.xml names no book"),
        ({"OPS/text/two.xhtml": None}, "there is no 'OPS/text/two.xhtml'"),
        (
            {"OPS/book.opf": PACKAGE.replace("text/two", "../../../etc/passwd")},
            r"there is no '\.\./\.\./etc/passwd.xhtml'",
        ),
        ({"OPS/book.opf": PACKAGE.replace("text/two", "http://[")}, "link .* is wrong"),
        ({"OPS/text/two.xhtml": "<b>" * 1000}, "500 elements inside each other"),
        ({"OPS/book.opf": "<b>" * 1000}, "50 elements inside each other"),
        ({"OPS/book.opf": "<a>.</a>" * 300_000}, "500000 tags and texts in one file"),
        ({"OPS/text/two.xhtml": "<p>.</p>" * 300_000}, "500000 tags and texts in one file"),
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
