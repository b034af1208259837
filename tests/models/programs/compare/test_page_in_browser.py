"""The page of a listening test in Chromium: run by `make test-page`, where there is one."""

import pytest

from models.programs.compare.listening_test import make_test, read_answers
from tests.models.evaluation.report.browser import IN_BROWSER
from tests.models.evaluation.report.test_page_in_browser import wait_for
from tests.models.programs.compare.test_listening_test import systems

pytestmark = IN_BROWSER


def press(browser, key):
    browser.run(f"void document.dispatchEvent(new KeyboardEvent('keydown', {{key: {key!r}}}))")


def start(browser, page, listener):
    browser.open(page)
    browser.run(f"form = document.getElementById('start'); form.listener.value = {listener!r}")
    browser.run("form.requestSubmit()")


def answer(browser, key, sides):
    for n, side in enumerate(sides, 1):
        press(browser, side)
        wait_for(browser, f"heard.size === {n}")
    press(browser, key)


@pytest.mark.parametrize(("kind", "sides"), [("preference", "ab"), ("opinion", "a")])
def test_a_listener_answers_by_keyboard_goes_on_later_and_downloads(browser, tmp_path, kind, sides):
    key = make_test(systems(tmp_path, 0.1, 0.2, n=2), tmp_path / "out", kind)
    page, n_trials = tmp_path / "out" / "page" / "index.html", len(key.trials)
    start(browser, page, 'ann, "a"')
    press(browser, "1")  # not before both were heard
    assert browser.run("place") == 0
    assert sorted(browser.run("order")) == list(range(1, n_trials + 1))
    answer(browser, "2", sides)
    press(browser, "Backspace")
    n_left = browser.run("order.length - place")
    start(browser, page, 'ann, "a"')  # another day
    assert browser.run("order.length - place") == n_left
    for _ in range(n_left):
        answer(browser, "1", sides)
    assert browser.run("document.getElementById('end').hidden") is False
    results = tmp_path / "results.csv"
    content = "fetch(document.getElementById('download').href).then((a) => a.text())"
    results.write_text(browser.run(content))
    answers = read_answers([results], key)
    assert len(answers) == n_trials
    assert {listener for listener, _ in answers} == {'ann, "a"'}
    assert browser.faults == []
