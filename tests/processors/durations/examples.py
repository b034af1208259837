"""Recordings in every format, and speech to export."""

import json
from pathlib import Path

import numpy as np
import torch

from processors.alignment.aligner import naming
from processors.alignment.timed import check_times
from processors.durations.sources import durations_in
from processors.durations.writing import AlignedSpeech
from processors.records import TimedPhone, TimedSentence, TimedWord

DEMO = Path(__file__).parents[3] / "egs/_demo/LJSpeech-mini"
PHONES = [(0.0, 0.2, "sil"), (0.2, 0.3, "HH"), (0.3, 0.4, "AY1"), (0.4, 0.6, "sp"), (0.6, 0.8, "Y")]
NAMES, EDGES = ("<sil>", "HH", "M", "<,>", "M", "<.>"), (0.1, 0.2, 0.3, 0.3, 0.3, 0.5, 0.6)
SPEECH = AlignedSpeech(
    id="u1",
    text='He said "hm".',
    seconds=1.0,
    phones=tuple(map(TimedPhone, NAMES, EDGES[:-1], EDGES[1:])),
    words=(TimedWord('"hm"', 0.2, 0.3), TimedWord("m m", 0.3, 0.5)),
    sentences=(TimedSentence('He said "hm".', 0.2, 0.5),),
    frames=np.array([10, 10, 0, 0, 20, 10]),
    hop_length=160,
    sample_rate=16000,
)


def textgrid(phones):
    rows = "".join(f'{start}\n{end}\n"{name}"\n' for start, end, name in phones)
    head = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n1\n<exists>\n1\n'
    return f'{head}"IntervalTier"\n"phones"\n0\n1\n{len(phones)}\n{rows}'


def json_of(phones):
    rows = [{"phone": name, "start_s": start, "end_s": end} for start, end, name in phones]
    return json.dumps({"id": "u1", "phones": rows})


TIMED = {"textgrid": ("u1.TextGrid", textgrid), "json": ("u1.json", json_of)}
COUNTED = {"npy": "u1.npy", "pt": "u1.pt"}
FILES = {format: name for format, (name, _) in TIMED.items()} | COUNTED


def write(folder, format, phones=PHONES):
    name, made = TIMED[format]
    (folder / name).write_text(made(phones), encoding="utf-8")


def write_counts(path, frames):
    if path.suffix == ".npy":
        np.save(path, np.array(frames))
    else:
        torch.save(torch.tensor(frames), path)


def read(folder, format, **options):
    (entry,) = durations_in(folder, format, **options).entries
    with naming(entry.path):
        found = entry.read()
        if not isinstance(found, np.ndarray):
            check_times(found)
    return found
