"""Word error of synthesised sentences beside that of the recordings of the same sentences.

The recogniser is pocketsphinx with the English model that its wheel carries. It is old and weak
(a fifth to a half of the words of clean recordings are misread), so only the difference between
synthesised and recorded audio says something: 0 means that the recogniser reads both alike.

    python -m tests.benchmarks.word_error ckpts/tts/demo/result --recordings egs/_demo/LJSpeech-mini
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from utils.cli import run
from utils.errors import InputError
from utils.files import read_jsonl, write_json
from utils.logging import get_logger, setup_logging

RECOGNISER_RATE = 16000  # Hz, of pocketsphinx's acoustic model
RECORDING_SUFFIXES = (".wav", ".flac")


class Score(NamedTuple):
    """Word error of one sentence."""

    id: str
    synthesized: float
    recorded: float
    heard: str  # what the recogniser read in the synthesised audio


def main() -> None:
    """Prints a line per sentence and the word error of all of them together."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", type=Path, help="folder with metadata.jsonl, as stage 3 wrote it")
    parser.add_argument("--recordings", type=Path, required=True, help="folder with <id>.wav|flac")
    parser.add_argument("--output", type=Path, help="write the figures here as JSON")
    arguments = parser.parse_args()
    setup_logging()
    entries = cast(list[dict[str, str]], read_jsonl(arguments.result / "metadata.jsonl"))
    spoken = [recognise(arguments.result / entry["file"]) for entry in entries]
    recorded = [recognise(find_recording(arguments.recordings, e["id"])) for e in entries]
    texts = [words_of(entry["normalized"]) for entry in entries]
    report([entry["id"] for entry in entries], texts, spoken, recorded, arguments.output)


def report(
    ids: Sequence[str],
    texts: Sequence[str],
    spoken: Sequence[str],
    recorded: Sequence[str],
    output: Path | None,
) -> None:
    """Logs the word error by sentence and over all words, and writes it to `output` if given."""
    from jiwer import wer

    log = get_logger(__name__)
    scores = [
        Score(id, wer(text, synthesized), wer(text, recording), synthesized)
        for id, text, synthesized, recording in zip(ids, texts, spoken, recorded, strict=True)
    ]
    for score in scores:
        log.info("%s  %.2f  recorded %.2f  %s", *score)
    total = {
        "sentences": len(texts),
        "words": sum(len(text.split()) for text in texts),
        "synthesized": wer(list(texts), list(spoken)),
        "recorded": wer(list(texts), list(recorded)),
    }
    log.info("word error over %(words)d words: synthesised %(synthesized).3f", total)
    log.info("word error over %(words)d words: recorded    %(recorded).3f", total)
    if output is not None:
        write_json(output, total | {"scores": [score._asdict() for score in scores]})


def words_of(text: str) -> str:
    """Lower-case words without punctuation, as the recogniser writes them."""
    return " ".join(re.findall(r"[a-z]+(?:'[a-z]+)*", text.lower().replace("’", "'")))


def find_recording(folder: Path, id: str) -> Path:
    """The recording of an utterance in `folder` or in its `wavs`.

    Raises:
        InputError: If there is none.
    """
    for parent in (folder, folder / "wavs"):
        for suffix in RECORDING_SUFFIXES:
            path = parent / f"{id}{suffix}"
            if path.is_file():
                return path
    raise InputError(f"{folder}: no recording {id}.wav or {id}.flac, there or in wavs/")


def recognise(path: Path) -> str:
    """The words that pocketsphinx reads in a sound file."""
    from pocketsphinx import Config, Decoder

    # A fresh decoder for each file: its noise statistics adapt to what it heard before.
    decoder = Decoder(Config(samprate=RECOGNISER_RATE, loglevel="FATAL"))
    decoder.start_utt()
    decoder.process_raw(read_pcm(path).tobytes(), full_utt=True)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    return words_of(hypothesis.hypstr) if hypothesis is not None else ""


def read_pcm(path: Path) -> np.ndarray:
    """The sound as 16-bit mono at the recogniser's rate, (S,), its peak at 0.9.

    The common level keeps a quiet recording and a loud one comparable.
    """
    import soundfile
    import soxr

    wav, sample_rate = soundfile.read(path, dtype="float32", always_2d=True)
    wav = soxr.resample(wav.mean(axis=1), sample_rate, RECOGNISER_RATE)  # (S,)
    peak = max(float(np.abs(wav).max()), 1e-6)
    return (wav * (0.9 * 32767 / peak)).astype(np.int16)


if __name__ == "__main__":
    run(main)
