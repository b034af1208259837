"""Measures on audio whether the controls of stage 3 are heard: f0 by Praat, and seconds.

    python -m tests.benchmarks.controls ckpts/tts/my_voice texts.txt

For each setting and text, f0 is compared with that of the same text without the setting, in the
frames that Praat finds voiced in both. A ratio of 1 means that what was asked for is what is heard:
of shifts, the mean difference over that asked for; of amplify and invert, the slope of one
deviation from the speaker's mean on the other over the factor; of flatten, the mean over the
speaker's; of factors, the mean ratio over the factor. The last column is how much of the pitch that
is asked for, per phone, is between the 2.5th and the 97.5th percentile of a normal distribution
with the speaker's mean and deviation.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from models.synthesizer import Synthesizer
from models.synthesizer.speech import Speech
from models.synthesizer.text.text_files import read_input_texts
from modules.pitch_transform import PitchTransform
from processors.audio.pitch import extract_f0
from utils.cli import print_text, run
from utils.errors import InputError

# ratio of heard to asked, from f0 without and with the setting, (T,) Hz, and the speaker's mean
Measure = Callable[[np.ndarray, np.ndarray, float], float]


def _shifted(hz: float) -> Measure:
    return lambda before, after, _: float((after - before).mean() / hz)


def _multiplied(factor: float) -> Measure:
    return lambda before, after, _: float((after / before).mean() / factor)


def _sloped(factor: float) -> Measure:
    def ratio(before: np.ndarray, after: np.ndarray, mean: float) -> float:
        return float(
            (before - mean) @ (after - mean) / ((before - mean) @ (before - mean)) / factor
        )

    return ratio


SETTINGS: dict[str, tuple[dict[str, Any], Measure]] = {
    **{
        f"shift {hz:+d} Hz": ({"pitch_transform": PitchTransform(shift_hz=hz)}, _shifted(hz))
        for hz in (20, -20, 50, -50)
    },
    "amplify 1.5": ({"pitch_transform": PitchTransform(amplify=1.5)}, _sloped(1.5)),
    "invert": ({"pitch_transform": PitchTransform(invert=True)}, _sloped(-1)),
    "flatten": (
        {"pitch_transform": PitchTransform(flatten=True)},
        lambda _, after, mean: float(after.mean() / mean),
    ),
    "pitch_control 1.2": ({"pitch_control": 1.2}, _multiplied(1.2)),
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
    print_text("setting               heard / asked   in range\n")
    for name, (controls, measure) in SETTINGS.items():
        changed = [voice(text, **controls) for text in texts]
        rows = [_measured(voice, *pair, measure) for pair in zip(plain, changed, strict=True)]
        heard, in_range = mean_of_measurable(rows)
        print_text(f"{name:20} {heard:8.3f} {in_range:16.0%}\n")
    for pace in PACES:
        seconds = [voice(text, duration_control=1 / pace).seconds for text in texts]
        ratios = [one.seconds / s / pace for one, s in zip(plain, seconds, strict=True)]
        print_text(f"pace {pace:<15} {np.mean(ratios):8.3f}\n")


def mean_of_measurable(rows: Sequence[tuple[float, float]]) -> np.ndarray:
    """Means of the columns, (2,), without texts so short that nothing can be measured.

    Raises:
        InputError: If none is left.
    """
    known = [row for row in rows if np.isfinite(row).all()]
    if not known:
        raise InputError("no text has voiced frames enough to measure; give longer texts")
    return np.mean(known, axis=0)


def _measured(
    voice: Synthesizer, before: Speech, after: Speech, measure: Measure
) -> tuple[float, float]:
    """Ratio of heard to asked of one text, and the share of what was asked that is in range."""
    assert after.f0 is not None, "this voice predicts no pitch"
    assert voice.model.stats is not None
    f0 = [extract_f0(one.wav, voice.model.mel, len(after.f0)) for one in (before, after)]
    voiced = (f0[0] > 0) & (f0[1] > 0)
    (speaker,) = voice.model.stats.speakers.values()
    mean, std = speaker.f0_phone.mean, speaker.f0_phone.std
    in_range = np.abs(after.f0[voiced] - mean) < 1.96 * std
    if voiced.sum() < FEWEST_FRAMES:
        return math.nan, math.nan
    return measure(f0[0][voiced], f0[1][voiced], mean), float(in_range.mean())


if __name__ == "__main__":
    run(main)
