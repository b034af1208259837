import base64
import io

import numpy as np
import pytest
import soundfile
from PIL import Image

from models.evaluation.report import page as page_writer
from tests.models.evaluation.report.evaluations import item_of, page_of, tone
from utils.errors import InputError
from utils.parallel import ChunkResult


def content_of(url):
    kind, _, encoded = url.partition(";base64,")
    return kind, io.BytesIO(base64.b64decode(encoded))


def test_a_small_page_is_one_file_that_holds_sounds_and_pictures(tmp_path):
    (tmp_path / "wavs").mkdir()
    page = page_of(tmp_path / "out" / "report.html", [item_of(tmp_path / "wavs", "a")])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.html"]
    recording, voice = page.json["data-0"]["tracks"]
    assert (recording["voice"], voice["voice"]) == (0, 1)
    kind, content = content_of(voice["audio"])
    assert kind == "data:audio/flac"
    samples, rate = soundfile.read(content)
    assert rate == 8000
    assert samples == pytest.approx(tone(150), abs=1e-4)
    kind, content = content_of(voice["picture"])
    assert kind == "data:image/png"
    assert Image.open(content).size == (3200 // 64, 20)  # frames and bands
    assert recording["seconds"] == 0.5
    assert voice["phones"] == [["HH", 0.0, 0.1], ["AH0", 0.1, 0.25], ["<.>", 0.25, 0.4]]
    assert np.median(voice["f0"]) == pytest.approx(150, abs=1)
    assert len(recording["f0"]) == 4000 // 64


def test_a_large_page_links_files_in_a_folder_that_are_named_by_number(tmp_path, monkeypatch):
    monkeypatch.setattr(page_writer, "EMBEDDED_BYTES", 1000)
    items = [item_of(tmp_path, id) for id in ("../a", "b c")]
    page = page_of(tmp_path / "my page.html", items)
    folder = tmp_path / "my page_files"
    names = [f"0000{i}-{n}.{suffix}" for i in (0, 1) for n in (0, 1) for suffix in ("flac", "png")]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert page.json["data-1"]["tracks"][1]["audio"] == "my%20page_files/00001-1.flac"
    assert soundfile.info(folder / "00001-1.flac").frames == 3200
    assert not list(tmp_path.glob(".*"))  # nothing temporary is left

    page = page_of(tmp_path / "my page.html", items[:1])  # again, of fewer
    assert len(list(folder.iterdir())) == 4
    monkeypatch.undo()
    page_of(tmp_path / "my page.html", items)
    assert not folder.exists()


def test_files_of_the_users_are_not_replaced(tmp_path):
    folder = tmp_path / "report_files"
    folder.mkdir()
    (folder / "thesis.txt").touch()
    with pytest.raises(
        InputError, match=r"holds thesis\.txt, which is not of a page: move it away"
    ):
        page_of(tmp_path / "report.html", [item_of(tmp_path, "a")])
    assert (folder / "thesis.txt").exists()


def test_utterances_that_lack_something_are_shown_as_far_as_they_go(tmp_path):
    items = [
        item_of(tmp_path, "alone", recorded=False),
        item_of(tmp_path, "unaligned", phones=False),
        item_of(tmp_path, "unwritten", text=""),
        item_of(tmp_path, "other rate", wav=tone(200, sample_rate=44100), sample_rate=44100),
        item_of(tmp_path, "long", wav=np.tile(tone(200, 1.0), 60)),
        item_of(tmp_path, "silent", wav=np.zeros(4000)),
        item_of(tmp_path, "click", wav=np.ones(3)),
    ]
    page = page_of(tmp_path / "report.html", items)
    shown = {
        utterance["id"]: page.json[f"data-{n}"]["tracks"]
        for n, utterance in enumerate(page.json["index"]["utterances"])
    }
    assert [track["voice"] for track in shown["alone"]] == [1]
    assert shown["unaligned"][1]["phones"] == []
    assert shown["other rate"][1]["seconds"] == 0.4
    assert np.median(shown["other rate"][1]["f0"]) == pytest.approx(200, abs=1)
    assert soundfile.info(content_of(shown["other rate"][1]["audio"])[1]).samplerate == 44100
    assert shown["long"][1]["picture_s"] == pytest.approx(60, abs=0.01)
    assert set(shown["silent"][1]["f0"]) == {0}
    assert shown["click"][1]["picture_s"] == pytest.approx(256 / 8000)


def test_sounds_that_crash_are_named(tmp_path, monkeypatch):
    def crash(work, chunks, n_jobs, backend):
        yield from (ChunkResult(key, [], tuple(items)) for key, items in chunks.items())

    monkeypatch.setattr(page_writer, "run_chunks", crash)
    with pytest.raises(InputError, match=r"^bad: its sounds crash the process that draws them"):
        page_of(tmp_path / "report.html", [item_of(tmp_path, "bad")])
    assert not (tmp_path / "report.html").exists()
