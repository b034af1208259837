"""Alignments of synthesised speech, in the formats of other programs."""

import json
from dataclasses import replace

import numpy as np
import parselmouth
import pytest

from models.synthesizer.runs.alignments import export_speech
from models.synthesizer.runs.metadata import ResultFolder, TextLine
from models.synthesizer.runs.text_synthesis import Settings, TextItem, line_of
from models.synthesizer.speech import Part, join
from models.synthesizer.text.text_files import InputText
from processors.durations import EXPORT_FORMATS, SUBTITLES
from processors.durations.sources import durations_in
from processors.durations.subtitles import sentences_of
from processors.records import Word
from utils.errors import InputError

HOP, RATE = 256, 22050
PHONES = ("<sil>", "HH", "AY1", "<,>", "Y", "UW1", "<!>")
DURATIONS = (2, 7, 11, 0, 5, 0, 3)
WORDS = (Word("hi", 1, 3), Word("you", 4, 6))


def spoken(folder, *ids):
    """A folder as stage 3 leaves it."""
    T = sum(DURATIONS)
    curve = np.zeros(T, dtype=np.float32)
    wav = np.zeros(T * HOP, dtype=np.float32)
    part = Part("hi, you!", PHONES, WORDS, np.array(DURATIONS), wav, np.zeros((8, T)), curve, curve)
    speech = join([part], text="Hi, you!", speaker="one", sample_rate=RATE, hop_length=HOP)
    speech = replace(speech, sentences=sentences_of(speech.text, speech.words))
    results = ResultFolder(folder, TextLine)
    folder.mkdir(exist_ok=True)
    for id in ids:
        (folder / f"{id}.wav").write_bytes(b"RIFF")
        item = TextItem(id, InputText("Hi, you!", speaker="one"))
        results.add(line_of(item, speech, Settings(), vocoder="none", work_s=0.1))
    results.save()
    return folder


def test_alignments_of_mode_single_are_found_in_its_folder(tmp_path):
    spoken(tmp_path / "single", "a")
    assert export_speech(tmp_path, "json", None) == 1
    assert (tmp_path / "single/a.json").is_file()


def test_textgrids_lie_beside_the_wavs_and_open_in_praat(tmp_path):
    assert export_speech(spoken(tmp_path, "a", "b"), "textgrid", None) == 2
    grid = parselmouth.read(str(tmp_path / "b.TextGrid"))
    call = parselmouth.praat.call
    assert call(grid, "Get end time") == pytest.approx(28 * HOP / RATE)
    words = [
        (call(grid, "Get label of interval", 1, n), call(grid, "Get start time of interval", 1, n))
        for n in range(1, call(grid, "Get number of intervals", 1) + 1)
    ]
    assert [label for label, _ in words if label] == ["hi", "you"]
    assert dict(words)["hi"] == pytest.approx(2 * HOP / RATE, abs=1e-4)


def test_durations_are_the_frames_that_were_spoken(tmp_path):
    export_speech(spoken(tmp_path / "spoken", "a"), "npy", tmp_path / "out")
    assert np.load(tmp_path / "out/a-durations.npy").tolist() == [*DURATIONS]
    assert (tmp_path / "out/phones.txt").read_text().splitlines() == [
        "# hop_size 256 sample_rate 22050",
        f"a|{' '.join(PHONES)}|0.0",
    ]


@pytest.mark.parametrize("format", sorted({*EXPORT_FORMATS} - {"npy", *SUBTITLES}))
def test_every_phone_and_its_frames_can_be_read_back(tmp_path, format):
    export_speech(spoken(tmp_path / "spoken", "a"), format, tmp_path / "out")
    (entry,) = durations_in(tmp_path / "out", format).entries
    grid = entry.read()
    assert tuple(phone.label for phone in grid.phones) == PHONES
    edges = [phone.start_s for phone in grid.phones] + [grid.phones[-1].end_s]
    assert np.diff(np.round(np.array(edges) * RATE / HOP)).tolist() == [*DURATIONS]
    assert [word.label for word in grid.words] == ["hi", "you"]


def test_subtitles_show_the_text_as_given(tmp_path):
    for format in SUBTITLES:
        export_speech(spoken(tmp_path / "spoken", "a"), format, tmp_path / "out")
    assert "00:00:00,023 --> 00:00:00,857\nHi, you!\n" in (tmp_path / "out/a.srt").read_text()
    assert "\nHi, <00:00:00.232>you!\n" in (tmp_path / "out/a.vtt").read_text()


def test_a_folder_where_nothing_was_spoken_is_named(tmp_path):
    with pytest.raises(InputError, match=r"metadata.jsonl lists no speech; run stage 3"):
        export_speech(tmp_path, "json", None)


FOREIGN = r"was not written by stage 3 \({}\); move it away and run stage 3 again, or"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"phones": [{"phone": "k"}]}, FOREIGN.format("a lacks 'start_s'")),
        (
            {"phones": [{"phone": "k", "start_s": None}]},
            FOREIGN.format("a: start_s is None, expected a number"),
        ),
        ({"phones": ["k"]}, FOREIGN.format("a: .*")),
        (
            {"sample_rate": "22050"},
            FOREIGN.format("a: sample_rate is '22050', expected a number"),
        ),
        ({"hop_length": None}, FOREIGN.format("a: hop_length is None, expected a number")),
    ],
)
def test_a_line_that_somebody_changed_is_named(tmp_path, changes, fault):
    path = spoken(tmp_path, "a") / "metadata.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes) + "\n")
    with pytest.raises(InputError, match=f"metadata.jsonl {fault}"):
        export_speech(tmp_path, "json", None)
