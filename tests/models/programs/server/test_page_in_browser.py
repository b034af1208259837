"""The page of the server in Chromium: run by `make test-page`, where there is one."""

import base64
import io

import pytest
import soundfile
from praatio.textgrid import openTextgrid

from models.programs.server.requests import Limits
from models.synthesizer.synthesizer import Synthesizer
from processors.durations.subtitles import subtitles as as_subtitles
from tests.models.evaluation.report.browser import Browser, find_browser
from tests.models.evaluation.report.test_page_in_browser import wait_for
from tests.models.programs.server.servers import running

pytestmark = [
    pytest.mark.page,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium or Chrome is installed"),
]
TEXT = "It was so. Was it? Yes, in 1813, my dear."
IDLE = "document.querySelector('audio').hidden === false"
LIT = "document.querySelectorAll('.spoken').length"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def open_page(browser, url, **options):
    browser.open(url, **options)
    wait_for(browser, "form.voice.options.length === 7")


def speak(browser, text=TEXT):
    browser.run(f"form.text.value = {text!r}; form.requestSubmit()")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_words_light_up_one_by_one_while_they_are_spoken(browser, server, voice, width, scheme):
    open_page(browser, server.url, width=width, scheme=scheme)
    assert browser.run("form.voice.options[0].textContent") == "tiny (en-us)"
    browser.run(
        "lit = []; new MutationObserver((changes) => changes.forEach(({target}) => "
        "target.className === 'spoken' && lit.push(target.textContent)))"
        ".observe(words, {subtree: true, attributes: true})"
    )
    speak(browser)
    wait_for(browser, LIT)
    assert browser.run("document.documentElement.scrollWidth") == width
    wait_for(browser, IDLE)
    words = [word.text for word in voice(TEXT).words]
    assert browser.run("[...words.children].map((word) => word.textContent)") == words
    lit = browser.run("lit")
    assert len(lit) > len(words) / 2  # some are shorter than a picture
    rest = iter(words)
    assert all(word in rest for word in lit)  # in their order
    assert browser.faults == []


def test_speech_can_be_downloaded_and_heard_again_from_a_word_on(browser, server, voice, tmp_path):
    open_page(browser, server.url)
    browser.run("form.speed.value = 2; form.speed.dispatchEvent(new Event('input', {bubbles: 1}))")
    assert browser.run("document.querySelector('output').value") == "2.00"
    speak(browser)
    wait_for(browser, IDLE)
    data = browser.run(
        "fetch(download.href).then((answer) => answer.arrayBuffer()).then((buffer) => "
        "btoa(String.fromCharCode(...new Uint8Array(buffer))))"
    )
    wav, rate = soundfile.read(io.BytesIO(base64.b64decode(data)))
    speech = voice(TEXT, duration_control=0.5)
    assert rate == 24000
    assert len(wav) / rate == pytest.approx(speech.seconds, abs=0.01)
    shown = browser.run("fetch(subtitles.href).then((answer) => answer.text())")
    assert shown == as_subtitles(speech.sentences, speech.words, "srt")
    file = tmp_path / "speech.TextGrid"
    file.write_text(browser.run("fetch(textgrid.href).then((answer) => answer.text())"))
    tier = openTextgrid(str(file), includeEmptyIntervals=True).getTier("words")
    assert [entry.label for entry in tier if entry.label] == [word.text for word in speech.words]
    starts = [entry.start for entry in tier if entry.label]
    assert starts == pytest.approx([word.start_s for word in speech.words], abs=0.01)
    assert tier.maxTimestamp == pytest.approx(speech.seconds, abs=0.01)
    browser.run("words.children[3].click()")
    wait_for(browser, "words.children[3].className === 'spoken' || player.ended")
    assert browser.run("player.currentTime") >= speech.words[3].start_s - 0.01
    assert browser.faults == []


def test_a_speaker_can_be_chosen_and_a_voice_that_needs_one_is_no_choice(browser, server, folders):
    open_page(browser, server.url)
    shown = browser.run("[...form.voice.options].map((option) => option.textContent)")
    assert shown[:3] == ["tiny (en-us)", "three/anna (en-us)", "three/bert (en-gb)"]
    assert shown[3:] == [f"{id} (en-gb)" for id in ("three/carl", "two", "two/carl", "two/bert")]
    browser.run("form.voice.value = 'two/carl'")
    speak(browser, "Yes, it was.")
    wait_for(browser, IDLE)
    expected = Synthesizer(folders["two"])("Yes, it was.", speaker="carl").seconds
    assert browser.run("player.duration") == pytest.approx(expected, abs=0.01)


def test_errors_are_shown_and_a_second_text_replaces_the_first(browser, server):
    open_page(browser, server.url)
    speak(browser, "...")
    wait_for(browser, "document.querySelector('.error')")
    assert "no word" in browser.run("document.getElementById('status').textContent")
    speak(browser, TEXT)
    wait_for(browser, "words.children.length")
    speak(browser, "Yes.")
    wait_for(browser, "words.textContent.trim() === 'Yes'")
    wait_for(browser, IDLE)


def test_a_server_with_a_token_asks_for_it(browser, folders):
    with running(folders, Limits(token="secret")) as guarded:
        browser.open(guarded.url)
        wait_for(browser, "!document.getElementById('token').hidden")
        browser.run("form.token.value = 'secret'")
        browser.run("form.token.dispatchEvent(new Event('change', {bubbles: true}))")
        wait_for(browser, "form.voice.options.length === 7")
        assert browser.run("form.voice.options.length") == 7
