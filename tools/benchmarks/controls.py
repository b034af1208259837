"""Measures on audio whether the controls of stage 3 are heard: f0 by Praat, and seconds.

    python -m tools.benchmarks.controls ckpts/tts/my_voice texts.txt

For each setting and text, f0 is compared with that of the same text without the setting, in the
frames that Praat finds voiced in both. Columns: how much of the change that was asked for is heard,
by least squares over the frames (1 is all of it); the median deviation of f0 from what was asked
for; how much of the pitch that is asked for, per phone, is between the 2.5th and the 97.5th
percentile of a normal distribution with the speaker's mean and deviation. Of pace: what is heard
over what was asked for.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from models.synthesizer import Synthesizer
from models.synthesizer.runs.text_synthesis import read_input_texts
from models.synthesizer.speech import Speech
from modules.variance.pitch_transform import PitchTransform
from processors.audio.pitch import extract_f0
from utils.cli import print_text, run
from utils.errors import InputError

# f0 that is asked for, from f0 without the setting, (T,) Hz, and the speaker's mean
Asked = Callable[[np.ndarray, float], np.ndarray]


def _shifted(hz: float) -> Asked:
    return lambda before, _: before + hz


def _scaled(factor: float) -> Asked:
    return lambda before, mean: mean + factor * (before - mean)


SETTINGS: dict[str, tuple[dict[str, Any], Asked]] = {
    **{
        f"shift {hz:+d} Hz": ({"pitch_transform": PitchTransform(shift_hz=hz)}, _shifted(hz))
        for hz in (20, -20, 50, -50)
    },
    "amplify 1.5": ({"pitch_transform": PitchTransform(amplify=1.5)}, _scaled(1.5)),
    "invert": ({"pitch_transform": PitchTransform(invert=True)}, _scaled(-1)),
    "flatten": ({"pitch_transform": PitchTransform(flatten=True)}, _scaled(0)),
    "pitch_control 1.2": ({"pitch_control": 1.2}, lambda before, _: 1.2 * before),
}
PACES = (0.7, 1.3)
FEWEST_FRAMES = 10  # voiced in both, 0.1 s: a slope over fewer is noise


def main() -> None:
    """Prints a line per setting."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="experiment of a voice with one speaker")
    parser.add_argument("texts", type=Path, help="one text a line")
    given = parser.parse_args()
    voice = Synthesizer(given.model)
    texts = [one.text for one in read_input_texts(given.texts)]
    plain = [voice(text) for text in texts]
    print_text("setting                change heard   deviation   in range\n")
    for name, (controls, asked) in SETTINGS.items():
        changed = [voice(text, **controls) for text in texts]
        rows = [_measured(voice, *pair, asked) for pair in zip(plain, changed, strict=True)]
        heard, deviation, in_range = mean_of_measurable(rows)
        print_text(f"{name:20} {heard:14.2f} {deviation:11.1%} {in_range:10.0%}\n")
    for pace in PACES:
        seconds = [voice(text, duration_control=1 / pace).seconds for text in texts]
        ratios = [one.seconds / s / pace for one, s in zip(plain, seconds, strict=True)]
        print_text(f"pace {pace:<15} {np.mean(ratios):9.2f}\n")


def mean_of_measurable(rows: Sequence[tuple[float, ...]]) -> np.ndarray:
    """Means of the columns, without texts so short that nothing can be measured.

    Raises:
        InputError: If none is left.
    """
    known = [row for row in rows if np.isfinite(row).all()]
    if not known:
        raise InputError("no text has voiced frames enough to measure; give longer texts")
    return np.mean(known, axis=0)


def _measured(
    voice: Synthesizer, before: Speech, after: Speech, asked: Asked
) -> tuple[float, float, float]:
    """The three columns for one text."""
    assert after.f0 is not None, "this voice predicts no pitch"
    assert voice.model.assets.stats is not None
    f0 = [extract_f0(one.wav, voice.model.mel, len(after.f0)) for one in (before, after)]
    voiced = (f0[0] > 0) & (f0[1] > 0)
    if voiced.sum() < FEWEST_FRAMES:
        return math.nan, math.nan, math.nan
    (speaker,) = voice.model.assets.stats.speakers.values()
    mean, std = speaker.f0_phone.mean, speaker.f0_phone.std
    plain, heard = (values[voiced] for values in f0)
    target = asked(plain, mean)
    in_range = np.abs(after.f0[voiced] - mean) < 1.96 * std
    return (
        share_of_change(plain, target, heard),
        float(np.median(np.abs(heard / target - 1))),
        float(in_range.mean()),
    )


def share_of_change(before: np.ndarray, asked: np.ndarray, after: np.ndarray) -> float:
    """Slope of the change on that asked for: 1 if all of it is heard, 0 if none."""
    change = asked - before
    return float(change @ (after - before) / (change @ change))


if __name__ == "__main__":
    run(main)
