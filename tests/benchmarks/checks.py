"""How often checks flag good recordings, and how often they find faults put into them.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.checks FOLDER...

FOLDER holds recordings, wav or flac, and may hold a metadata.csv of lines `id|...|text`. Each is
judged as it is, with ends faded over 5 ms as those of a synthesizer, and with each fault put in;
"beside" means that the recording was given with it. Shares are in percent of the recordings.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import soundfile
import soxr

from models.synthesizer.speech import faded
from processors.audio.speech_level import FRAME_S, active_level, frame_levels, speech_activity
from processors.scoring.checks import check_names, run_checks
from processors.scoring.recognition import LabelledSpeech

Fault = Callable[[np.ndarray, int], np.ndarray]  # (S,) and Hz to another (S,)
NOT_OF_SOUND = {"durations", "understood", "words"}


def clipped(wav: np.ndarray, rate: int) -> np.ndarray:
    """The highest 3 dB cut off, and the rest made louder to fill full scale."""
    return np.clip(wav * (10 ** (3 / 20) / np.abs(wav).max()), -1, 1)


def clipped_quiet(wav: np.ndarray, rate: int) -> np.ndarray:
    """The highest 3 dB cut off, below full scale."""
    return clipped(wav, rate) * 0.7


def step_at_start(wav: np.ndarray, rate: int) -> np.ndarray:
    """Begins at 0.1 of full scale and falls to what it was within 10 ms."""
    n = round(0.01 * rate)
    return np.concatenate([wav[:n] + np.linspace(0.1, 0, n, dtype=wav.dtype), wav[n:]])


def step_at_end(wav: np.ndarray, rate: int) -> np.ndarray:
    """As at the start, the other way round."""
    return step_at_start(wav[::-1], rate)[::-1]


def click_in_pause(wav: np.ndarray, rate: int) -> np.ndarray:
    """One sample 0.1 too high where the sound is quietest, not at its ends."""
    levels = frame_levels(wav, rate)
    fifth = len(levels) // 5
    frame = fifth + int(levels[fifth : len(levels) - fifth].argmin())
    return _impulse(wav, round((frame + 0.5) * FRAME_S * rate))


def click_anywhere(wav: np.ndarray, rate: int) -> np.ndarray:
    """One sample 0.1 too high."""
    return _impulse(wav, int(np.random.default_rng(len(wav)).integers(len(wav))))


def _impulse(wav: np.ndarray, place: int) -> np.ndarray:
    wav = wav.copy()
    wav[place] += 0.1
    return wav


def offset(wav: np.ndarray, rate: int) -> np.ndarray:
    """An offset of 0.02."""
    return wav + np.float32(0.02)


def silence_inside(wav: np.ndarray, rate: int) -> np.ndarray:
    """1.5 s of silence in the middle."""
    middle = len(wav) // 2
    return np.insert(wav, middle, np.zeros(round(1.5 * rate), dtype=wav.dtype))


def silence_before(wav: np.ndarray, rate: int) -> np.ndarray:
    """1.0 s of silence before."""
    return np.concatenate([np.zeros(rate, dtype=wav.dtype), wav])


def quiet(wav: np.ndarray, rate: int) -> np.ndarray:
    """20 dB quieter."""
    return wav * np.float32(0.1)


def slow(wav: np.ndarray, rate: int) -> np.ndarray:
    """1.6 times as long."""
    return soxr.resample(wav, 1, 1.6)


def fast(wav: np.ndarray, rate: int) -> np.ndarray:
    """1.6 times as fast."""
    return soxr.resample(wav, 1.6, 1)


def cut_end(wav: np.ndarray, rate: int) -> np.ndarray:
    """Without the last 150 ms of the speech and what follows, faded."""
    sound = speech_activity(wav, rate)
    end_s = sound.end_s if sound is not None else len(wav) / rate
    return faded(wav[: round((end_s - 0.15) * rate)], rate)


def cut_start(wav: np.ndarray, rate: int) -> np.ndarray:
    """Without the first 150 ms of the speech and what precedes, faded."""
    return cut_end(wav[::-1], rate)[::-1]


FAULTS: Mapping[str, tuple[Fault, ...]] = {
    "clipping": (clipped, clipped_quiet),
    "clicks": (step_at_start, step_at_end, click_in_pause, click_anywhere),
    "dc": (offset,),
    "silence": (silence_inside, silence_before),
    "level": (quiet,),
    "rate": (slow, fast),
    "truncation": (cut_end, cut_start),
}


def recordings(folder: Path) -> Iterator[tuple[str, np.ndarray, int]]:
    """Id, wav (S,) and rate of every recording in a folder."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".wav", ".flac"):
            samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
            yield path.stem, samples.mean(axis=1), rate


def texts_of(folder: Path) -> dict[str, str]:
    """Texts by id; none without a metadata.csv."""
    table = folder / "metadata.csv"
    lines = table.read_text(encoding="utf-8").splitlines() if table.is_file() else []
    return {line.split("|")[0]: line.split("|")[-1] for line in lines}


def measure(folder: Path, names: list[str], language: str) -> None:
    """Prints what the checks say about the recordings of a folder."""
    flagged: Counter[tuple[str, str]] = Counter()
    n = seconds = taken = 0.0
    texts = texts_of(folder)
    for id_, wav, rate in recordings(folder):
        recorded = LabelledSpeech(wav, rate, texts.get(id_, ""), language)
        if active_level(wav, rate) is None:
            continue
        n += 1
        seconds += len(wav) / rate
        for way, change in _ways():
            speech = LabelledSpeech(_pcm(change(wav, rate)), rate, recorded.text, language)
            for beside in (None, recorded):
                began = time.process_time()
                found = {flag.check for flag in run_checks(speech, beside, names).flags}
                taken += (time.process_time() - began) if way == "as it is" and not beside else 0
                flagged.update((f"{way}{' beside' if beside else ''}", check) for check in found)
    print(f"{folder.name}: {n:.0f} recordings, {taken / seconds:.4f} CPU s per second")  # noqa: T201
    print(f"{'':24}" + "".join(f"{name:>11}" for name in names))  # noqa: T201
    for way, _ in _ways():
        for row in (way, f"{way} beside"):
            shares = (f"{100 * flagged[row, name] / n:11.1f}" for name in names)
            print(f"{row:24}" + "".join(shares))  # noqa: T201


def _ways() -> Iterator[tuple[str, Fault]]:
    yield "as it is", lambda wav, rate: wav
    yield "faded", faded
    for faults in FAULTS.values():
        for fault in faults:
            yield fault.__name__, _after_fade(fault)


def _after_fade(fault: Fault) -> Fault:
    return lambda wav, rate: fault(faded(wav, rate), rate)


def _pcm(wav: np.ndarray) -> np.ndarray:
    """The wav as a file of 16 bits holds it."""
    return (np.clip(np.round(wav * 32768), -32768, 32767) / 32768).astype(np.float32)


def main() -> None:
    """Prints a table per folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--language", default="en", help="of all texts (default: %(default)s)")
    given = parser.parse_args()
    for folder in given.folders:
        measure(folder, [n for n in check_names() if n not in NOT_OF_SOUND], given.language)


if __name__ == "__main__":
    main()
