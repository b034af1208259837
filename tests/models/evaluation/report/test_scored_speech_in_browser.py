"""From faulty files to what Chromium shows of them: run by `make test-page`, where there is one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from models.base.registry import load_config
from models.evaluation.evaluate import evaluate
from models.evaluation.inputs.options import EvaluationOptions, inputs_of_config
from models.evaluation.inputs.systems import read_texts
from models.evaluation.report.page import write_page
from models.synthesizer.speech import faded_pieces
from processors.audio.files import write_wav
from tests.models.evaluation.report.browser import IN_BROWSER, LENGTHS

pytestmark = IN_BROWSER
EGS = Path(__file__).parents[4] / "egs"
CORPUS = EGS / "_demo" / "LJSpeech-mini"
IDS = ("LJ001-0002", "LJ001-0008", "LJ002-0020")
CHECKS = ("clipping", "silence")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Of three sentences: one with a second of silence before it, one that is clipped, one good."""
    folder = tmp_path_factory.mktemp("faulty") / "spoken"
    folder.mkdir()
    wavs = {id: recorded(id) for id in IDS}
    wavs["LJ001-0002"] = np.concatenate([np.zeros(22050, np.float32), wavs["LJ001-0002"]])
    wavs["LJ001-0008"] = np.clip(2 * wavs["LJ001-0008"] / np.abs(wavs["LJ001-0008"]).max(), -1, 1)
    for id, wav in wavs.items():
        write_wav(folder / f"{id}.wav", wav, 22050)
    config = EGS / "tts" / "FlowSpeech" / "exp_config_demo.json"
    inputs = inputs_of_config(load_config(config), [folder], CORPUS / "wavs")
    inputs = replace(inputs, texts=read_texts(CORPUS / "metadata.csv"))
    evaluation = evaluate(inputs, EvaluationOptions(("energy_rmse",), checks=CHECKS), 1)
    write_page(folder / "report.html", evaluation, n_jobs=1)
    return folder / "report.html"


def recorded(id: str) -> np.ndarray:
    wav, sample_rate = soundfile.read(CORPUS / "wavs" / f"{id}.flac", dtype="float32")
    return next(faded_pieces([wav], len(wav), sample_rate))


def notes(browser, id: str) -> str:
    """What the card of an utterance says."""
    return browser.run(
        f"(() => {{ const card = cards.find(({{ utterance }}) => utterance.id === '{id}');"
        " fill(card); return card.element.innerText; })()"
    )


def test_utterances_are_found_by_their_failure(browser, page):
    browser.open(page)
    choices = "[...controls.flag.options].map((option) => option.value)"
    assert browser.run(choices) == ["", "*", "clipping", "silence"]
    browser.run("controls.flag.value = 'silence'; controls.flag.dispatchEvent(new Event('input'))")
    assert browser.run("shown.map((card) => card.utterance.id)") == ["LJ001-0002"]
    assert browser.faults == []


def test_each_failure_is_described_in_numbers_and_compared_with_its_recording(browser, page):
    browser.open(page)
    assert "1.0 s of silence before the speech, recorded: 0.0 s" in notes(browser, "LJ001-0002")
    assert "flat tops at 1.00 of full scale, recorded: 0; the" in notes(browser, "LJ001-0008")
    assert "silence" not in notes(browser, "LJ002-0020")
    assert browser.faults == []


def test_the_real_speech_is_drawn_and_decoded(browser, page):
    browser.open(page)
    curves = browser.run("cards.forEach(fill), document.querySelectorAll('.curve[d*=L]').length")
    lengths = browser.run(LENGTHS)
    assert curves == 6  # of three recordings and what was spoken
    files = [*page.parent.glob("*.wav"), *(CORPUS / "wavs" / f"{id}.flac" for id in IDS)]
    durations = [soundfile.info(file).duration for file in files]
    assert sorted(lengths) == pytest.approx(sorted(durations), abs=0.01)
