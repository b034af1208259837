import re

from models.evaluation.report.page import write_page
from processors.metrics.records import CheckFlag
from tests.models.evaluation.report.evaluations import evaluation_of, item_of, page_of, scored_of

HOSTILE = "</script><b onclick=alert(1)>\u2028 & <!-- ü"


def test_texts_ids_and_names_cannot_break_out(tmp_path):
    pages = []
    for name in ("harmless", HOSTILE):
        item = item_of(tmp_path, name, (name,), text=name)
        flags = (CheckFlag(name, name),)
        scored = {name: [scored_of(name, 5.0, heard=name, flags=flags)]}
        pages.append(page_of(tmp_path / "report.html", [item], scored))
    hostile = pages[1]
    # long names may be broken after a sign
    tags = [[tag for tag, _ in page.elements if tag != "wbr"] for page in pages]
    assert tags[0] == tags[1]
    assert not any("onclick" in attributes for _, attributes in hostile.elements)
    (utterance,) = hostile.json["index"]["utterances"]
    assert (utterance["id"], utterance["text"]) == (HOSTILE, HOSTILE)
    assert hostile.json["index"]["voices"][1]["name"] == HOSTILE
    assert utterance["flags"] == [[1, HOSTILE, HOSTILE]]
    html = (tmp_path / "report.html").read_text(encoding="utf-8").replace("<wbr>", "")
    assert "&lt;/script&gt;&lt;b onclick" in html


def test_a_page_loads_nothing_from_elsewhere_and_runs_its_own_script_alone(tmp_path):
    page = page_of(tmp_path / "report.html", [item_of(tmp_path, "a")])
    urls = [attrs[name] for _, attrs in page.elements for name in ("src", "href") if name in attrs]
    assert urls == ["#utterances"]
    style = (tmp_path / "report.html").read_text().partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    policies = [
        attributes["content"]
        for _, attributes in page.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none'; script-src 'sha256-")


def test_a_transcript_is_marked_where_it_differs_from_the_text(tmp_path):
    item = item_of(tmp_path, "a", text="The cat.")
    scored = {"voice": [scored_of("a", 5.0, heard="the hat")]}
    page = page_of(tmp_path / "report.html", [item], scored)
    assert page.json["data-0"]["heard"] == [
        {"voice": 0, "words": [["the", ""], ["cat", ""]]},
        {"voice": 1, "words": [["the", ""], ["cat", "missing"], ["hat", "extra"]]},
    ]


def test_a_page_shows_its_date_its_folder_and_what_was_skipped(tmp_path):
    page_of(tmp_path / "report.html", [item_of(tmp_path, "a")])
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<title>voice/result" in text
    assert re.search(r"1 utterance · \d{4}-\d\d-\d\d \d\d:\d\d", text)
    assert "vocoder griffin-lim" in text
    assert "without stoi: not installed (pip install pystoi)" in text


def test_systems_come_before_references(tmp_path):
    items = [item_of(tmp_path, "a", ("voice", "copy"))]
    scored = {"voice": [scored_of("a", 5.0)], "copy": [scored_of("a", 2.0)]}
    write_page(tmp_path / "r.html", evaluation_of(items, scored, ("copy",)), backend="sequential")
    head = re.search(r'<th scope="col">Score</th>.*?</thead>', _text(tmp_path / "r.html"), re.S)
    assert re.findall(r"</i>(\w+)</span>", head[0]) == ["voice", "recording", "copy"]


def test_a_score_that_one_voice_alone_has_has_no_picture_of_its_interval(tmp_path):
    page_of(tmp_path / "r.html", [item_of(tmp_path, "a")])
    rows = re.findall(r'<th scope="row">(\w+).*?</tr>', _text(tmp_path / "r.html"), re.S)
    charts = re.findall(r'<td class="chart">(<svg)?', _text(tmp_path / "r.html"))
    # of the word error there is one of the recordings, too
    assert [row for row, svg in zip(rows, charts, strict=False) if svg] == ["wer"]


def _text(path):
    return path.read_text(encoding="utf-8")
