"""Recall and errors of `arion corpus` on clips that are joined to long recordings.

    OMP_NUM_THREADS=1 python -m tools.benchmarks.long_recordings CORPUS... [--clips 1000] [--seed 0]
        [--work FOLDER]

Each CORPUS, in the layout of LJ Speech, becomes a recording: its clips with pauses, and between one
in ten music or noise from -50 to -25 dB. Its text lacks 5 % of the clips' texts, has 3 % twice and
2 % in other places. The truth is the alignment of each clip by itself, with its own text, by the
aligner `hmm`. A clip of the new corpus has a wrong text if it is not that of the words whose middle
it contains. A clip of the old one is found if all its words are in clips with right texts; those
without a text, or with one in another place, do not count.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import soundfile

from config.preprocess import CorpusConfig, PreprocessConfig
from config.text import text_config
from models.programs.corpus.texts import read_source
from models.programs.corpus.writing import CorpusWriter, list_recordings
from preprocessors.corpora import read_corpus
from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError, find_aligner, make_aligner
from processors.audio.files import read_audio
from processors.metrics.recognition.labelled_speech import words_of
from processors.text.frontend import TextFrontend
from utils.files import write_text
from utils.logging import setup_logging

_DROPPED, _TWICE, _MOVED = 0.05, 0.03, 0.02  # shares of the texts
_NOISY = 0.05  # of the pauses hold noise, and as many music
_CONFIG = PreprocessConfig(aligner="hmm", backend="sequential")


class TrueClip(NamedTuple):
    """A clip in the long recording."""

    text: str
    kind: str  # "", or what happened to its text
    words: list[tuple[str, float, float]]  # with start and end in seconds; empty where unknown
    start_s: float
    end_s: float


def main() -> None:
    """Prints the figures of each corpus."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", type=Path, nargs="+")
    parser.add_argument("--clips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="folder that keeps the files")
    arguments = parser.parse_args()
    setup_logging()
    for corpus in arguments.corpora:
        with TemporaryDirectory() as name:
            folder = (arguments.work or Path(name)) / corpus.name
            folder.mkdir(parents=True, exist_ok=True)
            _measure(corpus, folder, arguments.clips, arguments.seed)


def _measure(corpus: Path, folder: Path, n_clips: int, seed: int) -> None:
    listing = read_corpus(corpus.name, corpus, CorpusConfig(format="ljspeech"))
    record = folder / "truth.json"
    if not record.exists():
        truth = _join(listing.utterances[:n_clips], folder, random.Random(seed))
        write_text(record, json.dumps(truth))
    truth = [TrueClip(*row) for row in json.loads(record.read_text())]
    start = time.process_time()
    frontend = TextFrontend(text_config("en-us"), "en-us", "skip")
    source = read_source(folder / "text.txt", frontend)
    recordings = list_recordings(folder / "recording.wav", folder / "corpus")
    writer = CorpusWriter(folder / "corpus", "en-us", {"recording": source}, None, 1, "sequential")
    writer.write(recordings, {})
    seconds = time.process_time() - start
    minutes = soundfile.info(folder / "recording.wav").duration / 60
    _print(f"{corpus.name}: {minutes:.1f} min of {len(truth)} clips in {seconds:.0f} CPU s")
    for line in _figures(truth, folder / "corpus"):
        _print(f"  {line}")


def _join(utterances: list[Utterance], folder: Path, chance: random.Random) -> list[TrueClip]:
    """Writes the recording and its text; returns the truth."""
    plan = find_aligner(_CONFIG).plan_training
    if plan is not None:
        plan(_CONFIG, utterances, folder).carry_out(1)
    align = make_aligner(_CONFIG, Path(), folder)
    frontend = TextFrontend(_CONFIG.text, "en-us")
    kinds = [""] * len(utterances)
    shares = {"dropped": _DROPPED, "twice": _TWICE, "moved": _MOVED}
    names = [name for name, share in shares.items() for _ in range(round(share * len(kinds)))]
    for place, name in zip(chance.sample(range(len(kinds)), len(names)), names, strict=True):
        kinds[place] = name
    truth, start_s = list[TrueClip](), 0.0
    rate = _CONFIG.sample_rate
    with soundfile.SoundFile(folder / "recording.wav", "w", rate, 1) as file:
        for utterance, kind in zip(utterances, kinds, strict=True):
            wav = read_audio(utterance.audio, _CONFIG).wav
            try:
                alignment = align(utterance, wav, frontend(utterance.text))
                edges = start_s + alignment.boundaries_s
                words = [(w.text, edges[w.start], edges[w.end]) for w in alignment.words]
            except AlignmentError:
                words = []
            end_s = start_s + len(wav) / rate
            truth.append(TrueClip(utterance.text, kind, words, start_s, end_s))
            pause = _pause(chance, rate)
            file.write(np.concatenate([wav, pause]))
            start_s = end_s + len(pause) / rate
    texts = [t.text for t in truth if t.kind in ("", "twice") for _ in range(1 + (t.kind != ""))]
    for clip in truth:
        if clip.kind == "moved":
            texts.insert(chance.randrange(len(texts)), clip.text)
    paragraphs = (" ".join(texts[n : n + 6]) for n in range(0, len(texts), 6))
    write_text(folder / "text.txt", "\n\n".join(paragraphs))
    return truth


def _pause(chance: random.Random, rate: int) -> np.ndarray:
    """Returns quiet, noise, or chords of decaying tones, (S,)."""
    kind, noise = chance.random(), np.random.default_rng(chance.randrange(2**32))
    if kind < _NOISY:
        level = 10 ** (chance.uniform(-50, -25) / 20)
        return level * noise.standard_normal(round(chance.uniform(1, 4) * rate))
    if kind < 2 * _NOISY:
        t = np.arange(round(chance.uniform(2, 6) * rate)) / rate
        tones = [2 ** (chance.randrange(24) / 12) * 110 for _ in range(3)]
        return 0.05 * sum(np.sin(2 * np.pi * tone * t) for tone in tones) * np.exp(-3 * (t % 0.5))
    return 0.0003 * noise.standard_normal(round(chance.uniform(0.1, 0.8) * rate))


def _figures(truth: list[TrueClip], corpus: Path) -> Iterator[str]:
    """Yields recall, wrong texts and distances of boundaries."""
    rows = [json.loads(line) for line in (corpus / "clips.jsonl").read_text().splitlines()]
    words = sorted((s, e, w, n) for n, t in enumerate(truth) for w, s, e in t.words)
    found, wrong, distances = set[tuple[float, float]](), list[str](), list[float]()
    for row in rows:
        inside = [w for w in words if row["start_s"] <= (w[0] + w[1]) / 2 <= row["end_s"]]
        overlapping = [t for t in truth if t.end_s > row["start_s"] and t.start_s < row["end_s"]]
        if not all(t.words for t in overlapping):
            continue  # of an unknown truth
        spoken = " ".join(w for _, _, w, _ in inside)
        if words_of(row["text"], "en-us") != words_of(spoken, "en-us"):
            wrong.append(f"{row['start_s']:.2f} s: {row['text']!r}, spoken: {spoken!r}")
            continue
        found |= {w[:2] for w in inside}
        distances += [row["start_s"] - inside[0][0], row["end_s"] - inside[-1][1]]
    wanted = [t for t in truth if t.kind in ("", "twice") and t.words]
    n_found = sum(all((s, e) in found for _, s, e in t.words) for t in wanted)
    wanted_words = {(s, e) for t in wanted for _, s, e in t.words}
    share = 100 * len(found & wanted_words) / len(wanted_words)
    percent = 100 * n_found / len(wanted)
    yield f"found: {n_found} of {len(wanted)} ({percent:.1f} %); {share:.1f} % of words"
    yield f"wrong texts: {len(wrong)} of {len(rows)} ({100 * len(wrong) / len(rows):.2f} %)"
    far = np.abs(distances)
    near = ", ".join(
        f"{100 * np.mean(far <= s):.1f} % within {1000 * s:.0f} ms" for s in (0.02, 0.05, 0.1)
    )
    yield f"boundaries: {near}; 95th percentile {1000 * np.percentile(far, 95):.0f} ms"
    lengths = [row["end_s"] - row["start_s"] for row in rows]
    yield f"clips: {np.sum(lengths) / 60:.1f} min, {np.percentile(lengths, [5, 50, 95]).round(1)} s"
    yield from wrong


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
