import base64
import io
import re
import struct

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image

from models.base.results import colour_limits
from models.evaluation.report import page as page_writer
from models.evaluation.report.page import write_flac, write_mel_picture, write_page, write_tracks
from modules.mel import MelSpectrogram
from tests.models.evaluation.report import evaluations
from tests.models.evaluation.report.evaluations import MEL, item_of, page_of, scored_of, tone
from utils.errors import InputError
from utils.parallel import ChunkResult

HOSTILE = "</script><b onclick=alert(1)>\u2028 & <!-- ü"


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
    message = r"holds thesis\.txt, which is not of a page: move it away"
    with pytest.raises(InputError, match=message):
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


def test_texts_ids_and_names_cannot_break_out(tmp_path):
    pages = []
    for name in ("harmless", HOSTILE):
        item = item_of(tmp_path, name, (name,), text=name)
        flags = {"words": name}
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
    assert utterance["flags"] == [[1, "words", HOSTILE]]
    html = (tmp_path / "report.html").read_text(encoding="utf-8").replace("<wbr>", "")
    assert "&lt;/script&gt;&lt;b onclick" in html


def test_a_page_loads_nothing_from_elsewhere_and_runs_its_own_script_alone(tmp_path):
    page = page_of(tmp_path / "report.html", [item_of(tmp_path, "a")])
    urls = [attrs[name] for _, attrs in page.elements for name in ("src", "href") if name in attrs]
    assert urls == []
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


def test_what_the_recogniser_heard_is_shown_by_voice(tmp_path):
    scored = {"voice": [scored_of("a", 5.0, heard="the hat")]}
    page = page_of(tmp_path / "report.html", [item_of(tmp_path, "a")], scored)
    assert page.json["data-0"]["heard"] == [[0, "the cat"], [1, "the hat"]]


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
    page = tmp_path / "r.html"
    write_page(page, evaluations.evaluation_of(items, scored, ("copy",)), backend="sequential")
    head = re.search(r'<th scope="col">Score</th>.*?</thead>', page.read_text("utf-8"), re.S)
    assert re.findall(r"</i>(\w+)</span>", head[0]) == ["recording", "voice", "copy"]


def test_the_pictures_of_an_utterance_have_the_same_colours(tmp_path):
    item = item_of(tmp_path, "a", wav=0.5 * tone(150))
    (recording, voice) = write_tracks("00000", [item], tmp_path, MEL)
    spectrogram = MelSpectrogram(MEL)
    sounds = [tone(140.0, 0.5), 0.5 * tone(150)]
    mels = [spectrogram(torch.from_numpy(wav)[None])[0].numpy() for wav in sounds]
    low, high = colour_limits(mels)
    for track, mel in zip((recording, voice), mels, strict=True):
        pixels = np.asarray(Image.open(tmp_path / track.picture)).astype(float)[::-1]
        expected = 63 * ((mel - low) / (high - low)).clip(0, 1)
        assert abs(pixels - expected).max() < 0.6  # rounding, and 16 bits of the file


def test_a_picture_shows_each_band_and_frame_as_a_pixel_with_the_lowest_band_below(tmp_path):
    mel = np.array([[0.0, 1.0, 2.0], [2.0, 9.0, -9.0]])  # (M, T)
    write_mel_picture(tmp_path / "mel.png", mel, low=0.0, high=2.0)
    picture = Image.open(tmp_path / "mel.png")  # another decoder
    assert picture.size == (3, 2)
    indices = np.asarray(picture)
    assert indices.tolist() == [[63, 63, 0], [0, 32, 63]]
    colours = np.asarray(picture.convert("RGB"))
    assert colours[1, 0].tolist() == [0x00, 0x00, 0x04]
    assert colours[1, 2].tolist() == [0xFC, 0xFD, 0xBF]


def test_brightness_grows_with_the_level(tmp_path):
    write_mel_picture(tmp_path / "mel.png", np.arange(64.0)[None], low=0.0, high=63.0)
    content = io.BytesIO((tmp_path / "mel.png").read_bytes())
    red, green, blue = np.asarray(Image.open(content).convert("RGB"), dtype=float)[0].T
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    assert (np.diff(luminance) > 0).all()


def blocks_of(content):
    """Kind and content of each block of metadata, and where the sound begins."""
    inputs, blocks = 4, []
    while True:
        kind, length = content[inputs], int.from_bytes(content[inputs + 1 : inputs + 4], "big")
        blocks.append((kind & 0x7F, content[inputs + 4 : inputs + 4 + length]))
        inputs += 4 + length
        if kind & 0x80:
            return blocks, inputs


@pytest.mark.parametrize("sound", [tone(150, 1.0, 22050), np.array([2.0, -2.0, 0.5])])
def test_a_sound_comes_back_as_it_was_within_full_scale(tmp_path, sound):
    write_flac(tmp_path / "a.flac", sound, 22050)
    wav, sample_rate = soundfile.read(tmp_path / "a.flac")
    assert sample_rate == 22050
    assert wav == pytest.approx(sound.clip(-1, 1), abs=1.01 / 32768)


def test_it_says_that_one_can_seek_to_its_start(tmp_path):
    write_flac(tmp_path / "a.flac", tone(150, 1.0, 22050), 22050)
    content = (tmp_path / "a.flac").read_bytes()
    blocks, start = blocks_of(content)
    assert [kind for kind, _ in blocks] == [0, 3, 4]  # description, places to seek to, comment
    sample, offset, length = struct.unpack(">QQH", blocks[1][1])
    assert (sample, offset) == (0, 0)
    assert length == struct.unpack(">H", blocks[0][1][:2])[0]
    assert content[start : start + 2] == b"\xff\xf8"  # a frame
