"""No alignment that covers only a part of its recording is accepted, in whatever format.

Every recording of the demo has the TextGrid of the Montreal Forced Aligner; what is left out of it
is a function of the format and the id.
"""

import json
import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from config.preprocess import PreprocessConfig
from processors.alignment.aligner import AlignmentError, find_aligner, make_aligner
from processors.alignment.textgrid import read_textgrid
from processors.alignment.timed import Grid
from processors.durations import FRAME_FORMATS, IMPORT_FORMATS
from processors.durations.importing import import_durations
from processors.durations.sources import FrameRate, durations_in
from processors.extraction.plan import list_corpus
from processors.records import SpokenText, TimedPhone
from processors.text.frontend import TextFrontend
from tests.processors.alignment.test_textgrid import long_form
from tests.processors.small_corpus import DEMO, config_of, texts
from utils.files import read_jsonl

RATE = FrameRate(256, 22050)
IDS = sorted(path.stem for path in (DEMO / "TextGrid").iterdir())


@cache
def whole(id: str) -> Grid:
    return read_textgrid(DEMO / f"TextGrid/{id}.TextGrid")


def part_of(grid: Grid, seed: str, *, inside: bool = True) -> Grid:
    """A grid without a quarter to a half of its phones, at an end or, if allowed, inside."""
    generator = random.Random(seed)
    N = len(grid.phones)
    n_gone = generator.randint(N // 4, N // 2)
    firsts = (0, N - n_gone, generator.randrange(N - n_gone)) if inside else (0, N - n_gone)
    first = generator.choice(firsts)
    start_s, end_s = grid.phones[first].start_s, grid.phones[first + n_gone - 1].end_s
    words = [word for word in grid.words if not start_s < sum(word[1:]) / 2 < end_s]
    if generator.random() < 0.5:  # aligners may lose phones and keep the words
        words = grid.words
    phones = grid.phones[:first] + grid.phones[first + n_gone :]
    return grid._replace(words=words, phones=phones)


@cache
def spoken(id: str) -> SpokenText:
    return TextFrontend(PreprocessConfig().text, "en-us")(texts()[id])


def frames_of(id: str, grid: Grid) -> np.ndarray:
    """Frames of the phones of the text, evenly over the span of a grid, and of pauses around it."""
    n_frames = soundfile.info(DEMO / f"wavs/{id}.flac").frames // RATE.hop_length
    frame_s = RATE.hop_length / RATE.sample_rate
    start, end = (round(s / frame_s) for s in (grid.phones[0].start_s, grid.phones[-1].end_s))
    names = spoken(id).phones
    is_phone = np.array([name[0] != "<" for name in names])
    edges = start + (end - start) * np.cumsum(is_phone) / is_phone.sum()  # (N,)
    ends = [*np.minimum(np.round(edges[:-1]), n_frames), n_frames]
    return np.diff(ends, prepend=0).astype(np.int64)


def write(folder: Path, format: str, id: str, grid: Grid) -> None:
    tiers = grid.words, grid.phones
    words, phones = ([(a, b, label) for label, a, b in tier] for tier in tiers)
    if format == "textgrid":
        content = long_form({"words": words, "phones": phones}, grid.duration_s)
        (folder / f"{id}.TextGrid").write_text(content)
    elif format == "json":
        rows = [{"phone": name, "start_s": a, "end_s": b} for a, b, name in phones]
        (folder / f"{id}.json").write_text(json.dumps({"phones": rows}))
    elif format == "npy":
        np.save(folder / f"{id}.npy", frames_of(id, grid))
    else:
        torch.save(torch.from_numpy(frames_of(id, grid)), folder / f"{id}.{format}")


def imported(tmp_path, format, grids):
    """Reasons for rejection by id, after an import of these grids in a format."""
    source = tmp_path / "source"
    source.mkdir(parents=True)
    for id, grid in grids.items():
        write(source, format, id, grid)
    config = config_of(DEMO, tmp_path, aligner="imported", imported_dir=str(tmp_path / "out"))
    config = replace(config, preprocess=replace(config.preprocess, max_bad_ratio=1.0))
    import_durations(config, "LJSpeech", durations_in(source))
    return {row["id"]: row["reason"] for row in read_jsonl(tmp_path / "out/rejected.jsonl")}


@pytest.mark.parametrize("format", IMPORT_FORMATS)
def test_durations_of_a_part_of_the_speech_are_rejected_and_those_of_all_accepted(format, tmp_path):
    assert imported(tmp_path / "all", format, {id: whole(id) for id in IDS}) == {}
    inside = format not in FRAME_FORMATS  # counts have no place for a gap
    grids = {id: part_of(whole(id), format + id, inside=inside) for id in IDS}
    reasons = imported(tmp_path, format, grids)
    assert sorted(reasons) == IDS
    place = r"(from|between) [\d.]+ (to|and) [\d.]+ s"
    kinds = (f"no phones {place}", f"lacks .* {place}", f"word .* {place} has no phones")
    other_text = ("phones, the text", "its words are")  # half of it or more is missing
    for reason in reasons.values():
        assert any(re.search(kind, reason) for kind in (*kinds, *other_text)), reason


@pytest.mark.parametrize("scale", [0.6, 0.8, 1.2])
def test_times_in_another_unit_are_rejected(scale, tmp_path):
    def scaled(tier):
        return [TimedPhone(label, scale * a, scale * b) for label, a, b in tier]

    grids = {id: Grid(None, [], scaled(whole(id).phones)) for id in IDS}
    assert sorted(imported(tmp_path, "json", grids)) == IDS


def test_textgrids_of_a_part_of_the_speech_are_rejected_by_their_aligner(tmp_path):
    for id in IDS:
        write(tmp_path, "textgrid", id, part_of(whole(id), id))
    config = config_of(DEMO, tmp_path).preprocess
    align = make_aligner(replace(config, textgrid_dir=str(tmp_path)), DEMO)
    align_whole = make_aligner(config, DEMO)
    _, listing = list_corpus(config_of(DEMO, tmp_path), "LJSpeech")
    for utterance in listing.utterances:
        wav, _ = soundfile.read(utterance.audio, dtype="float32")
        assert align_whole(utterance, wav, spoken(utterance.id)).notices == ()
        partial = replace(config, textgrid_dir=str(tmp_path))
        path = find_aligner(config).files(partial, DEMO)(utterance)
        with pytest.raises(AlignmentError, match=path.name):
            align(utterance, wav, spoken(utterance.id))
