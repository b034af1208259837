import functools
import http.server
import json
import shutil
import threading
from typing import ClassVar

import numpy as np
import pytest

from models.programs.export.folder import export_voice, export_web, open_voice
from models.synthesizer.synthesizer import Synthesizer
from tests.models.evaluation.report.browser import Browser, find_browser
from tests.models.evaluation.report.test_page_in_browser import wait_for
from tests.models.programs.export.test_frontend import pages
from tests.models.programs.export.voices import SPEAKERS, TEXTS, make_flow_voice, runner_in
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.models.synthesizer.test_vocoders import make_vocoder
from utils.errors import InputError

pytestmark = [
    pytest.mark.page,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium or Chrome is installed"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
]
# Nothing comes from elsewhere: the browser refuses it, and reports it to the server.
POLICY = (
    "default-src 'self'; style-src 'unsafe-inline'; script-src 'self' 'unsafe-inline' 'unsafe-eval'"
    " 'wasm-unsafe-eval'; media-src blob:; connect-src 'self' blob: data:; img-src data:;"
    " report-uri /report"
)


class Handler(http.server.SimpleHTTPRequestHandler):
    """Static files, as of `python -m http.server`, with a policy."""

    faults: ClassVar[list[str]] = []

    def end_headers(self):
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def do_POST(self):
        self.faults.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.end_headers()

    def log_error(self, *parts):
        self.faults.append(str(parts))

    def log_message(self, *parts):
        pass


@pytest.fixture(scope="module")
def voice(tmp_path_factory):
    home = make_voice(tmp_path_factory.mktemp("voice") / "two", *SPEAKERS, default="bert")
    return open_voice(home, make_vocoder(home.parent / "vocoder"))


@pytest.fixture(scope="module")
def flow(voice, tmp_path_factory):
    home = make_flow_voice(tmp_path_factory.mktemp("flow") / "one")
    return open_voice(home, voice.vocoder.home)


@pytest.fixture(scope="module")
def url(voice, flow, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    try:
        export_web(voice, folder / "voice")
        export_web(flow, folder / "flow")
    except InputError as error:
        pytest.skip(str(error))
    handler = functools.partial(Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/voice/"
    server.shutdown()


@pytest.fixture(scope="module")
def browser(url, tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    browser.open(url)
    wait_for(browser, "form.voice.options.length")
    browser.run(
        "import('/voice/speak.js').then(async ({Voice}) => { other = await Voice.open(); })"
    )
    yield browser
    browser.close()


def test_the_page_speaks_without_a_network_while_words_light_up(browser):
    shown = browser.run("[...form.voice.options].map((option) => option.textContent)")
    assert shown == ["bert (en-us)", "anna (en-us)"]  # the default speaker is the first
    browser.run("form.text.value = 'It was so. Was it?'; form.requestSubmit()")
    wait_for(browser, "document.querySelectorAll('.spoken').length")
    wait_for(browser, "!player.hidden")
    assert browser.run("words.textContent.trim()") == "It was so Was it"
    assert browser.run("player.duration") > 0.3
    browser.run("form.text.value = '...'; form.requestSubmit()")
    wait_for(browser, "document.querySelector('.error')")
    assert "there is no word" in browser.run("document.querySelector('.error').textContent")
    assert browser.faults == []
    assert Handler.faults == []


def test_five_hundred_texts_have_the_phones_of_the_toolkit(browser, voice):
    texts = pages()
    assert len(texts) == 500
    found = browser.run(
        "(async () => { const rows = []; for (const text of "
        f"{json.dumps(texts)}) rows.push(await other.read(text, 'en-us')); return rows; }})()"
    )
    read = Synthesizer(voice.model.home, "griffin_lim", "cpu")._reader
    unknown = set()
    for text, rows in zip(texts, found, strict=True):
        spoken = read(text, "en-us")
        assert [[c["phones"] for c in row] for row in rows] == [
            [[*clause.phones] for clause in row] for row in spoken
        ], text
        unknown.update(word for row in spoken for c in row for word in c.out_of_vocabulary)
    assert len(unknown) > 100  # these went through the letter-to-sound network


def test_the_sound_is_that_of_the_runner_in_python(browser, voice, tmp_path):
    export_voice(voice, tmp_path / "python")
    expected = runner_in(tmp_path / "python").Voice(tmp_path / "python", threads=1)
    assert expected.facts["speaker"] == "bert"
    changes = {"speaker": "anna", "pace": 0.7, "pitch": 1.3, "energy": 0.8}
    for text, given in zip(TEXTS, [{}, changes] * 5, strict=True):
        wav = browser.run(f"other.speak({text!r}, {json.dumps(given)}).then((wav) => [...wav])")
        np.testing.assert_allclose(wav, expected(text, **given), rtol=0, atol=1e-3)


def test_the_noise_of_a_flow_is_that_of_the_runner_in_python(browser, flow, tmp_path):
    export_voice(flow, tmp_path / "python")
    expected = runner_in(tmp_path / "python").Voice(tmp_path / "python", threads=1)
    browser.run("import('/flow/speak.js').then(async ({Voice}) => { flow = await Voice.open(); })")
    for settings in ({}, {"seed": 2**40 + 1}, {"temperature": 1.2, "seed": 3}):
        code = f"flow.speak({TEXTS[1]!r}, {json.dumps(settings)}).then((wav) => [...wav])"
        wav = expected(TEXTS[1], **settings)
        np.testing.assert_allclose(browser.run(code), wav, rtol=0, atol=1e-3)
    for settings in ({"temperature": 2.1}, {"seed": -1}):
        code = f"flow.speak('No.', {json.dumps(settings)}).catch((error) => error.message)"
        assert "is not from 0 to 2" in browser.run(code)


def test_words_have_the_times_of_their_phones(browser, voice):
    text = "One sentence. Another one, and a third? Yes: three of them."
    speech = Synthesizer(voice.model.home, "griffin_lim", "cpu")(text, speaker="anna")
    found = browser.run(
        "(async () => { const found = []; for await (const { words } of "
        f"other.generate({text!r}, {{speaker: 'anna'}})) found.push(...words); return found; }})()"
    )
    assert [row["word"] for row in found] == [word.text for word in speech.words]
    times = [[row["start"], row["end"]] for row in found]
    np.testing.assert_allclose(times, [[w.start_s, w.end_s] for w in speech.words], atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"speaker": "carl"}, "speaker carl: expected one of anna, bert"),
        ({"speaker": "anna", "pitch": 11}, "the factor 11 on the pitch is not from 0.1 to 10"),
        ({"speaker": "anna", "temperature": 0}, "this voice has no control of temperature"),
    ],
)
def test_what_the_voice_cannot_do_is_refused(browser, settings, message):
    code = f"other.speak('No.', {json.dumps(settings)}).catch((error) => error.message)"
    assert browser.run(code) == message
