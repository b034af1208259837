"""The page in Chromium: run by `make test-page`, where there is one."""

import numpy as np
import pytest

from models.evaluation.report import page as page_writer
from models.evaluation.report.page import write_page
from processors.metrics.records import MetricValue
from processors.metrics.utterance_scorer import ScoreColumn, UtteranceScores
from tests.models.evaluation.report import evaluations
from tests.models.evaluation.report.browser import IN_BROWSER, LENGTHS
from tests.models.evaluation.report.evaluations import evaluation_of, item_of, scored_of, tone

pytestmark = IN_BROWSER
IDS = ("first", "second", "third", "silent", "</script><b>")
MCD = {"first": 5.0, "second": 7.0, "third": 6.0, "silent": 4.0, "</script><b>": 3.0}
TITLES = "[...document.querySelectorAll('h3')].map((title) => title.textContent)"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Five utterances, with sounds of their own in the page."""
    return page_in(tmp_path_factory.mktemp("page"))


def page_in(folder):
    systems = ("voice", "other", "copy")
    items = [
        item_of(folder, "first", systems),
        item_of(folder, "second", systems, recorded=False, text="Words to find."),
        item_of(folder, "third", systems, phones=False),
        item_of(folder, "silent", systems, wav=np.zeros(4000)),
        item_of(folder, IDS[4], systems, text=IDS[4], wav=tone(200, 1.0, 44100), sample_rate=44100),
    ]
    flag = {"silence": "0.4 s of silence at 0.1 s"}
    scored = {
        system: [
            scored_of(id, mcd + n, flags=flag if (id, system) == ("third", "voice") else {})
            for id, mcd in MCD.items()
        ]
        for n, system in enumerate(systems)
    }
    path = folder / "report.html"
    write_page(path, evaluation_of(items, scored, references=("copy",)), backend="sequential")
    return path


def choose(browser, name, value):
    browser.run(
        f"controls.{name}.value = {value!r}; controls.{name}.dispatchEvent(new Event('input'))"
    )


def wait_for(browser, condition):
    """Until it holds; a test that waits in vain fails."""
    browser.run(
        "new Promise((done, fail) => { const start = Date.now(); const look = () => "
        f"({condition}) ? done() : Date.now() - start > 20000 ? fail(new Error('never')) : "
        "setTimeout(look, 50); look(); })"
    )


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_every_utterance_is_drawn_without_a_fault(browser, page, width, scheme):
    browser.open(page, width=width, scheme=scheme)
    assert browser.run("document.documentElement.scrollWidth") == width
    n_tracks = n_curves = 0
    for n in range(len(IDS)):
        browser.run(f"shown[{n}].element.scrollIntoView()")
        wait_for(browser, f"shown[{n}].filled")
        wait_for(browser, f"shown[{n}].tracks.every((track) => track.view.firstChild.naturalWidth)")
        n_tracks += browser.run(f"shown[{n}].element.querySelectorAll('.track').length")
        n_curves += browser.run(f"shown[{n}].element.querySelectorAll('.curve[d*=L]').length")
    assert n_tracks == 5 * 4 - 1  # one has no recording
    assert n_curves == n_tracks - 3  # three sounds are silent
    assert browser.faults == []


def test_three_systems_fit_into_a_window_of_1280_pixels(browser, tmp_path, monkeypatch):
    names = [f"{part}_{what}" for part in ("energy", "f0", "duration") for what in "abcde"]
    columns = tuple(ScoreColumn(name, "cents", "lower") for name in names)
    monkeypatch.setattr(evaluations, "COLUMNS", columns)
    systems = ("voice_of_textgrids", "voice_of_pocketsphinx", "voice_of_hmm", "natural", "copy")
    items = [item_of(tmp_path, id, systems) for id in IDS]
    scored = {
        system: [
            UtteranceScores(
                id, 0.4, {name: MetricValue(-1000.0 - n * k) for n, name in enumerate(names)}
            )
            for k, id in enumerate(IDS)
        ]
        for system in systems
    }
    evaluation = evaluation_of(items, scored, references=systems[3:])
    write_page(tmp_path / "report.html", evaluation, backend="sequential")
    browser.open(tmp_path / "report.html", width=1280)
    wait_for(browser, "shown[0].filled")
    widths = browser.run(
        "[...document.querySelectorAll('.scroll')].map((box) => [box.scrollWidth, box.clientWidth])"
    )
    assert len(widths) >= 3  # scores, differences, those of an utterance
    assert [pair for pair in widths if pair[0] > pair[1]] == []


def test_every_sound_can_be_decoded(browser, page):
    browser.open(page)
    lengths = browser.run(f"cards.forEach(fill); {LENGTHS}")
    assert len(lengths) == 19
    assert min(lengths) == pytest.approx(0.4, abs=0.01)
    assert max(lengths) == pytest.approx(1.0, abs=0.01)


def test_the_worst_come_first_by_any_score_of_any_voice(browser, page):
    browser.open(page)
    assert browser.run(TITLES) == ["second", "third", "first", "silent", IDS[4]]
    choose(browser, "order", "best")
    assert browser.run(TITLES) == [IDS[4], "silent", "first", "third", "second"]
    choose(browser, "order", "worst")
    choose(browser, "sort", "1")  # pesq, which is better when higher
    assert browser.run(TITLES) == ["second", "third", "first", "silent", IDS[4]]
    choose(browser, "sort", "flags")
    assert browser.run(TITLES)[0] == "third"
    choose(browser, "sort", "id")
    assert browser.run(TITLES) == list(IDS)
    assert browser.faults == []


def test_utterances_are_found_by_text_id_and_flag(browser, page):
    browser.open(page)
    choose(browser, "search", "words TO")
    assert browser.run(TITLES) == ["second"]
    choose(browser, "search", "SIL")
    assert browser.run(TITLES) == ["silent"]
    choose(browser, "search", "")
    choose(browser, "flag", "silence")
    assert browser.run(TITLES) == ["third"]
    assert browser.run("document.getElementById('count').textContent") == "1 of 5"
    wait_for(browser, "shown[0].filled")
    assert "0.4 s of silence at 0.1 s" in browser.run("document.body.innerText")
    choose(browser, "search", "nowhere")
    assert browser.run("document.getElementById('nothing').hidden") is False


def test_buttons_play_one_voice_at_a_time(browser, page):
    browser.open(page)
    wait_for(browser, "shown[0].filled")
    browser.run("shown[0].tracks[1].button.click()")
    wait_for(browser, "player.audio?.currentTime > 0")
    browser.run("shown[0].tracks[0].button.click()")
    wait_for(browser, "player.k === 0 && player.audio.currentTime > 0")
    assert browser.run("shown[0].tracks[1].audio.paused")
    wait_for(browser, "player.audio.ended")
    assert browser.run("document.querySelectorAll('.play.playing').length") == 0
    assert browser.faults == []


def test_a_click_on_a_mel_plays_from_there_with_a_cursor(browser, page):
    browser.open(page)
    wait_for(browser, "shown[0].filled")
    browser.run(
        "(() => { const { view } = shown[0].tracks[1]; const box = view.getBoundingClientRect();"
        " view.dispatchEvent(new MouseEvent('click',"
        " { bubbles: true, clientX: box.left + 0.3 * shown[0].scale })); })()"
    )
    assert browser.run("player.k") == 1
    wait_for(browser, "player.audio.ended")
    assert browser.run("player.audio.currentTime") >= 0.3
    inputs = browser.run("shown[0].tracks[1].cursor.getBoundingClientRect().left")
    start = browser.run("shown[0].tracks[1].view.getBoundingClientRect().left")
    assert (inputs - start) / browser.run("shown[0].scale") == pytest.approx(0.4, abs=0.05)


def test_sounds_and_pictures_next_to_a_large_page_are_found(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(page_writer, "EMBEDDED_BYTES", 1000)
    browser.open(page_in(tmp_path))
    wait_for(browser, "shown[0].filled && shown[0].tracks[0].view.firstChild.naturalWidth")
    browser.run("shown[0].tracks[0].button.click()")
    wait_for(browser, "player.audio?.currentTime > 0")
    assert browser.run("document.querySelector('audio').src").endswith(".flac")
    assert browser.faults == []


def test_utterances_far_from_the_window_are_not_drawn_yet(browser, tmp_path):
    items = [item_of(tmp_path, f"id-{n:02d}") for n in range(30)]
    scored = {"voice": [scored_of(item.id, 5.0) for item in items]}
    write_page(tmp_path / "report.html", evaluation_of(items, scored), backend="sequential")
    browser.open(tmp_path / "report.html", height=800)
    wait_for(browser, "shown[0].filled")
    assert browser.run("cards.filter((card) => card.filled).length") < 12
    browser.run("shown[29].element.scrollIntoView()")
    wait_for(browser, "shown[29].filled")
    assert browser.faults == []
